"""Whether the data that the points of a study name are still as they were prepared."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from scalestudy.conduct.verified import Kind, OnRead, Verified
from scalestudy.data.prepared import Prepared
from scalestudy.data.split import Split
from scalestudy.errors import UserError
from scalestudy.seals import opened
from scalestudy.study.point import Point

BLOCK = 2**22


def verify_data(points: list[Point], on_read: OnRead) -> Iterator[Verified]:
    """Each data set and split once: its description, its arrays, its rows."""
    files = [point.files for point in points if point.files is not None]
    for prepared in dict.fromkeys(each.prepared for each in files):
        on_read(prepared, 0)
        try:
            yield from _arrays(Prepared.open(prepared), on_read)
        except UserError as error:
            yield from _damaged(Path(prepared), error, on_read)
    for split in dict.fromkeys(each.split for each in files):
        try:
            Split.load(split)
        except UserError as error:
            yield _unreadable(Path(split), "split", error)
        else:
            yield Verified(split, "split", "sound")


def _arrays(prepared: Prepared, on_read: OnRead) -> Iterator[Verified]:
    yield Verified(
        str(prepared.path / "meta.json"), "data", "sound" if prepared.arrays else "without checksum"
    )
    for name in prepared.files:
        file, recorded = prepared.path / name, prepared.arrays.get(name)
        if recorded is None:
            yield Verified(str(file), "data", "without checksum")
        elif (found := _digest(file, on_read)) == recorded:
            yield Verified(str(file), "data", "sound")
        else:
            yield Verified(
                str(file), "data", "corrupt", f"its checksum is {found[:12]}…, not {recorded[:12]}…"
            )


def _damaged(folder: Path, error: UserError, on_read: OnRead) -> Iterator[Verified]:
    """The arrays of a set that cannot be opened which are not as recorded; the set itself if none is."""
    try:
        recorded = opened((folder / "meta.json").read_bytes())[0]["arrays"]
        wrong = [
            folder / name
            for name, digest in recorded.items()
            if not (folder / name).is_file() or _digest(folder / name, on_read) != digest
        ]
    except (OSError, ValueError, KeyError, AttributeError):
        wrong = []
    for path in wrong or [folder]:
        yield _unreadable(path, "data", error)


def _unreadable(path: Path, kind: Kind, error: UserError) -> Verified:
    return Verified(str(path), kind, "corrupt" if path.exists() else "missing", error.received, needed=False)


def _digest(file: Path, on_read: OnRead) -> str:
    digest = hashlib.sha256()
    with open(file, "rb") as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
            on_read(str(file), len(block))
    return digest.hexdigest()
