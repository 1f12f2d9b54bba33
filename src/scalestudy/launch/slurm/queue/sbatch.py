"""One call of sbatch."""

import getpass
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from scalestudy.launch.queue.submit.plan import Batch
from scalestudy.launch.slurm.queue.client import SlurmRefused, SlurmSilent, ask
from scalestudy.launch.slurm.queue.parse_jobs import parse_submitted
from scalestudy.launch.slurm.queue.refusals import explained


def options(batch: Batch, jobs: Sequence[str]) -> list[str]:
    """Options of sbatch for a batch.

    Args:
        batch: The batch.
        jobs: Ids of the batches before it.
    """
    kinds = (("afterok", batch.afterok), ("afterany", batch.afterany))
    conditions = [":".join([kind, *(jobs[index] for index in after)]) for kind, after in kinds if after]
    if not conditions:
        return ["--parsable"]
    return ["--parsable", f"--dependency={','.join(conditions)}", "--kill-on-invalid-dep=yes"]


def sbatch(script: Path, arguments: Sequence[str]) -> str:
    """Submit a script.

    Returns:
        Id of the job.

    Raises:
        SlurmSilent: If Slurm does not answer, and does not say later either that it has the job.
        SlurmRefused: If it refuses, with its own words.
        SlurmAbsent: If this machine has no Slurm.
    """
    try:
        printed = ask("sbatch", *arguments, str(script))
    except SlurmRefused as refused:
        raise explained(refused, script) from None
    except SlurmSilent:
        # A busy controller may have taken the job and been too late to say so.
        job = _job_of(script)
        if job is None:
            raise
        return job
    job = parse_submitted(printed)
    if job is None:
        raise SlurmRefused("sbatch", printed.strip() or "nothing, not even the id of a job")
    return job


def _job_of(script: Path) -> str | None:
    """The job that was made of this script, if Slurm answers and has one."""
    with suppress(SlurmSilent, SlurmRefused):
        for line in ask("squeue", "-h", "-u", getpass.getuser(), "-o", "%F|%o").splitlines():
            job, _, command = line.partition("|")
            if command.strip() == str(script) and job.strip().isdigit():
                return job.strip()
    return None
