"""Options that several commands have, each defined once."""

from pathlib import Path
from typing import Annotated, Literal

import typer

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
        help='What is trained: "unet", "cnn", "resnet50", "keras:MODEL", or a Python file beside the study; '
        "a small U-Net when absent."
    ),
]
StrategyOption = Annotated[
    str,
    typer.Option(help="How workers combine their gradients: native (a process each), horovod, virtual, …"),
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
