"""PBS Professional as a queue, and as a launcher."""

import getpass
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from scalestudy.launch.pbs import reasons
from scalestudy.launch.pbs.client import PbsRefused, ask
from scalestudy.launch.pbs.parse_jobs import parse_marked, parse_qstat, parse_submitted, task, whole
from scalestudy.launch.pbs.script import DIALECT
from scalestudy.launch.queue.jobs.view import UNKNOWN, JobView
from scalestudy.launch.queue.launcher import QueueLauncher
from scalestudy.launch.queue.submit.mark import MarkedJob
from scalestudy.launch.queue.submit.plan import LARGEST_ARRAY, Batch

T = TypeVar("T")
MOST = 100
"""Ids in one call: they fit a command line, and keep the server's answer small."""


class Pbs:
    """PBS Professional and OpenPBS, by their client commands."""

    name = "pbs"
    title = "PBS"
    program = "qsub"
    dialect = DIALECT

    def ask(self, jobs: Sequence[str], *, cluster: str = "") -> Mapping[str, JobView]:
        """What PBS says of these jobs: of those that qstat has forgotten, what its history says.

        Raises:
            PbsSilent, PbsRefused, PbsAbsent: If it does not.
        """
        found = _qstat(jobs)
        forgotten = [job for job in jobs if job not in found]
        if forgotten:
            found |= _qstat(forgotten, "-x")
        return {job: found.get(job) or JobView(job=job, state=UNKNOWN) for job in jobs}

    def marked(self) -> list[MarkedJob]:
        """This user's jobs with a mark among their variables.

        Raises:
            PbsSilent, PbsRefused, PbsAbsent: If PBS does not say.
        """
        ids = ask("qselect", "-u", getpass.getuser()).split()
        return [each for text in _details(ids) for each in _read(parse_marked, text)]

    def cluster_name(self) -> str:
        """Nothing: the ids of jobs name their server."""
        return ""

    def largest_array(self) -> int:
        """Fewer than PBS takes as it comes (max_array_size: 10000)."""
        return LARGEST_ARRAY

    def options(self, batch: Batch, jobs: Sequence[str]) -> list[str]:
        """Options of qsub for a batch."""
        kinds = (("afterok", batch.afterok), ("afterany", batch.afterany))
        conditions = [":".join([kind, *(jobs[index] for index in after)]) for kind, after in kinds if after]
        return ["-W", f"depend={','.join(conditions)}"] if conditions else []

    def submit(self, script: Path, options: Sequence[str]) -> str:
        """Call qsub.

        Raises:
            PbsSilent, PbsRefused, PbsAbsent: If it does not take the script.
        """
        printed = ask("qsub", *options, str(script))
        job = parse_submitted(printed)
        if job is None:
            raise PbsRefused("qsub", printed.strip() or "nothing, not even the id of a job")
        return job

    def task(self, job: str, index: int) -> str:
        """Id of a task: "123[4].server"."""
        return task(job, index)

    def cancel(self, jobs: Sequence[str]) -> None:
        """Call qdel; what has ended is passed over."""
        for start in range(0, len(jobs), MOST):
            ask("qdel", *jobs[start : start + MOST])

    def in_words(self, reason: str) -> str:
        """What a waiting job waits for."""
        return reasons.in_words(reason)


def _qstat(jobs: Sequence[str], *history: str) -> dict[str, JobView]:
    found: dict[str, JobView] = {}
    for text in _details([whole(job) for job in jobs], *history):
        found |= _read(parse_qstat, text)
    return {job: found[job] for job in jobs if job in found}


def _details(jobs: Sequence[str], *history: str) -> Iterator[str]:
    ids = list(dict.fromkeys(jobs))
    for start in range(0, len(ids), MOST):
        yield ask("qstat", *history, "-t", "-f", "-F", "json", *ids[start : start + MOST])


def _read(parse: Callable[[str], T], text: str) -> T:
    try:
        return parse(text)
    except ValueError as error:
        raise PbsRefused("qstat", f"an answer that is not its JSON ({error})") from None


PBS = QueueLauncher(Pbs())
