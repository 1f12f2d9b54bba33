"""Files of public data sets: from Keras's folder, from where a user has put them, or over the network."""

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from scalestudy.util.errors import UserError

OnBytes = Callable[[int, int | None], None]
"""Told (bytes there, bytes in all if known)."""
MIRROR = "SCALESTUDY_MIRROR"
"""Environment variable: what stands before HOST/PATH of every address, as "https://mirror.site/data"."""
TIMEOUT = 60.0
"""Seconds in which something must come."""
ATTEMPTS = 5
"""In a row that bring nothing new."""
PAUSE = 0.25
"""Seconds after the first such attempt; after the second four times as many, and so on."""
_PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Answers of a server that may be another a moment later."""
_BLOCK = 1 << 16


class Downloading(Protocol):
    """Who is told of the progress of a download."""

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
        stored: Where Keras stores it, seen from its folder of data sets.
    """

    url: str
    hash: str
    size: int | None = None
    stored: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The last part of its address."""
        return self.url.rpartition("/")[2]


def fetch(
    file: RemoteFile, folder: Path, downloading: Downloading = silently, *, timeout: float = TIMEOUT
) -> Path:
    """The file, checked against its checksum: one that is here already, or downloaded into `folder`.

    What has come of a download that is interrupted stays as `NAME.part`; the next one resumes there. The
    caller holds a lock on `folder`.

    Raises:
        UserError: it cannot be had, or is not what was published.
        OSError: the folder cannot take it.
    """
    target, part, url = folder / file.name, folder / f"{file.name}.part", mirrored(file.url)
    keras_home = Path(os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras"))
    for path in (*(keras_home / "datasets" / name for name in file.stored), target):
        if path.is_file() and _is_published(path, file):
            return path
    resumed = part.exists()
    with downloading(file.name) as on_bytes:
        while True:
            _download(url, part, file.size, on_bytes, timeout)
            if _is_published(part, file):
                return part.replace(target)
            part.unlink()
            if not resumed:  # parts of two versions make no whole: once more from the start
                raise UserError(
                    f"{file.name} with the published checksum {file.hash}",
                    f"another file from {url}",
                    f"Run it again, or put the right file at {target}.",
                )
            resumed = False


def mirrored(url: str) -> str:
    """The address that a file is fetched from: below the mirror, as MIRROR/HOST/PATH, where one is named."""
    base = os.environ.get(MIRROR, "").rstrip("/")
    parts = urlsplit(url)
    return f"{base}/{parts.netloc}{parts.path}" if base else url


def _is_published(path: Path, file: RemoteFile) -> bool:
    import pooch

    algorithm, _, checksum = file.hash.partition(":")
    return bool(pooch.file_hash(str(path), alg=algorithm) == checksum)


def _download(url: str, part: Path, size: int | None, on_bytes: OnBytes, timeout: float) -> None:
    """Fetch all of `url` into `part`, from where that ends, over as many connections as bring something.

    pooch's own downloader begins anew after every interruption.
    """
    import requests

    idle = 0
    while size is None or _bytes_of(part) != size:
        before = _bytes_of(part)
        try:
            _receive(url, part, on_bytes, timeout)
            return
        except (requests.exceptions.MissingSchema, requests.exceptions.InvalidSchema) as error:
            raise UserError("an address on the web", url, f"Correct {MIRROR}.") from error
        except requests.RequestException as error:
            idle = 0 if _bytes_of(part) > before else idle + 1
            if idle == ATTEMPTS:
                raise UserError(
                    f"{url} from a server that answers",
                    f"{error}, {ATTEMPTS} times in a row",
                    "Run it again where there is a network: it resumes. Behind a proxy set https_proxy; "
                    f"where there is a mirror, {MIRROR}; or put the file by hand at {part.with_suffix('')}.",
                ) from error
            time.sleep(PAUSE * idle**2)


def _receive(url: str, part: Path, on_bytes: OnBytes, timeout: float) -> None:
    """One connection."""
    import requests

    done = _bytes_of(part)
    headers = {"Accept-Encoding": "identity", "User-Agent": "scalestudy"}
    headers |= {"Range": f"bytes={done}-"} if done else {}
    with requests.get(url, headers=headers, stream=True, timeout=timeout) as response:
        if response.status_code == 416:  # what is here is of another file
            part.unlink()
            raise requests.ConnectionError("has no such part of the file")
        if response.status_code in _PASSING:
            response.raise_for_status()
        page = "html" in response.headers.get("Content-Type", "").lower()
        if not response.ok or page:
            raise UserError(
                f"the file {url}",
                f"{response.status_code} {response.reason}" + (" and a page of HTML" if page else ""),
                "See whether this address opens in a browser. Behind a proxy set https_proxy; where there is "
                f"a mirror, {MIRROR}; or fetch the file elsewhere and put it in place by hand.",
            )
        done = done if response.status_code == 206 else 0
        announced = response.headers.get("Content-Length", "")
        total = done + int(announced) if announced.isdecimal() else None
        with part.open("ab" if done else "wb") as stream:
            for block in response.iter_content(_BLOCK):
                stream.write(block)
                done += len(block)
                on_bytes(done, total)


def _bytes_of(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0
