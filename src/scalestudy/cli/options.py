"""Arguments and options that several commands share, and how commands find their study."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from scalestudy.config.settings import PlanSettings
    from scalestudy.store.study_folder import StudyFolder

MOST_WORKERS = 100_000
RECORDED_EPOCHS = (
    "a study for --epochs and --samples, since its runs recorded their epochs"
)
"""What is expected with these options."""


def option(
    text: str,
    metavar: str | None = None,
    default: str | bool = True,
    *,
    name: str | tuple[str, ...] = (),
    **more: Any,
) -> Any:
    """An option for `Annotated`: its help, the word for its value, and its default in words.

    `name` is one name or several, if they do not follow from the parameter's name.
    """
    names = name
    if isinstance(name, str):
        names = (name,)
    return typer.Option(
        *names,
        help=text,
        metavar=metavar,
        show_default=default,
        **more,
    )


def argument(text: str, metavar: str | None = None, default: str | bool = True) -> Any:
    """An argument for `Annotated`, in the same way."""
    return typer.Argument(
        help=text,
        metavar=metavar,
        show_default=default,
    )


StudyFile = Annotated[Path, argument("Study file.")]
ResultsOption = Annotated[
    Path | None,
    option(
        "Results folder.",
        "DIR",
        "studies/NAME beside the study file",
        name="--out",
    ),
]
AtMostOption = Annotated[
    int | None, option("Maximum number of jobs of the study in the queue.", "K", min=1)
]
ReportOption = Annotated[bool, option("Write the report at the end.")]
AnswerOption = Annotated[
    Literal["table", "json"], option("Output format.", name="--format")
]


def format_option(*formats: str) -> Any:
    """The option `--format`; the first format is the default."""
    text, default = ", ".join(formats), f"by the ending of --out, else {formats[0]}"
    return typer.Option(
        "--format",
        help=f"Output format: {text}.",
        metavar="FORMAT",
        show_default=default,
    )


FileOption = Annotated[
    Path | None,
    option(
        "File to write instead of printing. Figures of Markdown go to a folder beside it.",
        "FILE",
        name="--out",
    ),
]
OpenOption = Annotated[bool, option("Open the page in the browser.", name="--open")]
ForceOption = Annotated[bool, option("Overwrite existing files.", name="--force")]
TaskOption = Annotated[
    str | None,
    option(
        'Task: "unet", "torch_unet", "keras:MODEL", …, or a Python file beside the study.',
        default="what suits the data: the small CNN for classes, U-Net for masks",
    ),
]
DeviceOption = Annotated[
    str,
    option("Device of the workers; auto uses GPUs if there are any.", "auto|cpu|gpu"),
]
EnvironmentOption = Annotated[
    Path | None,
    option(
        "Virtual environment to compute in, such as that of the engine. Records are not asked for one.",
        "DIR",
        "this one",
        name="--environment",
    ),
]
SourceArgument = Annotated[
    str,
    argument(
        "Study file, or data source: a folder, a table of images, an .npz file, indents, digits.",
        "STUDY_OR_SOURCE",
    ),
]
ImageSizeOption = Annotated[
    tuple[int, int] | None,
    option("Height and width, in pixels, to which images are resized.", "H W"),
]
CacheOption = Annotated[Path | None, option("Folder of prepared data sets.", "DIR")]
StudyArgument = Annotated[
    Path | None,
    argument("Study file or results folder.", "STUDY", "the newest study here"),
]
PointsOption = Annotated[
    list[str] | None,
    option(
        "Only this point, or points such as 'horovod-*'. Repeatable.",
        "POINT",
        name="--point",
    ),
]
PointOption = Annotated[
    str | None, option("Point of the study.", "POINT", "see above", name="--point")
]
DryRunOption = Annotated[
    bool,
    option(
        "Show what would be done, without starting or writing anything.",
        name="--dry-run",
    ),
]
FromOption = Annotated[
    list[str] | None,
    option(
        "Table or logs of numbers measured elsewhere: CSV or JSON files, a folder, or a pattern such as"
        " 'logs/*.csv'. Repeatable. See `scalestudy docs guides/imported`.",
        "FILE",
        name="--from",
    ),
]
ColumnOption = Annotated[
    list[str] | None,
    option(
        "With --from: column for a role, such as workers=NGPUS. Repeatable.",
        "ROLE=NAME",
        name="--column",
    ),
]
RowOption = Annotated[
    Literal["run", "epoch"] | None,
    option("With --from: what a row is.", default="as the file tells"),
]
FromStrategyOption = Annotated[
    str | None,
    option("With --from: strategy of runs without one.", "NAME", name="--strategy"),
]
FromWorkersOption = Annotated[
    int | None,
    option(
        "With --from: workers of runs without a number.",
        "N",
        name="--workers",
        min=1,
    ),
]
MetricOption = Annotated[
    str | None, option("With --from: column of the quality.", "NAME", name="--metric")
]
BetterOption = Annotated[
    Literal["higher", "lower"] | None,
    option("With --from: direction of better quality.", name="--better"),
]
MarginOption = Annotated[
    str | None,
    option(
        "With --from: accepted loss of quality, in the metric's unit or as a percentage.",
        "M",
        "a rule for the metric",
        name="--quality-margin",
    ),
]

EpochsOption = Annotated[
    int | None,
    option(
        "Epochs of the training that is planned.",
        "E",
        "those of [plan], else of the study",
        min=1,
    ),
]
SamplesOption = Annotated[
    int | None,
    option(
        "Samples of the training set that is planned.",
        "N",
        "those of [plan], else of the study",
        min=1,
    ),
]


def plan_given(
    given: Path | None,
    opened: "StudyFolder",
    **options: float | None,
) -> "PlanSettings":
    """The training that is planned: as in the study file, if it is named, else as in the study.

    `options` are keys of [plan] that replace those that are not None.

    Raises:
        UserError: Something in the study file is wrong.
    """
    from scalestudy.config.parse import load_study

    # The file may have been edited since: a plan changes no run.
    if given is not None and given.is_file():
        plan = load_study(given).plan
    else:
        plan = opened.study.plan
    given_here = {key: value for key, value in options.items() if value is not None}
    return plan.model_copy(update=given_here)


def worker_counts(text: str) -> list[int]:
    """Parse numbers of workers such as "4" or "1,2,4".

    Raises:
        UserError: A word is not a number of workers.
    """
    words = [word.strip() for word in text.split(",")]
    if not all(map(_is_worker_count, words)):
        raise UserError(
            "numbers of workers after -n, such as 4 or 1,2,4",
            repr(text),
            "Correct it.",
        )
    # A number that is given twice would make the same points twice.
    return list(dict.fromkeys(map(int, words)))


def _is_worker_count(word: str) -> bool:
    # `isdigit` alone also accepts digits of other scripts and superscripts.
    if not (word.isascii() and word.isdigit()):
        return False
    return 0 < int(word) <= MOST_WORKERS


def seconds_given(text: str | None, name: str) -> float | None:
    """Parse a duration such as "2h", which the option `name` gives; None if it is not given.

    Raises:
        UserError: It is not a duration.
    """
    from scalestudy.util.units import seconds_of

    if text is None:
        return None
    try:
        return seconds_of(text)
    except ValueError as error:
        raise UserError(str(error), repr(text), f"Correct {name}.") from None


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
    # By its name in the file, as `run` has done without --out.
    folder = default_folder(given, load_study(given).name)
    if not (folder / "study.json").exists():
        raise UserError(
            "a study that has been run",
            f"{given}, without {folder}",
            f"Run it first: scalestudy run {given}",
        )
    return StudyFolder.open(folder)


def newest_study() -> Path:
    """The results folder to use if none is named: the working folder, or the newest study in it.

    Raises:
        UserError: There is none.
    """
    here = Path()
    if (here / "study.json").is_file():
        return here
    # Beside a study file, and in a folder of results.
    records = [*here.glob("studies/*/study.json"), *here.glob("*/study.json")]
    known = [record for record in records if record.is_file()]
    if not known:
        raise UserError(
            "a study in this folder, or the name of one",
            "no study in this folder",
            "Name a study file or a results folder, or run a study first.",
        )
    # A guess that every command names; equal times choose any of them.
    return max(known, key=lambda record: record.stat().st_mtime).parent
