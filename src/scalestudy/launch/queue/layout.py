"""How the workers of a point are laid out over the nodes of a site."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from scalestudy.launch.queue.site import MEMORY, Site, seconds
from scalestudy.study.expand import expand
from scalestudy.study.file import Study
from scalestudy.study.point import Point
from scalestudy.util.errors import UserError


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
        seconds=seconds(site.time_limit),
    )


def memory_bytes(text: str) -> int:
    """Bytes of a Slurm memory request, "180G"; a bare number is in MiB. 0 for what is none."""
    match = re.fullmatch(MEMORY, text.strip(), re.IGNORECASE)
    return int(float(match[1]) * 1024 ** ("KMGT".index(match[2].upper() or "M") + 1)) if match else 0


def memory_per_node(site: Site, layout: Layout) -> str | None:
    """What a job asks for on each node, in Slurm's form; None where the profile names nothing.

    A job that shares its nodes takes as large a part of the memory as of the cores or of the GPUs,
    whichever is larger.
    """
    if site.memory_per_node is None or site.exclusive:
        return site.memory_per_node
    cores = layout.cpus_per_task * layout.tasks_per_node / site.cpus_per_node
    gpus = layout.gpus_per_node / site.gpus_per_node if site.gpus_per_node else 0.0
    share = max(cores, gpus)
    if share >= 1:
        return site.memory_per_node
    return f"{max(1, int(memory_bytes(site.memory_per_node) * share / 2**20))}M"


DRIVER_LIBRARY = "libcuda.so.1"
LIBRARY_FOLDERS = ("lib", "lib64", "usr/lib", "usr/lib64", "usr/local/lib", "opt")
"""Where an image may have it, at most two folders further below."""


def refuse_without_driver(site: Site, layouts: Iterable[Layout]) -> None:
    """Refuse GPUs in a Charliecloud image that has not been given the driver: ch-run brings none in.

    An image that is no folder here (a .sqfs file, a $VARIABLE) is not looked into.

    Raises:
        UserError: If the jobs have GPUs, and the image none of the driver's libraries.
    """
    container = site.container
    if container is None or container.runtime != "charliecloud" or container.gpu == "none":
        return
    image = Path(container.image)
    if not image.is_dir() or not any(each.gpus_per_node for each in layouts):
        return
    patterns = (DRIVER_LIBRARY, f"*/{DRIVER_LIBRARY}", f"*/*/{DRIVER_LIBRARY}")
    if not any(True for folder in LIBRARY_FOLDERS for each in patterns for _ in (image / folder).glob(each)):
        raise UserError(
            "the GPU driver's libraries in a Charliecloud image, since ch-run brings none in",
            f"no {DRIVER_LIBRARY} in {image}",
            f"On a node with GPUs, run `ch-fromhost --nvidia {image}` (it needs nvidia-container-cli). "
            'Where binds bring the driver in, set gpu = "none" under [container]; to compute on CPUs, '
            'device = "cpu".',
        )


def expand_for(study: Study, site: Site) -> list[Point]:
    """Points of a study on the nodes of a site; `native` is mirrored on one node, multiworker across.

    Raises:
        UserError: If a combination is impossible there, or if the sweep names several sites.
    """
    for key in ("launch.on", "launch.site"):
        if key in study.sweep.other:
            raise UserError(
                f"one {key} for the whole study",
                f"it in [sweep]{study.place.of(f'sweep.{key}')}",
                "Write it under [launch]; to compare sites, run the study once on each.",
            )
    machine = site.machine()
    return expand(
        study, gpus=machine.gpus, cores=machine.cores, cluster=True, tasks_per_node=machine.tasks_per_node
    )
