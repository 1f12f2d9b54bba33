"""What lies in a folder, by names alone: each folder is scanned once, when it is first asked for."""

import os
import re
from functools import cached_property
from pathlib import Path

from scalestudy.data.files_in import is_image_name, is_system_name
from scalestudy.data.layout import in_order

_PARTS = re.compile(r"(\d+)")


class Look:
    """A folder's visible folders and files; links count as what they lead to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def folders(self) -> dict[str, "Look"]:
        """Folders by name, numbers in their own order."""
        return {name: Look(self.path / name) for name in sorted(self._scanned[0], key=in_order)}

    @property
    def files(self) -> list[str]:
        """Names of all that is no folder, sorted."""
        return self._scanned[1]

    @cached_property
    def images(self) -> list[str]:
        """Names of files that are images by their name, sorted."""
        return [name for name in self.files if is_image_name(name)]

    @cached_property
    def _scanned(self) -> tuple[list[str], list[str]]:
        folders: list[str] = []
        files: list[str] = []
        with os.scandir(self.path) as entries:
            for entry in entries:
                if not is_system_name(entry.name):
                    (folders if entry.is_dir() else files).append(entry.name)
        return folders, sorted(files)


def numbers(text: str) -> tuple[int, ...]:
    """All whole numbers in a text."""
    return tuple(map(int, _PARTS.findall(text)))
