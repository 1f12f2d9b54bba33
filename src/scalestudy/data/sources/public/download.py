"""Files of public data sets, fetched by pooch and held against their published checksums."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from scalestudy.util.errors import UserError

OnBytes = Callable[[int, int | None], None]
"""Told (bytes there, bytes in all if known)."""
TIMEOUT = 60.0
"""Seconds in which something must come."""


class Downloading(Protocol):
    """Who is told of the progress of a download."""

    def __call__(self, what: str, unit: str = "bytes") -> AbstractContextManager[OnBytes]:
        """A context in which (done, in all if known) is told of `what`, counted in this unit."""


def silently(what: str, unit: str = "bytes") -> AbstractContextManager[OnBytes]:
    """Tells nobody."""
    return nullcontext(lambda done, total: None)


@dataclass(frozen=True)
class RemoteFile:
    """A published file: its address, and its checksum as "sha256:..." or "md5:..."."""

    url: str
    hash: str


class _Progress:
    """What pooch tells its progress bar, as (done, in all)."""

    def __init__(self, on_bytes: OnBytes) -> None:
        self.total, self._done, self._on_bytes = 0, 0, on_bytes

    def update(self, size: int) -> None:
        self._done += size
        self._on_bytes(min(self._done, self.total or self._done), self.total or None)

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        pass


def fetch(file: RemoteFile, folder: Path, downloading: Downloading = silently) -> Path:
    """The file, checked against its checksum: one that is in `folder` already, or downloaded into it.

    Raises:
        UserError: it cannot be had, or is not what was published.
        OSError: the folder cannot take it.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel("ERROR")
    name = file.url.rpartition("/")[2]
    try:
        with downloading(name) as on_bytes:
            downloader = pooch.HTTPDownloader(progressbar=_Progress(on_bytes), timeout=TIMEOUT)
            return Path(pooch.retrieve(file.url, file.hash, name, folder, downloader=downloader))
    except (requests.RequestException, ValueError) as error:  # the second for another checksum
        raise UserError(
            f"{file.url} with the published checksum {file.hash}",
            str(error),
            "Run it again where there is a network. Behind a proxy set https_proxy; or copy the file to "
            f"{folder / name}.",
        ) from error
