"""All images below a folder, found again as tables name them: by path, by name, or without the extension."""

import os
from collections import defaultdict
from pathlib import Path, PurePosixPath

from scalestudy.data.files_in import is_image_name, is_system
from scalestudy.data.layouts.names import split_in
from scalestudy.errors import UserError


class Index:
    """The images below `root`, hidden ones left out."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = images_below(root)
        self._by_path = {file.relative_to(root).as_posix(): file for file in self.files}
        self._by_name: dict[str, list[Path]] = defaultdict(list)
        for file in self.files:
            self._by_name[file.name].append(file)
            if file.stem != file.name:
                self._by_name[file.stem].append(file)

    def find(self, named: str, table: Path, split: str) -> Path | None:
        """The image that a table names: seen from the table, from the root, or by its name alone.

        Of several with one name, that in a folder of the table's split is meant.

        Raises:
            UserError: several images have that name, and nothing tells which is meant.
        """
        name = named.replace("\\", "/")
        beside = table.parent.relative_to(self.root).as_posix()
        for path in (name, str(PurePosixPath(beside, name))):
            if path in self._by_path:
                return self._by_path[path]
        found = self._by_name.get(name.rpartition("/")[2], [])
        if len(found) > 1 and "/" in name:
            found = [file for file in found if file.as_posix().endswith(f"/{name}")] or found
        if len(found) > 1 and split:
            found = [file for file in found if self._split_of(file) == split] or found
        if len(found) > 1:
            raise UserError(
                f"one file for {named!r} of {table}",
                " and ".join(map(str, found[:2])),
                "Write paths seen from the table, with extensions.",
            )
        return found[0] if found else None

    def _split_of(self, file: Path) -> str | None:
        return split_in(file.relative_to(self.root).parts[0])


def images_below(folder: Path) -> list[Path]:
    """All images below a folder by path; hidden and system ones are left out, linked folders not followed."""
    files: list[Path] = []
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not is_system(Path(name)))
        files += [Path(at, name) for name in sorted(names) if is_image_name(name)]
    return files
