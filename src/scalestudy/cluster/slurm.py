"""A process that srun started."""

from collections.abc import Sequence

from scalestudy.cluster.hostlist import expand_hosts, tasks_per_node
from scalestudy.cluster.placement import Placement
from scalestudy.cluster.variables import Environment, Variables, job_port
from scalestudy.util.errors import UserError

FIRST_SPECIAL_STEP = 0xFFFFFFF0
"""Numbers from here on are Slurm's own steps: the batch script, an interactive shell."""


def slurm(environment: Environment) -> Placement | None:
    """The placement of a task of a job step; None outside of Slurm and in a batch script itself.

    Raises:
        UserError: If the step's variables are incomplete, contradict each other, or describe a
            distribution of tasks over nodes that is neither block nor cyclic.
    """
    if not is_task(environment):
        return None
    variables = Variables(environment, "slurm")
    rank = variables.number("SLURM_PROCID")
    size = variables.number(
        "SLURM_STEP_NUM_TASKS" if "SLURM_STEP_NUM_TASKS" in environment else "SLURM_NTASKS"
    )
    hosts = expand_hosts(variables.text("SLURM_STEP_NODELIST"))
    counts = tasks_per_node(variables.text("SLURM_STEP_TASKS_PER_NODE"))
    if len(hosts) != len(counts) or sum(counts) != size or rank >= size:
        raise UserError(
            "the tasks of a Slurm step to add up",
            f"rank {rank} of {size} tasks, {environment['SLURM_STEP_TASKS_PER_NODE']} on "
            f"{environment['SLURM_STEP_NODELIST']} (from slurm)",
            "Start the workers with srun, and clear stale SLURM_* variables.",
        )
    nodes = _distribute(counts, environment.get("SLURM_DISTRIBUTION", "block"))
    node, local = nodes[rank], nodes[:rank].count(nodes[rank])
    said = variables.number("SLURM_NODEID"), variables.number("SLURM_LOCALID")
    if said != (node, local):
        raise UserError(
            f"rank {rank} to be task {local} of node {node} ({hosts[node]})",
            f"SLURM_LOCALID={said[1]} and SLURM_NODEID={said[0]}",
            "Start the workers with `srun --distribution=block`, and clear stale SLURM_* variables.",
        )
    return Placement(
        rank, size, local, counts[node], node, tuple(hosts[each] for each in nodes), "slurm",
        port=job_port(environment),
        gpus=variables.number("SLURM_GPUS_ON_NODE") if "SLURM_GPUS_ON_NODE" in environment else None,
    )  # fmt: skip


def is_task(environment: Environment) -> bool:
    """Whether a step of a job, and not its batch script, is where this process lives."""
    step = environment.get("SLURM_STEP_ID", "")
    return step.isascii() and step.isdigit() and int(step) < FIRST_SPECIAL_STEP


def _distribute(counts: Sequence[int], distribution: str) -> list[int]:
    """The node of each rank."""
    order = distribution.partition(",")[0].partition(":")[0]
    if order == "cyclic":
        return [node for turn in range(max(counts)) for node, count in enumerate(counts) if turn < count]
    if order != "block" and len(counts) > 1 and max(counts) > 1:
        raise UserError(
            "tasks distributed over nodes in blocks, or cyclically",
            f"SLURM_DISTRIBUTION={distribution}",
            "Start the workers with `srun --distribution=block`.",
        )
    return [node for node, count in enumerate(counts) for _ in range(count)]
