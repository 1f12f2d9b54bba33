"""Files of public data sets: from Keras's folder, from where a user has put them, or over the network."""

import os
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from scalestudy.data.public.transfer import PATIENCE, OnBytes, Transfer
from scalestudy.errors import UserError

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
