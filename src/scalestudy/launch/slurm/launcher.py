"""Slurm as a queue, and as a launcher."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from scalestudy.launch.queue.jobs.view import JobView
from scalestudy.launch.queue.launcher import QueueLauncher
from scalestudy.launch.queue.submit.mark import MarkedJob
from scalestudy.launch.queue.submit.plan import Batch
from scalestudy.launch.slurm.queue import ask_jobs, cancel, reasons, sbatch
from scalestudy.launch.slurm.queue.parse_jobs import parse_array_limit
from scalestudy.launch.slurm.script import DIALECT


class Slurm:
    """Slurm, by its client commands."""

    name = "slurm"
    title = "Slurm"
    program = "sbatch"
    dialect = DIALECT

    def ask(self, jobs: Sequence[str], *, cluster: str = "") -> Mapping[str, JobView]:
        """What Slurm says of these jobs."""
        return ask_jobs.ask_jobs(jobs, cluster=cluster)

    def marked(self) -> list[MarkedJob]:
        """This user's jobs with a mark in their comment."""
        return ask_jobs.marked()

    def cluster_name(self) -> str:
        """Slurm's name of the cluster."""
        return ask_jobs.cluster_name()

    def largest_array(self) -> int:
        """By slurmctld's MaxArraySize and max_array_tasks."""
        return parse_array_limit(ask_jobs.configuration())

    def options(self, batch: Batch, jobs: Sequence[str]) -> list[str]:
        """Options of sbatch for a batch."""
        return sbatch.options(batch, jobs)

    def submit(self, script: Path, options: Sequence[str]) -> str:
        """Call sbatch."""
        return sbatch.sbatch(script, options)

    def task(self, job: str, index: int) -> str:
        """Id of a task: "123_4"."""
        return f"{job}_{index}"

    def cancel(self, jobs: Sequence[str]) -> None:
        """Call scancel."""
        cancel.cancel(jobs)

    def in_words(self, reason: str) -> str:
        """What a pending job waits for."""
        return reasons.in_words(reason)


SLURM = QueueLauncher(Slurm(), checked=True)
