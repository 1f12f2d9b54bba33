"""Reading a study file."""

from pathlib import Path

from scalestudy.study.file import Study, read_text
from scalestudy.study.parse import parse_study


def load_study(path: str | Path) -> Study:
    """Read a study file.

    Raises:
        UserError: Naming the file and the line, for anything that is not right in it.
    """
    path = Path(path)
    return parse_study(read_text(path), path)
