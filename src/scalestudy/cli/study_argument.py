"""The study that a command is about: its file, its results folder, or the newest one here."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from scalestudy.study.store import StudyFolder

StudyArgument = Annotated[
    Path | None,
    typer.Argument(
        help="Study file, or its results folder; the newest study here when absent.",
        metavar="STUDY",
        show_default=False,
    ),
]
PointsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--point", help="Only points of this name, or like it: 'horovod-*'; can be repeated.", metavar="POINT"
    ),
]


def open_study(given: Path | None) -> "StudyFolder":
    """The folder of a study that has been run.

    Args:
        given: A study file, a results folder, or None: then this folder if it is one, else the newest of
            those in it and in its `studies`.

    Raises:
        UserError: There is none.
    """
    from scalestudy.study.parse import load_study
    from scalestudy.study.store import StudyFolder, default_folder
    from scalestudy.util.errors import UserError

    if given is None:
        return StudyFolder.open(newest_study())
    if not given.is_file():
        return StudyFolder.open(given)
    folder = default_folder(given, load_study(given).name)
    if not (folder / "study.json").exists():
        raise UserError(
            "a study that was run", f"{given}, without {folder}", f"Run it first: scalestudy run {given}"
        )
    return StudyFolder.open(folder)


def newest_study(*, besides: Path | None = None) -> Path:
    """The results folder that is meant where none is named: this one, or the newest in it.

    Args:
        besides: A study file or a results folder that is not meant.

    Raises:
        UserError: There is none.
    """
    from scalestudy.util.errors import UserError

    here = Path()
    if besides is not None and besides.suffix == ".toml":
        besides = open_study(besides).path
    elif besides is None and (here / "study.json").is_file():
        return here
    records = [*here.glob("studies/*/study.json"), *here.glob("*/study.json"), here / "study.json"]
    known = [
        record
        for record in records
        if record.is_file() and not (besides and record.parent.resolve() == besides.resolve())
    ]
    if not known:
        raise UserError(
            "a study in this folder, or the name of one",
            f"no {'other ' * (besides is not None)}studies/*/study.json here",
            "Name a study file or a results folder, or run a study first.",
        )
    return max(known, key=lambda record: record.stat().st_mtime).parent
