"""What is to be conducted."""

import os
from dataclasses import dataclass
from pathlib import Path

from scalestudy.study.file import Study, read_text
from scalestudy.study.parse import load_study
from scalestudy.study.store import default_folder


@dataclass(frozen=True)
class Request:
    """A study to conduct.

    Attributes:
        study: The study.
        text: Text of its file.
        base: Folder that its relative paths are seen from.
        target: The results folder.
    """

    study: Study
    text: str
    base: Path
    target: Path


def request_of(file: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> Request:
    """The study of a file.

    Args:
        file: The study file.
        out: The results folder; studies/NAME beside the study file when None.

    Raises:
        UserError: Naming the line of whatever is not right.
    """
    path = Path(file)
    study = load_study(path)
    target = Path(out) if out is not None else default_folder(path, study.name)
    return Request(study, read_text(path), path.parent, target)
