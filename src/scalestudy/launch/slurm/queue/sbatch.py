"""One call of sbatch."""

from collections.abc import Sequence
from pathlib import Path

from scalestudy.launch.queue.submit.plan import Batch
from scalestudy.launch.slurm.queue.client import SlurmRefused, ask
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
        SlurmSilent: If Slurm does not answer; it may have the job all the same.
        SlurmRefused: If it refuses, with its own words.
        SlurmAbsent: If this machine has no Slurm.
    """
    try:
        printed = ask("sbatch", *arguments, str(script))
    except SlurmRefused as refused:
        raise explained(refused, script) from None
    job = parse_submitted(printed)
    if job is None:
        raise SlurmRefused("sbatch", printed.strip() or "nothing, not even the id of a job")
    return job
