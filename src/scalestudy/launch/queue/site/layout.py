"""How the workers of a point are laid out over the nodes of a site."""

from dataclasses import dataclass

from scalestudy.launch.queue.site import time_limit
from scalestudy.launch.queue.site.profile import Site
from scalestudy.study.point import Point


@dataclass(frozen=True)
class Layout:
    """What a job asks for.

    Attributes:
        nodes: Nodes.
        tasks: Processes in all.
        tasks_per_node: Most processes of a node; the first nodes are filled first.
        cpus_per_task: Cores of a process.
        gpus_per_node: GPUs of each node; 0 when it computes on CPUs.
        seconds: Time limit; None for none.
    """

    nodes: int
    tasks: int
    tasks_per_node: int
    cpus_per_task: int
    gpus_per_node: int
    seconds: int | None

    @property
    def gpus_per_task(self) -> int:
        """GPUs of a process."""
        return self.gpus_per_node // self.tasks_per_node


def layout(point: Point, site: Site) -> Layout:
    """Layout of a point that `expand_for` has found possible on the site."""
    tasks = point.processes
    launch = point.launch
    nodes = site.machine().nodes(tasks, launch.cpus_per_worker, launch.device)
    each = -(-tasks // nodes)  # even: 6 workers on nodes of 4 are 3 + 3
    holds = point.traits.workers_at_once(point.workers)
    return Layout(
        nodes=nodes,
        tasks=tasks,
        tasks_per_node=each,
        cpus_per_task=holds * launch.cpus_per_worker,
        gpus_per_node=each * holds if site.gpus_per_node and launch.device != "cpu" else 0,
        seconds=time_limit.limit(point, site.time_limit, site.time_limit_scaling, site.time_limit_minimum),
    )
