"""All images below a folder, found again as tables name them: by path, by name, or without the extension."""

import os
from collections import defaultdict
from pathlib import Path, PurePosixPath

from scalestudy.data.sources.files import is_image_name, is_system_name
from scalestudy.data.sources.layouts.base import leave_others
from scalestudy.data.sources.layouts.names import split_in
from scalestudy.data.sources.left_out import NO_IMAGE, SYSTEM, Leftovers
from scalestudy.util.errors import UserError


class Index:
    """The images below `root`, hidden ones left out."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files, self._others = _below(root)
        self._by_path = {file.relative_to(root).as_posix(): file for file in self.files}
        self._by_name: dict[str, list[Path]] = defaultdict(list)
        for file in self.files:
            for name in {file.name.lower(), file.stem.lower()}:
                self._by_name[name].append(file)

    def find(self, written: str, table: Path, split: str) -> Path | None:
        """The image that a table names: seen from the table, from the root, or by its name alone.

        Capitals do not matter in names. Of several with one name, that in a folder of the table's split is
        meant.

        Raises:
            UserError: several images have that name, and nothing tells which is meant.
        """
        name = written.replace("\\", "/")
        beside = table.parent.relative_to(self.root).as_posix()
        for path in (name, str(PurePosixPath(beside, name))):
            if path in self._by_path:
                return self._by_path[path]
        files = self._by_name.get(name.rpartition("/")[2].lower(), [])
        if len(files) > 1 and "/" in name:
            files = [file for file in files if file.as_posix().endswith(f"/{name}")] or files
        if len(files) > 1 and split:
            files = [file for file in files if self._split_of(file) == split] or files
        if len(files) > 1:
            raise UserError(
                f"one file for {written!r} of {table}",
                " and ".join(map(str, files[:2])),
                "Write paths seen from the table, with extensions.",
            )
        return files[0] if files else None

    def _split_of(self, file: Path) -> str | None:
        return split_in(file.relative_to(self.root).parts[0])

    def leave_rest(self, taken: set[Path], sources: list[Path], reason: str, left: Leftovers) -> None:
        """Leave out what lies below the root and is neither taken nor a source; images for this reason."""
        for file in self.files:
            if file not in taken:
                left.add(reason, file)
        for entry in self._others:
            if entry.parent != self.root and entry not in sources:
                left.add(SYSTEM if is_system_name(entry.name) else NO_IMAGE, entry)
        tops = {self.root / path.relative_to(self.root).parts[0] for path in (*self.files, *sources)}
        leave_others(self.root, tops, left)


def images_below(folder: Path) -> list[Path]:
    """All images below a folder by path; links are followed, hidden and system ones left out."""
    return _below(folder)[0]


def _below(folder: Path) -> tuple[list[Path], list[Path]]:
    """All images below a folder by path, and all else but the folders that were looked into."""
    images: list[Path] = []
    others: list[Path] = []
    seen: set[str] = set()
    for at, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(at)
        if real in seen:  # a link that leads back
            folders[:] = []
            continue
        seen.add(real)
        others += [Path(at, name) for name in sorted(folders) if is_system_name(name)]
        folders[:] = sorted(name for name in folders if not is_system_name(name))
        for name in sorted(names):
            (images if is_image_name(name) else others).append(Path(at, name))
    return images, others
