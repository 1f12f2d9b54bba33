"""A public data set as a source: downloaded once, then read as a folder or an .npz file."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from scalestudy.data.sources.base import Contents, Source, SourceFindings, digest, findings_of
from scalestudy.data.sources.files import LeftOut
from scalestudy.data.sources.locate import open_path
from scalestudy.data.sources.public.download import Downloading, silently
from scalestudy.data.sources.registry import Kind
from scalestudy.data.store.make import locked, new_folder
from scalestudy.data.types import Sample
from scalestudy.study.settings import DataSettings
from scalestudy.util.errors import UserError
from scalestudy.util.files import write_atomically

ABOUT = "about.json"
SET = "set"
"""Name of the folder, or of the .npz file without extension."""


@dataclass(frozen=True)
class About:
    """Description of a downloaded set: class names if any, skipped parts, and other facts."""

    class_names: list[str] | None = None
    left_out: tuple[LeftOut, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """How to download a public set.

    Attributes:
        label: Name of its folder in the downloads.
        identity: Name in a study file.
        kind: Kind of data.
        version: Version or checksums; changes if the same name means other data.
        make: Fills an empty folder with `set/` or `set.npz`. Arguments: this folder, a folder for downloaded
            files, which is kept after a failure, and the progress display.
    """

    label: str
    identity: str
    kind: Kind
    version: str
    make: Callable[[Path, Path, Downloading], About]


class Public:
    """Source of a public data set. Only `fetch` downloads files."""

    def __init__(self, recipe: Recipe, data: DataSettings) -> None:
        self.kind: Kind = recipe.kind
        self.label, self.identity = recipe.label, recipe.identity
        self.fingerprint = digest("public", recipe.identity, recipe.version)
        self._recipe, self._data = recipe, data
        self._place = downloads(data) / recipe.label
        self._inner: Source | None = None

    def fetch(self, downloading: Downloading = silently) -> None:
        """Download the set, unless it is already complete.

        Processes that need the same set wait for each other. Complete files are not downloaded again.

        Raises:
            UserError: If files cannot be downloaded or differ from the published ones, or if the cache is not
                writable or full.
        """
        if _is_whole(self._place):
            return
        with locked(self._place) as alone:
            if not _is_whole(self._place):
                self._put(downloading, alone)

    def contents(self) -> Contents:
        return self._opened().contents()

    def rows(self) -> Iterator[Sample]:
        return self._opened().rows()

    def class_names(self) -> list[str]:
        names = self._opened().class_names()
        known = _about(self._place).class_names
        return known if known and len(known) == len(names) else names

    def findings(self) -> SourceFindings:
        if self._inner is None:
            return SourceFindings()
        findings = findings_of(self._inner)
        return replace(findings, left_out=(*_about(self._place).left_out, *findings.left_out))

    def _opened(self) -> Source:
        if self._inner is None:
            if not _is_whole(self._place):
                raise UserError(
                    "a downloaded data set",
                    f"{self.identity}, not downloaded to {self._place}",
                    "Run `scalestudy data prepare` on it or on the study, where there is a network.",
                )
            inside = self._place / SET
            self._inner = open_path(inside if inside.is_dir() else inside.with_suffix(".npz"), self._data)
        return self._inner

    def _put(self, downloading: Downloading, alone: bool) -> None:
        files = self._place.with_name(f"{self.label}.files")
        with new_folder(self._place, lambda: _is_whole(self._place), alone=alone) as temporary:
            files.mkdir(exist_ok=True)
            about = self._recipe.make(temporary, files, downloading)
            stored = asdict(about) | {"files": _measured(temporary)}
            write_atomically(temporary / ABOUT, json.dumps(stored, indent=1))
        shutil.rmtree(files, ignore_errors=True)


def downloads(data: DataSettings) -> Path:
    """Return the folder of downloaded sets in the cache."""
    return Path(str(data.cache)) / "downloads"


def stored_about(data: DataSettings, label: str) -> About | None:
    """Return the description of a downloaded set; None if it is not downloaded."""
    place = downloads(data) / label
    return _about(place) if (place / ABOUT).is_file() else None


def _about(place: Path) -> About:
    stored = json.loads((place / ABOUT).read_text())
    left_out = (
        LeftOut(group["reason"], group["count"], tuple(group["names"])) for group in stored["left_out"]
    )
    return About(stored["class_names"], tuple(left_out), stored["facts"])


def _is_whole(place: Path) -> bool:
    """Whether the number and total size of files are as recorded."""
    try:
        stored = json.loads((place / ABOUT).read_text())["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(stored == _measured(place))


def _measured(folder: Path) -> list[int]:
    """Return the number of files below a folder, and their bytes."""
    sizes = []
    for path, _, names in os.walk(folder):
        sizes += [os.stat(os.path.join(path, name)).st_size for name in names if name != ABOUT]
    return [len(sizes), sum(sizes)]
