"""Arguments and options that several commands share, and how commands find their study."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from scalestudy.store.study_folder import StudyFolder

MOST_WORKERS = 100_000
StudyFile = Annotated[Path, typer.Argument(help="Study file.")]
ResultsOption = Annotated[
    Path | None,
    typer.Option(
        "--out", help="Results folder.", metavar="DIR", show_default="studies/NAME beside the study file"
    ),
]
OrderOption = Annotated[
    Literal["blocks", "rows"] | None,
    typer.Option(
        help="Order of the runs: all rows, shuffled, for one seed after another (blocks), or all seeds for "
        "one row after another (rows).",
        show_default="that of the study, else blocks",
    ),
]
AtMostOption = Annotated[
    int | None,
    typer.Option(min=1, help="Maximum number of jobs of the study in the queue.", metavar="K"),
]
ReportOption = Annotated[bool, typer.Option(help="Write the report at the end.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", help="Print everything on the page, not only the decision.")
]
AnswerOption = Annotated[Literal["table", "json"], typer.Option("--format", help="Output format.")]


def format_option(*formats: str) -> Any:
    """The option `--format`; the first format is the default."""
    text, default = ", ".join(formats), f"by the ending of --out, else {formats[0]}"
    return typer.Option("--format", help=f"Output format: {text}.", metavar="FORMAT", show_default=default)


FileOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="File to write instead of printing. Figures of Markdown go to a folder beside it.",
        metavar="FILE",
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
TaskOption = Annotated[
    str | None,
    typer.Option(
        help='Task: "unet", "torch_unet", "keras:MODEL", …, or a Python file beside the study.',
        show_default="a small U-Net",
    ),
]
StrategyOption = Annotated[
    str,
    typer.Option(help="Strategy: native (the framework's own), horovod, virtual, …"),
]
WorkersOption = Annotated[int, typer.Option("--workers", "-n", min=1, help="Number of workers.", metavar="N")]
DeviceOption = Annotated[
    str, typer.Option(help="Device of the workers; auto uses GPUs if there are any.", metavar="auto|cpu|gpu")
]
SourceArgument = Annotated[
    str,
    typer.Argument(
        help="Study file, or data source: a folder, a table of images, an .npz file, indents, digits.",
        metavar="STUDY_OR_SOURCE",
    ),
]
ImageSizeOption = Annotated[
    tuple[int, int] | None,
    typer.Option(help="Height and width, in pixels, to which images are resized.", metavar="H W"),
]
SkipBadOption = Annotated[
    bool, typer.Option("--skip-bad", help="Skip damaged files; they are listed and recorded.")
]
CacheOption = Annotated[Path | None, typer.Option(help="Folder of prepared data sets.", metavar="DIR")]
StudyArgument = Annotated[
    Path | None,
    typer.Argument(
        help="Study file or results folder.",
        metavar="STUDY",
        show_default="the newest study here",
    ),
]
PointsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--point", help="Only this point, or points such as 'horovod-*'. Repeatable.", metavar="POINT"
    ),
]
PointOption = Annotated[
    str | None,
    typer.Option(
        "--point",
        help="Point of the study.",
        metavar="POINT",
        show_default="see above",
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done, without starting or writing anything.")
]


def worker_counts(text: str) -> list[int]:
    """Parse numbers of workers such as "4" or "1,2,4".

    Raises:
        UserError: A word is not a number of workers.
    """
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() and 0 < int(word) <= MOST_WORKERS for word in words):
        raise UserError("numbers of workers after -n, such as 4 or 1,2,4", repr(text), "Correct it.")
    return list(dict.fromkeys(map(int, words)))


def open_study(given: Path | None) -> "StudyFolder":
    """Open the folder of a study that has been run.

    `given` is a study file, a results folder, or None for the result of `newest_study`.

    Raises:
        UserError: There is none.
    """
    from scalestudy.config.parse import load_study
    from scalestudy.store.study_folder import StudyFolder, default_folder

    if given is None:
        return StudyFolder.open(newest_study())
    if not given.is_file():
        return StudyFolder.open(given)
    folder = default_folder(given, load_study(given).name)
    if not (folder / "study.json").exists():
        raise UserError(
            "a study that has been run", f"{given}, without {folder}", f"Run it first: scalestudy run {given}"
        )
    return StudyFolder.open(folder)


def newest_study(*, besides: Path | None = None) -> Path:
    """The results folder to use if none is named: the working folder, or the newest study in it.

    `besides` is a study file or a results folder to exclude.

    Raises:
        UserError: There is none.
    """
    from scalestudy.store.study_folder import is_of_another_program

    here = Path()
    if besides is not None and besides.suffix == ".toml":
        besides = open_study(besides).path
    elif besides is None and (here / "study.json").is_file():
        return here
    records = [*here.glob("studies/*/study.json"), *here.glob("*/study.json"), here / "study.json"]
    known = [
        record
        for record in records
        if record.is_file()
        and not (besides and record.parent.resolve() == besides.resolve())
        and not is_of_another_program(record)
    ]
    if not known:
        raise UserError(
            "two or more studies" if besides else "a study in this folder, or the name of one",
            f"no {'other ' * (besides is not None)}studies/*/study.json here",
            "Name a study file or a results folder, or run a study first.",
        )
    return max(known, key=lambda record: record.stat().st_mtime).parent
