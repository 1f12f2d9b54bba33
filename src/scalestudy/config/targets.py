"""Where commands can and may write: not over their inputs, and not among the records of a study."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from scalestudy.util.errors import UserError

REPORT = "report"
"""The only folder inside a study that commands may write to."""


def refuse_target(
    target: Path | None, inputs: Iterable[str | Path | None] = (), *, force: bool = False
) -> None:
    """Refuse to write to one of `inputs`, to a study file or site profile, or among a study's records.

    A place where nothing can be written is refused, too, before the work whose result it is for.

    Args:
        target: File or folder to write; None is accepted.
        inputs: Files and folders that the command reads, as named by the user; None is ignored.
        force: Whether an existing file may be replaced.

    Raises:
        UserError: Names the target and the reason.
    """
    if target is None:
        return
    place = os.path.realpath(target)
    read = any(os.path.realpath(path) == place for path in inputs if path is not None)
    if read or (target.suffix == ".toml" and target.exists()):
        what = "which the command reads" if read else "a study file or a site profile"
        raise UserError(
            "a target without data that would be lost", f"{target}, {what}", "Name another with --out."
        )
    refuse_inside_study(target)
    refuse_old(target, force=force)
    _refuse_unwritable(target)


def _refuse_unwritable(target: Path) -> None:
    place = Path(os.path.realpath(target))
    if place.exists() and not place.is_dir() and not place.is_file():
        return  # a device or a pipe
    folder = place if place.is_dir() else next(each for each in place.parents if each.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        what = f"{target}: {error.strerror}"
        raise UserError("a target that can be written", what, "Name another with --out.") from error


def refuse_old(target: Path, *, force: bool) -> None:
    """Refuse to replace an existing file unless `force` is set.

    Raises:
        UserError: Names the file.
    """
    if target.is_file() and not force:
        action = "Name another, or add --force to overwrite it."
        raise UserError("a new file", f"{target}, which exists", action)


def refuse_inside_study(target: Path) -> None:
    """Refuse to write into the folder of a study, except its `report`; follows links.

    Raises:
        UserError: Names the target and the study.
    """
    place = Path(os.path.realpath(target))
    for folder in (place, *place.parents):
        is_study = os.path.lexists(folder / "study.json")
        if is_study and place.relative_to(folder).parts[:1] != (REPORT,):
            raise UserError(
                "a target outside the records of a study",
                f"{target}, in the study {folder}",
                f"Name another with --out, or one in {folder / REPORT}.",
            )
