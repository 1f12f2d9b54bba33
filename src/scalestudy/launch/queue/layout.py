"""How the workers of a point are laid out over the nodes of a site."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.launch.queue.site import Site, memory_bytes, seconds
from scalestudy.study.expand import expand
from scalestudy.study.file import Study
from scalestudy.study.point import Point
from scalestudy.util.errors import UserError


@dataclass(frozen=True)
class JobLayout:
    """What a job asks for.

    Attributes:
        nodes: Nodes.
        tasks: Processes in all.
        tasks_per_node: Most processes of a node; the first nodes are filled first.
        cpus_per_task: Cores of a process.
        gpus_per_node: GPUs of each node; 0 when it computes on CPUs.
        seconds: Time limit; None for none.
        survives: Whether the others go on where a process has ended.
    """

    nodes: int
    tasks: int
    tasks_per_node: int
    cpus_per_task: int
    gpus_per_node: int
    seconds: int | None
    survives: bool = False

    @property
    def gpus_per_task(self) -> int:
        """GPUs of a process."""
        return self.gpus_per_node // self.tasks_per_node

    @property
    def cpus_per_node(self) -> int:
        """Most cores of a node."""
        return self.cpus_per_task * self.tasks_per_node


def layout(point: Point, site: Site) -> JobLayout:
    """Layout of a point that `expand_for` has found possible on the site."""
    tasks = point.processes
    launch = point.launch
    nodes = site.machine().nodes(tasks, launch.cpus_per_worker, launch.device)
    tasks_per_node = -(-tasks // nodes)  # even: 6 workers on nodes of 4 are 3 + 3
    workers = point.traits.workers_at_once(point.workers)
    return JobLayout(
        nodes=nodes, tasks=tasks, tasks_per_node=tasks_per_node,
        cpus_per_task=workers * launch.cpus_per_worker,
        gpus_per_node=tasks_per_node * workers if site.gpus_per_node and launch.device != "cpu" else 0,
        seconds=seconds(site.for_nodes(nodes).time_limit), survives=not point.traits.synchronous,
    )  # fmt: skip


def gpu_request(site: Site, layout: JobLayout) -> str:
    """The site's, with the number that its kind counts: of a node (also PBS), of a task, or in total."""
    counts = {"--gpus-per-task": layout.gpus_per_task, "--gpus": layout.gpus_per_task * layout.tasks}
    count = counts.get(site.gpu_request.partition("=")[0], layout.gpus_per_node)
    return site.gpu_request.replace("{gpus}", str(count))


def allocation(site: Site, layouts: Sequence[JobLayout]) -> str:
    """What jobs allocate, and what of it their workers use: GPUs where all of them have some, else cores.

    With the hours that are charged at most, where all jobs have a time limit.
    """
    gpus = all(layout.gpus_per_node for layout in layouts)
    unit, of_node = ("GPU", site.gpus_per_node) if gpus else ("core", site.cpus_per_node)
    used = [layout.tasks * (layout.gpus_per_task if gpus else layout.cpus_per_task) for layout in layouts]
    whole = site.whole_nodes or (gpus and "{gpus}" not in site.gpu_request)
    taken = [layout.nodes * of_node if whole else count for layout, count in zip(layouts, used, strict=True)]
    share = sum(used) / sum(taken)
    text = (
        f"Workers use {sum(used)} of the {sum(taken)} {unit}s that {len(layouts)} jobs allocate ({share:.0%})"
    )
    limits = [layout.seconds for layout in layouts if layout.seconds is not None]
    if len(limits) == len(layouts):
        hours = sum(count * limit / 3600 for count, limit in zip(taken, limits, strict=True))
        text += f": at most {hours:.3g} {unit}-hours by their time limits"
    return f"{text}."


def shares_nodes(site: Site, layout: JobLayout) -> bool:
    """Whether other jobs may compute on the nodes of a job, by what it asks for."""
    return not site.whole_nodes and layout.cpus_per_node < site.cpus_per_node


def memory_per_node(site: Site, layout: JobLayout) -> str | None:
    """What a job asks for on each node, in Slurm's form; None where the profile names nothing.

    A job that shares its nodes takes as large a part of the memory as of the cores or of the GPUs,
    whichever is larger.
    """
    if site.memory_per_node is None or site.whole_nodes:
        return site.memory_per_node
    cores = layout.cpus_per_node / site.cpus_per_node
    gpus = layout.gpus_per_node / site.gpus_per_node if site.gpus_per_node else 0.0
    share = max(cores, gpus)
    if share >= 1:
        return site.memory_per_node
    return f"{max(1, int(memory_bytes(site.memory_per_node) * share / 2**20))}M"


def expand_for(study: Study, site: Site) -> list[Point]:
    """Points of a study on the nodes of a site; `native` is mirrored on one node, multiworker across.

    Raises:
        UserError: If a combination is impossible there, or if the sweep names several sites.
    """
    if "launch.site" in study.sweep.other:
        raise UserError(
            "one launch.site for the whole study",
            f"it in [sweep]{study.place.of('launch.site')}",
            "Write it under [launch]; to compare sites, run the study once on each.",
        )
    machine = site.machine()
    return expand(
        study, gpus=machine.gpus, cores=machine.cores, cluster=True, tasks_per_node=machine.tasks_per_node
    )
