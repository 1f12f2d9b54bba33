"""Remember which task files this user has trained with, and where: such code may run when a model is loaded."""

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from scalestudy.config.catalog import has_name
from scalestudy.config.task_sources import digests, source_files
from scalestudy.util.files import append_line


def _trained_file() -> Path:
    import platformdirs

    folder = platformdirs.user_state_dir("scalestudy", appauthor=False)
    return Path(folder) / "trained-code"


def add_trained(task: str, sources: Mapping[str, str]) -> None:
    """Remember the task file of a point, where it is, with the digests of its sources.

    Without a home folder, nothing is remembered.
    """
    # A task of a package: its code is installed, and may run anyway.
    if has_name(task):
        return
    line, file = _line(task, sources), _trained_file()
    with suppress(OSError):
        # Appended, never rewritten: several processes may add theirs at once.
        if line not in _lines(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            append_line(file, line)


def was_trained(task: Path) -> bool:
    """Whether this user has trained with a task file and the modules it imports, as and where they are."""
    with suppress(OSError):
        line = _line(str(task), digests(source_files(str(task))))
        return line in _lines(_trained_file())
    return False


def _lines(file: Path) -> list[str]:
    if not file.exists():
        return []
    return file.read_text().splitlines()


def _line(task: str, sources: Mapping[str, str]) -> str:
    own = {}
    for name, digest in sources.items():
        # What reads the data is not needed to load a model.
        if not name.startswith("read/"):
            own[name] = digest
    # A copy elsewhere is another task: modules beside it, which no import statement names, may differ.
    place = os.path.realpath(Path(task).parent)
    text = json.dumps([place, own], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
