"""Which run a file of its own is: as the user says, or as its name and folder do."""

from pathlib import Path

from scalestudy.errors import UserError
from scalestudy.features.imported.base import UNNAMED, Wanted
from scalestudy.features.imported.names import Named, named
from scalestudy.features.imported.text import shown

DEPTH = 2
"""Folders above a file whose names are looked at."""


def run_of(
    path: Path, wanted: Wanted, strategy: str | None = None, workers: int | None = None
) -> tuple[Named, list[str]]:
    """Workers, strategy and seed of a file's run, and what to say of them.

    Args:
        path: The file, or the folder of a run.
        wanted: What the user says goes first.
        strategy: What the contents say of it, or what is usual for files of this kind.
        workers: What the contents say.

    Raises:
        UserError: Nobody says how many workers it had.
    """
    parts = path.absolute().parts[-1 - DEPTH :]
    found = named((*parts[:-1], parts[-1].removesuffix(path.suffix) if path.is_file() else parts[-1]))
    count = wanted.workers or workers or found.workers
    if count is None:
        raise UserError(
            f"a name that says how many workers {shown(path.name)} had, as log_8.csv or run-w8/",
            f"{shown(path.name)}, which does not",
            "Say it: --workers N, or rename the file.",
        )
    by = wanted.strategy or found.strategy or strategy or UNNAMED
    told = "the user" if wanted.workers else "what it says" if workers else "its name"
    remarks = [f"Its workers are those of {told}."]
    if by == UNNAMED:
        remarks.append("Nothing says its strategy: --strategy NAME does.")
    return Named(count, by, found.seed), remarks
