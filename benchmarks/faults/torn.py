"""Faults at rest: damaged files of a finished or interrupted run."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from faults.scene import Scene


def _truncate(path: Path, draw: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: draw.randrange(len(content)) if content else 0])


def _empty(path: Path, draw: random.Random) -> None:
    path.write_bytes(b"")


def _noise(path: Path, draw: random.Random) -> None:
    path.write_bytes(draw.randbytes(200))


def _flip(path: Path, draw: random.Random) -> None:
    """Flip one bit of the file."""
    content = bytearray(path.read_bytes())
    if content:
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(bytes(content))


def _folder(path: Path, draw: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _newer(path: Path, draw: random.Random) -> None:
    """Write a later schema version."""
    record = json.loads(path.read_text())
    key = next(
        (key for key in ("schema_version", "schema") if key in record), "schema_version"
    )
    path.write_text(json.dumps(record | {key: 99}))


def _remove(path: Path, draw: random.Random) -> None:
    path.unlink()


TEARS: dict[str, Callable[[Path, random.Random], None]] = {
    "truncated": _truncate,
    "empty": _empty,
    "noise": _noise,
    "bit flipped": _flip,
    "a folder": _folder,
    "newer": _newer,
    "removed": _remove,
}
TORN = (
    "result.json",
    "point.json",
    "epochs.jsonl",
    "progress.json",
    "launcher.json",
    "ranks/0.json",
    "model.keras",
    "study.json",
    "study.toml",
    "split",
    "prepared",
    "checkpoint.npz",
    "failure.json",
)

LASTING = (
    "result.json",
    "point.json",
    "epochs.jsonl",
    "ranks/0.json",
    "study.json",
    "split",
    "prepared",
)
"""Files of a finished run without which no conclusion is possible."""
MADE_ANEW = ("result.json", "split")
"""Files that may be missing: a point that is not done has no result, and a split follows from its seed."""
MAY_TRAIN = ("result.json", "point.json", "study.json", "study.toml", "launcher.json")
"""Files without which a run does not count: if one is missing, the run may be trained again."""


def find(scene: Scene, name: str) -> Path | None:
    """The file of that name in a scene; None if it does not exist."""
    run = scene.newest_run()
    if name in ("study.json", "study.toml"):
        found = scene.results / name
    elif name == "split":
        found = next(iter((scene.root / "cache").rglob("*split*")), None)
    elif name == "prepared":
        found = next(
            (each for each in sorted((scene.root / "cache").rglob("*.npy"))), None
        )
    else:
        found = run.path / name if run else None
    return found if found is not None and found.is_file() else None


class Torn:
    """Context in which a file is damaged; the file is restored afterwards."""

    def __init__(self, scene: Scene, path: Path, how: str, draw: random.Random) -> None:
        self._path, self._how, self._draw = path, how, draw
        self._kept = scene.root / "kept"

    def __enter__(self) -> "Torn":
        shutil.copy2(self._path, self._kept)
        TEARS[self._how](self._path, self._draw)
        return self

    def __exit__(self, *_: object) -> None:
        if self._path.is_dir():
            shutil.rmtree(self._path)
        if self._path.parent.exists():
            shutil.copy2(self._kept, self._path)
