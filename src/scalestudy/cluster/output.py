"""Where the output of a worker goes."""

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.variables import Environment


def keeps_own_log(placement: Placement, environment: Environment) -> bool:
    """Whether this process sends its output to the log of its rank itself.

    Our local launcher has done it already; at a terminal (alone, or under torchrun) output stays there.
    All other launchers mix the output of their processes.
    """
    if "SCALESTUDY_LAUNCHER" in environment or placement.source == "torchrun":
        return False
    return placement.source != "alone" or "SLURM_JOB_ID" in environment
