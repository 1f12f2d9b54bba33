"""A process of a PMIx job. PMIx tells in the environment which rank it is, but not of how many."""

from dataclasses import dataclass

from scalestudy.cluster.variables import Environment, Variables


@dataclass(frozen=True)
class PMIxName:
    """The name of a process in PMIx.

    Attributes:
        rank: Its rank.
        job: Its job (PMIx: namespace).
    """

    rank: int
    job: str


def pmix(environment: Environment) -> PMIxName | None:
    """The name that PMIx gave to this process, or None.

    `srun --mpi=pmix` names its job `slurm.pmix.JOB.STEP`. A name from another step was inherited, and
    says nothing of this process.

    Raises:
        UserError: If the rank is not a number.
    """
    if "PMIX_RANK" not in environment:
        return None
    job = environment.get("PMIX_NAMESPACE", "")
    step = f"{environment.get('SLURM_JOB_ID')}.{environment.get('SLURM_STEP_ID')}"
    if job.startswith("slurm.pmix.") and job != f"slurm.pmix.{step}":
        return None
    return PMIxName(Variables(environment, "pmix").number("PMIX_RANK"), job)
