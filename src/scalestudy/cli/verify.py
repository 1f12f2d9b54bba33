"""`scalestudy verify`: whether a study is still as it was written."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from scalestudy.conduct.verified import Verified

STYLES = {
    "sound": "green",
    "without checksum": "dim",
    "missing": "red",
    "corrupt": "bold red",
    "newer": "bold red",
}


def verify(
    folder: Annotated[
        Path, typer.Argument(help="Results folder of a study, or its study file.", metavar="STUDY")
    ],
    format: Annotated[str, typer.Option(help="table or json.", metavar="FORMAT")] = "table",
) -> None:
    """Read everything a study has written, and say what is still sound.

    Checked are all records against their checksums, every line of the epochs, models and checkpoints, the
    prepared data and the splits. Nothing is mended or written.

    \b
    sound             as it was written
    without checksum  whole, but of a version that wrote none
    missing           not there, though it should be
    corrupt           truncated, altered, or not to be read
    newer             written by a later version: update scalestudy

    Exit code 0 when all is sound, 1 when something is not. A run with a damaged record is neither trained
    again nor counted in reports: restore its folder from a backup, or move it out of the study.
    """  # noqa: D301 (the mark keeps the lines as they are)
    import json

    from scalestudy.cli.console import out
    from scalestudy.cli.formats import check_format
    from scalestudy.conduct.verify import verify as verified

    check_format(format)
    target = _target(folder)
    with _bar(target) as on_read:
        files = verified(target, on_read)
    wrong = [each for each in files if not each.sound]
    if format == "json":
        rows = [
            {"path": each.path, "kind": each.kind, "state": each.word, "reason": each.why} for each in files
        ]
        print(json.dumps({"folder": str(target), "sound": not wrong, "files": rows}, indent=1))
    else:
        console = out()
        console.print(_table(files))
        noted = [each for each in files if each.why]
        for each in noted:
            console.print(f"{each.path}: {each.word}: {each.why}", markup=False)
        last = "all sound" if not wrong else f"{len(wrong)} not sound"
        console.print(f"{len(files)} files: {last}.", style="green" if not wrong else "red")
    raise typer.Exit(1 if wrong else 0)


def _target(given: Path) -> Path:
    from scalestudy.study.load import load_study
    from scalestudy.study.store import default_folder

    return default_folder(given, load_study(given).name) if given.suffix == ".toml" else given


def _table(files: "Sequence[Verified]") -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    words = [word for word in STYLES if any(each.word == word for each in files)]
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("what")
    for word in words:
        table.add_column(word, justify="right")
    for kind in dict.fromkeys(each.kind for each in files):
        count = Counter[str](each.word for each in files if each.kind == kind)
        cells = [Text(str(count[word]) if count[word] else "", style=STYLES[word]) for word in words]
        table.add_row(kind, *cells)
    return table


@contextmanager
def _bar(folder: Path) -> Iterator[Callable[[str, int], None]]:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from scalestudy.cli.console import err
    from scalestudy.conduct.verify import bytes_to_read

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err(), transient=True, disable=not err().is_terminal) as progress:
        bar = progress.add_task("Reading", total=bytes_to_read(folder) or None)
        yield lambda name, size: progress.update(bar, advance=size, description=f"Reading {Path(name).name}")
