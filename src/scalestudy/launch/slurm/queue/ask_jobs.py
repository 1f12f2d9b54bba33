"""Asking Slurm about many jobs in few calls, with accounting or without."""

import getpass
from collections.abc import Sequence

from scalestudy.launch.queue.jobs.view import UNKNOWN, JobView
from scalestudy.launch.queue.submit.mark import MarkedJob
from scalestudy.launch.slurm.queue.client import SlurmRefused, SlurmSilent, ask, chunks
from scalestudy.launch.slurm.queue.parse_jobs import (
    MARKED_FORMAT,
    SACCT_FORMAT,
    SQUEUE_FORMAT,
    parse_configuration,
    parse_marked,
    parse_sacct,
    parse_scontrol,
    parse_squeue,
)


def ask_jobs(jobs: Sequence[str], *, cluster: str = "") -> dict[str, JobView]:
    """What Slurm says of these jobs; one that it has forgotten has the state "UNKNOWN".

    One squeue for a hundred jobs; how ended ones ended is asked of sacct in the same way, or, where there
    is no accounting, of `scontrol show job` as long as Slurm remembers (MinJobAge).

    Args:
        jobs: Ids, "123" or "123_4".
        cluster: Cluster that they were given to, if it is known.

    Raises:
        SlurmSilent: If Slurm does not answer, or if this machine talks to another cluster.
        SlurmRefused: If Slurm refuses to say.
        SlurmAbsent: If this machine has no Slurm.
    """
    views = _queue(jobs)
    over = [job for job in jobs if job not in views or views[job].ended]
    if not over:
        return views
    told = _ended(over, [job for job in over if job in views])
    for job in over:
        # Accounting lags behind the controller, which says "running" to nobody once a job is over.
        if job in told and told[job].ended:
            reason = views[job].reason if job in views else told[job].reason
            views[job] = told[job].model_copy(update={"reason": reason})
    lost = [job for job in jobs if job not in views]
    if lost and cluster and (here := cluster_name()) != cluster:
        raise SlurmSilent("squeue", f"this machine asks the cluster {here}, the jobs are on {cluster}")
    return views | {job: JobView(job=job, state=UNKNOWN) for job in lost}


def marked() -> list[MarkedJob]:
    """This user's jobs that are not over and carry a mark in their comment.

    Raises:
        SlurmSilent, SlurmRefused, SlurmAbsent: If Slurm does not say.
    """
    return parse_marked(ask("squeue", "-h", "-r", "-u", getpass.getuser(), "-o", MARKED_FORMAT))


def cluster_name() -> str:
    """Slurm's name of the cluster that this machine talks to; "" if it does not say.

    Raises:
        SlurmSilent: If Slurm does not answer.
        SlurmAbsent: If this machine has no Slurm.
    """
    try:
        return configuration().get("ClusterName", "")
    except SlurmRefused:
        return ""


def configuration() -> dict[str, str]:
    """Slurm's settings by their names.

    Raises:
        SlurmSilent, SlurmRefused, SlurmAbsent: If it does not say.
    """
    return parse_configuration(ask("scontrol", "show", "config"))


def bases(jobs: Sequence[str]) -> list[str]:
    """The ids of whole jobs: an array once, however many of its tasks are named."""
    return list(dict.fromkeys(job.partition("_")[0] for job in jobs))


def _queue(jobs: Sequence[str]) -> dict[str, JobView]:
    found: dict[str, JobView] = {}
    for some in chunks(bases(jobs)):
        try:
            text = ask("squeue", "-h", "-r", "-t", "all", "-o", SQUEUE_FORMAT, "-j", ",".join(some))
        except SlurmRefused as refused:
            # The only job asked for is forgotten; of several, squeue passes over the forgotten ones.
            if "invalid job id" not in refused.words.lower():
                raise
        else:
            found |= parse_squeue(text)
    return {job: found[job] for job in jobs if job in found}


def _ended(jobs: Sequence[str], remembered: Sequence[str]) -> dict[str, JobView]:
    found: dict[str, JobView] = {}
    try:
        for some in chunks(bases(jobs)):
            found |= parse_sacct(ask("sacct", "-P", "-n", "-X", "-o", SACCT_FORMAT, "-j", ",".join(some)))
    except (SlurmRefused, SlurmSilent):
        pass  # No accounting here, or it is down: the controller knows the younger ones.
    told = {job: view for job, view in found.items() if view.ended}
    for base in bases([job for job in remembered if job not in told]):
        try:
            told = parse_scontrol(ask("scontrol", "show", "job", "-o", base)) | told
        except SlurmRefused:
            continue
    return told
