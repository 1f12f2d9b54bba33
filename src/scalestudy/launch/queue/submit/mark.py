"""What a job carries in its queue, so that it is known as its study's whatever its records say. Pure."""

import hashlib
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

_FORM = re.compile(r"scalestudy:([0-9a-f]{16}):([0-9a-f]{16})\b")


@dataclass(frozen=True)
class Mark:
    """Which study a job is of, and which submission: in the queue, in its script, and in its runs' job.json.

    Attributes:
        study: Digest of the real path of the study's folder: it outlives the folder.
        submission: 16 random hexadecimal digits; a folder that was made again has others.
    """

    study: str
    submission: str

    def __str__(self) -> str:
        return f"scalestudy:{self.study}:{self.submission}"


@dataclass(frozen=True)
class MarkedJob:
    """A job in a queue, or a task of an array, that carries a mark.

    Attributes:
        job: Its id, as a run's record has it.
        whole: Id of the job that was submitted: of a task, its array's.
        name: As the queue shows it.
        state: In the common words.
        mark: What it carries.
    """

    job: str
    whole: str
    name: str
    state: str
    mark: Mark


def study_digest(folder: Path) -> str:
    """What jobs of the study in this folder are known by."""
    return hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:16]


def new_mark(folder: Path) -> Mark:
    """The mark of one more submission of the study in this folder."""
    return Mark(study_digest(folder), secrets.token_hex(8))


def no_mark(folder: Path) -> Mark:
    """That of a submission which is only shown."""
    return Mark(study_digest(folder), "0" * 16)


def read_mark(text: str) -> Mark | None:
    """The mark within a comment."""
    found = _FORM.search(text)
    return Mark(found[1], found[2]) if found else None
