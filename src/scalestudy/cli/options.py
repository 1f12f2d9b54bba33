"""Arguments and options that several commands have, each defined once; the study that a command is about."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from scalestudy.study.store import StudyFolder

StudyFile = Annotated[Path, typer.Argument(help="Study file.")]
ResultsOption = Annotated[
    Path | None,
    typer.Option(
        "--out", help="Results folder; studies/NAME beside the study file when absent.", metavar="DIR"
    ),
]
OrderOption = Annotated[
    Literal["blocks", "rows"] | None,
    typer.Option(
        help="Order of runs: for each seed a block of all rows, shuffled; or all seeds of a row before the "
        "next row. When absent the order that the study has; blocks for a new one."
    ),
]
AtMostOption = Annotated[
    int | None,
    typer.Option(min=1, help="Keep no more than K jobs of the study in the queue.", metavar="K"),
]
ReportOption = Annotated[bool, typer.Option(help="Write the report at the end.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", help="Print all that the page says, and not the decision alone.")
]
AnswerOption = Annotated[Literal["table", "json"], typer.Option("--format", help="What is printed.")]
FormOption = Annotated[
    str | None, typer.Option("--format", help="Form; by the ending of --out when absent.", metavar="FORMAT")
]
FileOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="File to write instead of printing; figures of Markdown and LaTeX go into a folder beside it.",
        metavar="FILE",
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]
TaskOption = Annotated[
    str | None,
    typer.Option(
        help='What is trained: "unet", "torch_unet", "keras:MODEL", …, or a Python file beside the study; '
        "a small U-Net when absent."
    ),
]
StrategyOption = Annotated[
    str,
    typer.Option(
        help="How workers combine their gradients: native (the framework's own), horovod, virtual, …"
    ),
]
WorkersOption = Annotated[int, typer.Option("--workers", "-n", min=1, help="Number of workers.", metavar="N")]
DeviceOption = Annotated[
    str, typer.Option(help="auto takes GPUs where there are any.", metavar="auto|cpu|gpu")
]
SourceArgument = Annotated[
    str,
    typer.Argument(
        help="A study file, or a source: a folder, a table of images, an .npz file, indents, digits, "
        "tfds:NAME, keras:NAME, indents@zenodo.",
        metavar="STUDY_OR_SOURCE",
    ),
]
ImageSizeOption = Annotated[
    tuple[int, int] | None,
    typer.Option(help="Height and width in pixels that images are resized to.", metavar="H W"),
]
SkipBadOption = Annotated[
    bool, typer.Option("--skip-bad", help="Go on without damaged files; each is named, and recorded.")
]
CacheOption = Annotated[Path | None, typer.Option(help="Folder of prepared data sets.", metavar="DIR")]
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
PointOption = Annotated[
    str | None,
    typer.Option(
        "--point",
        help="Point of the study; chosen as said above when absent.",
        metavar="POINT",
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done; start and write nothing.")
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
            "two studies or more" if besides else "a study in this folder, or the name of one",
            f"no {'other ' * (besides is not None)}studies/*/study.json here",
            "Name a study file or a results folder, or run a study first.",
        )
    return max(known, key=lambda record: record.stat().st_mtime).parent
