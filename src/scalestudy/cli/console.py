"""Where the command line prints, and how it prints errors: a user's, and ours."""

from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.util.errors import ScalestudyError

if TYPE_CHECKING:
    from rich.console import Console


def out() -> "Console":
    """Standard output. Long lines stay whole, so that paths can be copied."""
    import sys

    from scalestudy.report.console import PlainConsole

    # In a file or a pipe there is no width to keep to.
    return PlainConsole(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 160)


def err() -> "Console":
    """Standard error."""
    from scalestudy.report.console import PlainConsole

    return PlainConsole(highlight=False, soft_wrap=True, stderr=True)


def print_error(error: ScalestudyError) -> None:
    """The three parts of an error, each on a line of its own."""
    from rich.text import Text

    console = err()
    rows = (("Expected", error.expected), ("Received", error.received), ("", error.action))
    console.print(Text("Error", style="bold red"))
    for label, text in rows:
        console.print(Text.assemble((f"  {label:<9}" if label else "  ", "red"), text))


class Bug(ScalestudyError):
    """An error of ours (exit code 70, as sysexits.h has it for software)."""

    exit_code = 70


def bug_of(error: Exception) -> Bug:
    """The error as a message that names the file of its traceback, which can be sent."""
    import traceback

    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = f" ({Path(last[0].filename).name}, line {last[0].lineno})" if last else ""
    what = f"{type(error).__name__}: {error}"
    file = _written("".join(traceback.format_exception(error)))
    where = f"Its traceback is in {file}: please" if file else "Please"
    return Bug(
        "a command that ends, or says what is wrong",
        f"a bug in scalestudy: {what[:500]}{place}",
        f"{where} report it with the command and its files, so that it can be mended.",
    )


def _written(text: str) -> Path | None:
    """The file that holds the traceback, in the user's folder for logs or among temporary files."""
    import contextlib
    import os
    import platform
    import sys
    import tempfile
    import time
    from importlib.metadata import version

    import platformdirs

    head = [
        f"scalestudy {version('scalestudy')}, Python {platform.python_version()}, {platform.platform()}",
        f"command: {sys.argv!r}",
        "",
    ]
    name = f"bug-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    for folder in (
        Path(platformdirs.user_log_dir("scalestudy", appauthor=False)),
        Path(tempfile.gettempdir()),
    ):
        with contextlib.suppress(OSError, RuntimeError):
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / name
            file.write_text("\n".join(head) + text, encoding="utf-8", errors="backslashreplace")
            return file
    return None
