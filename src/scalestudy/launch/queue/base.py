"""What a queue is: a program family that takes job scripts, and answers what became of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from scalestudy.errors import RunError, UserError
from scalestudy.launch.queue.jobs.view import JobView
from scalestudy.launch.queue.script.job import Dialect
from scalestudy.launch.queue.submit.mark import MarkedJob
from scalestudy.launch.queue.submit.plan import Batch


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
