"""Asking Slurm to cancel jobs."""

from collections.abc import Sequence

from scalestudy.launch.slurm.queue.client import ask, chunks


def cancel(jobs: Sequence[str]) -> None:
    """Cancel jobs and tasks of arrays, a hundred in a call; those that have ended are passed over.

    Raises:
        SlurmSilent: If Slurm does not answer.
        SlurmRefused: If it refuses, with its own words.
        SlurmAbsent: If this machine has no Slurm.
    """
    for some in chunks(list(jobs)):
        ask("scancel", "--quiet", *some)
