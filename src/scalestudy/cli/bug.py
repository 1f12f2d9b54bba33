"""What is said of an error that is ours: its traceback goes to a file that can be sent."""

import contextlib
import os
import platform
import sys
import tempfile
import time
import traceback
from pathlib import Path

from scalestudy.util.errors import ScalestudyError


class Bug(ScalestudyError):
    """An error of ours (exit code 70, as sysexits.h has it for software)."""

    exit_code = 70


def reported(error: Exception) -> Bug:
    """The error as a message that names the file of its traceback."""
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
