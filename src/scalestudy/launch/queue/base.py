"""What a queue is: a program family that takes job scripts, and answers what became of them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from scalestudy.errors import RunError, UserError
from scalestudy.study.records import JobRecord, Record

if TYPE_CHECKING:
    from scalestudy.launch.queue.script import Dialect
    from scalestudy.launch.queue.submit import Batch

WAITING = {
    "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT",
    "RESV_DEL_HOLD", "POWER_UP_NODE",
}  # fmt: skip
"""States in which a job is not over and nothing of it runs."""
HELD = {"REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
"""Those of them that last until somebody releases the job."""
RUNNING = {
    "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING",
}  # fmt: skip
"""States in which a job runs, or has not quite ended."""
ENDED = {
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
    "PREEMPTED", "REVOKED", "TIMEOUT",
}  # fmt: skip
"""States of a job that is over."""
UNKNOWN = "UNKNOWN"
"""State of a job that its queue has forgotten."""


class JobView(Record):
    """What a queue says of one job."""

    job: str
    """"123", or "123_4" for a task of an array."""
    state: str
    reason: str = ""
    """Why it is pending, or how it ended, in the queue's own word; "" for none."""
    nodes: str = ""
    """Host list, "node[1-2]"."""
    start: str = ""
    """When it started or is expected to, local time as ISO 8601; "" if that is unknown."""
    exit_code: int | None = None
    signal: int | None = None
    by: str = ""
    """User who cancelled it, by id or name."""

    @property
    def held(self) -> bool:
        """Whether somebody must release it before it can start: when it does, nobody can expect."""
        return self.state in HELD or (self.waiting and self.reason.startswith("JobHeld"))

    @property
    def live(self) -> bool:
        """Whether it waits or runs."""
        return self.state in WAITING or self.state in RUNNING

    @property
    def waiting(self) -> bool:
        """Whether it waits."""
        return self.state in WAITING

    @property
    def ended(self) -> bool:
        """Whether it is over, by the queue's word."""
        return self.state in ENDED


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


class ProgramAbsent(Exception):
    """There is no such program."""


class ProgramSilent(Exception):
    """It took too long."""


def answer(command: Sequence[str], environment: Mapping[str, str], limit: float) -> tuple[int, str, str]:
    """Exit code, output and errors of a command.

    Args:
        command: Program and arguments.
        environment: All of its variables.
        limit: Seconds that it may take.

    Raises:
        ProgramAbsent: If there is none, or none that may be run.
        ProgramSilent: If it took longer; it has been ended.
    """
    try:
        process = subprocess.Popen(
            list(command), env=dict(environment), text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
    except (FileNotFoundError, PermissionError):
        raise ProgramAbsent(command[0]) from None
    try:
        output, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise ProgramSilent(command[0]) from None
    finally:
        # A site's wrapper may have started others, which would keep the pipes open.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()
    return process.returncode, output, errors


def time_limit(environment: Mapping[str, str], variable: str, default: float) -> float:
    """Seconds that a queue's command may take.

    Args:
        environment: Usually `os.environ`.
        variable: What says otherwise than the default.
        default: Seconds.

    Raises:
        UserError: If the variable holds no positive number.
    """
    text = environment.get(variable, "").strip()
    if not text:
        return default
    with contextlib.suppress(ValueError):
        if 0 < float(text) < float("inf"):
            return float(text)
    raise UserError(f"a number of seconds in {variable}", repr(text), f"Write {default:g}.")


class QueueSilent(RunError):
    """A queue gave no answer in time; `reason` says how, in one line."""

    reason: str


class QueueRefused(UserError):
    """A queue said no; `words` are its own."""

    words: str


class QueueAbsent(UserError):
    """This machine has no such queue, or belongs to no cluster."""


class Queue(Protocol):
    """One kind of queue. All its methods may raise QueueSilent, QueueRefused and QueueAbsent.

    Attributes:
        name: As `launch.on` names it.
        title: As users call it: "Slurm".
        program: The command that submits.
        dialect: What its job scripts say in words of their own.
    """

    name: str
    title: str
    program: str
    dialect: Dialect

    def ask(self, jobs: Sequence[str], *, cluster: str = "") -> Mapping[str, JobView]:
        """What it says of these jobs, in few calls; one that it has forgotten has the state "UNKNOWN"."""
        ...

    def marked(self) -> list[MarkedJob]:
        """This user's jobs that are not over and carry a mark, tasks of arrays one by one."""
        ...

    def cluster_name(self) -> str:
        """Its own name of the cluster that this machine talks to; "" if it does not say."""
        ...

    def largest_array(self) -> int:
        """Tasks that one array may have, by its own word where it has one."""
        ...

    def options(self, batch: Batch, jobs: Sequence[str]) -> list[str]:
        """Options of the command that submits a batch, given the ids of the batches before it."""
        ...

    def submit(self, script: Path, options: Sequence[str]) -> str:
        """Submit a script, and return the id of the job."""
        ...

    def task(self, job: str, index: int) -> str:
        """Id of a task of an array."""
        ...

    def cancel(self, jobs: Sequence[str]) -> None:
        """Cancel jobs and tasks of arrays; those that have ended are passed over."""
        ...

    def in_words(self, reason: str) -> str:
        """What a waiting job waits for, in words."""
        ...


def job_of(record: JobRecord, queue: Queue, whole: str) -> str:
    """Id of the job of a run, given that of the job that was submitted."""
    return whole if record.task is None else queue.task(whole, record.task)
