"""Download files of public data sets with pooch, and check their published checksums."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from scalestudy.util.errors import UserError

OnBytes = Callable[[int, int | None], None]
"""Called with (bytes received, total bytes or None)."""
TIMEOUT = 60.0
"""Time limit in seconds for the connection and for each part of a download."""


class Downloading(Protocol):
    """A display for the progress of a download."""

    def __call__(self, what: str, unit: str = "bytes") -> AbstractContextManager[OnBytes]:
        """Return a context with a function (done, total or None) that shows the progress of `what`."""


def silently(what: str, unit: str = "bytes") -> AbstractContextManager[OnBytes]:
    """Show no progress."""
    return nullcontext(lambda done, total: None)


@dataclass(frozen=True)
class RemoteFile:
    """A published file: its URL, and its checksum as "sha256:..." or "md5:..."."""

    url: str
    hash: str


class _Progress:
    """A progress bar for pooch that calls `on_bytes`."""

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
    """Download a file into `folder`, unless it is there already; check its checksum and return its path.

    Raises:
        UserError: If it cannot be downloaded or its checksum differs.
        OSError: If the folder is not writable or full.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel("ERROR")
    name = file.url.rpartition("/")[2]
    try:
        with downloading(name) as on_bytes:
            downloader = pooch.HTTPDownloader(progressbar=_Progress(on_bytes), timeout=TIMEOUT)
            return Path(pooch.retrieve(file.url, file.hash, name, folder, downloader=downloader))
    except (requests.RequestException, ValueError) as error:  # ValueError: checksum differs
        raise UserError(
            f"{file.url} with the published checksum {file.hash}",
            str(error),
            "Run it again where there is a network. Behind a proxy set https_proxy; or copy the file to "
            f"{folder / name}.",
        ) from error
