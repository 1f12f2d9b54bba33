"""One file over HTTP: resumed where it broke off, given up only where nothing comes any more.

pooch checks what arrives and puts it in place; its own downloaders begin anew after every break.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalestudy import units
from scalestudy.data.public.answers import Broken, cause, continues, host, refuse
from scalestudy.errors import UserError

if TYPE_CHECKING:
    from requests import Response

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
