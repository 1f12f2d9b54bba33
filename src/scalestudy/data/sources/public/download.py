"""Files of public data sets: from Keras's folder, from where a user has put them, or over the network.

A download resumes where it broke off; a page in place of a file, a slow or a broken connection is told.
"""

import os
import re
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from scalestudy import units
from scalestudy.errors import UserError

if TYPE_CHECKING:
    from requests import Response
if TYPE_CHECKING:
    from requests import Response

_PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Answers of a server that may be another a moment later."""


class Broken(Exception):
    """A connection that ended, or stood still, before the file was whole."""


def continues(response: "Response", have: int) -> bool:
    """Whether it sends what comes after `have` bytes; a server may ignore that and send all."""
    if response.status_code != 206:
        return False
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    if found is None or int(found[1]) != have:
        raise Broken(f"sent another part than asked for ({response.headers.get('Content-Range')})")
    return True


def refuse(response: "Response", url: str) -> None:
    """Refuse errors, and pages in place of files: those of proxies, logins and maintenance."""
    status = f"{response.status_code} {response.reason}".strip()
    page = "html" in response.headers.get("Content-Type", "").lower()
    if response.status_code in _PASSING:
        raise Broken(f"answered {status}")
    if response.status_code not in (200, 206) or page:
        raise UserError(
            f"the file {url}",
            f"{status}{_title(response) if page else ''} from {host(response.url)}",
            "See whether this address opens in a browser. Behind a proxy set https_proxy; where there is a "
            "mirror, SCALESTUDY_MIRROR; or fetch the file elsewhere and put it in place by hand.",
        )


def _title(response: "Response") -> str:
    """What a page says of itself, of its first kilobytes."""
    try:
        text = response.raw.read(16384, decode_content=True).decode("utf-8", "replace")
    except Exception:  # whatever a broken page raises, it is a page
        text = ""
    found = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
    words = " ".join(found[1].split())[:100] if found else ""
    return f" and a page of HTML ({words!r})" if words else " and a page of HTML"


def host(url: str) -> str:
    """The host of an address."""
    return url.split("/")[2] if "://" in url else url


def cause(error: BaseException) -> str:
    """What broke a connection, in few words."""
    text = str(error)
    if "timed out" in text.lower():
        return "sent nothing for too long"
    for known in ("Name or service not known", "Temporary failure in name resolution", "Connection refused"):
        if known in text:
            return f"could not be reached ({known})"
    if "CERTIFICATE" in text.upper():
        return "has a certificate that is not trusted here (REQUESTS_CA_BUNDLE names a site's own)"
    if "ProxyError" in type(error).__name__:
        return "could not be reached through the proxy"
    return "broke the connection"


OnBytes = Callable[[int, int | None], None]
"""Told (bytes there, bytes in all if known)."""

PATIENCE = 60.0
"""Seconds in which at least `LEAST_RATE` bytes a second must have come, however long the whole takes."""
LEAST_RATE = 100.0
TRIES = 5
"""Attempts in a row that bring nothing new."""
PAUSE = 0.5
"""Seconds before the second of them; each further one waits twice as long."""
_BLOCK = 1 << 20


@dataclass
class Transfer:
    """A downloader for pooch: `Transfer(...)(url, output_file, None)`.

    What has come stays in `part` until the file is whole, also when this process is killed: the next
    transfer goes on from there.

    Attributes:
        part: Where it grows.
        size: Bytes of the whole file, where they are published.
        on_bytes: Told of progress.
        patience: Seconds without progress after which a connection is taken for dead.
        pause: Seconds before the second attempt in a row that brings nothing.
        resumed: Whether a part of the file came from an earlier connection.
    """

    part: Path
    size: int | None = None
    on_bytes: OnBytes = lambda done, total: None
    patience: float = PATIENCE
    pause: float = PAUSE
    resumed: bool = False

    def __call__(self, url: str, output_file: str, pooch: object, check_only: bool = False) -> None:
        """Fetch `url` into `output_file`.

        Raises:
            UserError: the server refuses, answers with a page, or sends nothing any more.
            OSError: the disk is full, or may not be written to.
        """
        self.resumed = self._have() > 0
        furthest, idle = self._have(), 0
        while not self._is_whole():
            try:
                self._once(url)
                break
            except Broken as broken:
                idle = 0 if self._have() > furthest else idle + 1
                furthest = max(furthest, self._have())
                if idle >= TRIES:
                    raise self._given_up(url, broken) from broken
                time.sleep(self.pause * 2 ** (idle - 1) if idle else 0)
        os.replace(self.part, output_file)

    def _have(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _is_whole(self) -> bool:
        return self.size is not None and self._have() == self.size

    def _once(self, url: str) -> None:
        """One connection, from where the part ends.

        Raises:
            Broken: it has ended too early.
        """
        import requests

        have = self._have()
        if self.size is not None and have > self.size:
            self.part.unlink()
            have = 0
        headers = {"Accept-Encoding": "identity", "User-Agent": "scalestudy"}
        if have:
            headers["Range"] = f"bytes={have}-"
        try:
            with requests.get(url, headers=headers, stream=True, timeout=self.patience) as response:
                if response.status_code == 416:
                    # More is asked for than the server has: what is here is of another file.
                    self.part.unlink(missing_ok=True)
                    raise Broken("has no such part of the file")
                refuse(response, url)
                self._receive(response, have if continues(response, have) else 0)
        except requests.exceptions.RequestException as error:
            if isinstance(error, ValueError):  # an address that is none, or of another kind than the web's
                raise UserError("an address on the web", url, "Correct SCALESTUDY_MIRROR.") from error
            raise Broken(cause(error)) from error

    def _receive(self, response: "Response", start: int) -> None:
        """Write what comes behind the first `start` bytes of the part."""
        import urllib3

        announced = response.headers.get("Content-Length", "")
        total = start + int(announced) if announced.isdecimal() else None
        done, since, seen = start, time.monotonic(), start
        with open(self.part, "r+b" if start else "wb") as file:
            file.seek(start)
            file.truncate()
            while True:
                try:
                    # What is there, and not until so much is: else a trickle would never be noticed.
                    block = _some(response.raw)
                except (urllib3.exceptions.HTTPError, OSError) as error:
                    raise Broken(cause(error)) from error
                if not block:
                    break
                file.write(block)
                done += len(block)
                self.on_bytes(done, self.size or total)
                if self.size is not None and done > self.size:
                    raise _other_size(response.url, done, self.size)
                now = time.monotonic()
                if now - since >= self.patience:
                    if done - seen < LEAST_RATE * self.patience:
                        raise Broken(f"sent only {done - seen} bytes in {units.duration(now - since)}")
                    since, seen = now, done
        wanted = self.size or total
        if wanted is not None and done < wanted:
            raise Broken(f"ended after {units.size(done)} of {units.size(wanted)}")

    def _given_up(self, url: str, broken: Broken) -> UserError:
        return UserError(
            f"a connection to {host(url)} that lasts until the file is here",
            f"{url}, which {broken}, {TRIES} times in a row",
            "Run it again where there is a network"
            + (f": it goes on from the {units.size(self._have())} that are here" if self._have() else "")
            + ". Behind a proxy set https_proxy; where there is a mirror, SCALESTUDY_MIRROR; or put the file "
            f"by hand at {self.part.with_suffix('')}.",
        )


def _some(raw: Any) -> bytes:
    """Bytes that have come, at least one; none at the end."""
    block: bytes = raw.read1(_BLOCK, decode_content=False)
    return block


def _other_size(url: str, done: int, size: int) -> UserError:
    return UserError(
        f"a file of {size:,} bytes, as published", f"more than {done:,} from {url}", "Name another mirror."
    )


MIRROR = "SCALESTUDY_MIRROR"
"""Environment variable: what stands before HOST/PATH of every address, as "https://mirror.site/data"."""


class Downloading(Protocol):
    """Who is told how far a download is."""

    def __call__(self, what: str, unit: str = "bytes") -> AbstractContextManager[OnBytes]:
        """A context in which (done, in all if known) is told of `what`, counted in this unit."""


def silently(what: str, unit: str = "bytes") -> AbstractContextManager[OnBytes]:
    """Tells nobody."""
    return nullcontext(lambda done, total: None)


@dataclass(frozen=True)
class RemoteFile:
    """A published file.

    Attributes:
        url: Where it is.
        hash: Its published checksum, as "sha256:..." or "md5:...".
        size: Its published bytes, None where nobody says.
        kept: Where Keras keeps it, seen from its folder of data sets.
    """

    url: str
    hash: str
    size: int | None = None
    kept: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The last part of its address."""
        return self.url.rpartition("/")[2]


