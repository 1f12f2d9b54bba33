"""`scalestudy status --verify`: whether a study is still as it was written."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from scalestudy.app.verify import Verified

STYLES = {"sound": "green", "missing": "red", "corrupt": "bold red"}


def print_verified(folder: Path, form: str) -> bool:
    """Verify a results folder and print what was found, as "table" or "json"; whether all is sound."""
    import json

    from rich.markup import escape

    from scalestudy.app.verify import verify
    from scalestudy.cli.console import err, out

    with err().status("Reading") as status:
        files = verify(folder, lambda name: status.update(f"Reading {escape(name)}"))
    wrong = [file for file in files if not file.sound]
    if form == "json":
        rows = [
            {"path": file.path, "kind": file.kind, "state": file.word, "reason": file.why} for file in files
        ]
        print(json.dumps({"folder": str(folder), "sound": not wrong, "files": rows}, indent=1))
        return not wrong
    console = out()
    console.print(_table(files))
    for file in files:
        if file.word != "sound":
            console.print(f"{file.path}: {file.word}" + (f": {file.why}" if file.why else ""), markup=False)
    last = "all sound" if not wrong else f"{len(wrong)} not sound"
    console.print(f"{len(files)} files: {last}.", style="green" if not wrong else "red")
    return not wrong


def _table(files: "Sequence[Verified]") -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    words = [word for word in STYLES if any(file.word == word for file in files)]
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("what")
    for word in words:
        table.add_column(word, justify="right")
    for kind in dict.fromkeys(file.kind for file in files):
        count = Counter[str](file.word for file in files if file.kind == kind)
        cells = [Text(str(count[word]) if count[word] else "", style=STYLES[word]) for word in words]
        table.add_row(kind, *cells)
    return table