def fetch(
    file: RemoteFile, folder: Path, downloading: Downloading = silently, *, patience: float = PATIENCE
) -> Path:
    """The file, checked against its checksum: one that is here already, or downloaded into `folder`.

    The caller holds a lock on `folder`.

    Raises:
        UserError: it cannot be had, or is not what was published.
        OSError: the folder cannot take it.
    """
    import pooch

    for each in _kept(file.kept):
        if pooch.file_hash(str(each), alg=file.hash.partition(":")[0]) == file.hash.partition(":")[2]:
            return each
    pooch.get_logger().setLevel("WARNING")
    part = folder / f"{file.name}.part"
    with downloading(file.name) as on_bytes:
        transfer = Transfer(part, file.size, on_bytes, patience)
        while True:
            try:
                url = mirrored(file.url)
                return Path(pooch.retrieve(url, file.hash, file.name, folder, downloader=transfer))
            except ValueError as error:
                # Parts of two versions make no whole: then once more from the start.
                if not transfer.resumed:
                    raise UserError(
                        f"{file.name} with the published checksum {file.hash}",
                        f"another file from {url}",
                        f"Run it again, or put the right file at {folder / file.name}.",
                    ) from error


def mirrored(url: str) -> str:
    """The address that a file is fetched from: below the mirror, as MIRROR/HOST/PATH, where one is named."""
    base = os.environ.get(MIRROR, "").rstrip("/")
    parts = urlsplit(url)
    return f"{base}/{parts.netloc}{parts.path}" if base else url


def keras_folder() -> Path:
    """Where Keras keeps data sets."""
    home = os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras")
    return Path(home) / "datasets"


def _kept(names: Iterable[str]) -> Iterable[Path]:
    return (each for each in (keras_folder() / name for name in names) if each.is_file())
