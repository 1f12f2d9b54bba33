"""The job of a point: its layout on the nodes of a site, and the contents of its script."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scalestudy.config.expand import expand
from scalestudy.config.file import Study
from scalestudy.config.point import Point
from scalestudy.launch.logs import output_of
from scalestudy.launch.queue.site_profile import Site, memory_bytes, seconds
from scalestudy.util import units
from scalestudy.util.errors import UserError
from scalestudy.util.own_package import own_source


@dataclass(frozen=True)
class JobLayout:
    """The resources that a job requests.

    Attributes:
        nodes: Number of nodes.
        tasks: Total number of processes.
        tasks_per_node: Maximum number of processes on a node; the first nodes are filled first.
        cpus_per_task: Cores of each process.
        gpus_per_node: GPUs of each node; 0 if the job computes on CPUs.
        seconds: Time limit; None for no limit.
    """

    nodes: int
    tasks: int
    tasks_per_node: int
    cpus_per_task: int
    gpus_per_node: int
    seconds: int | None

    @property
    def gpus_per_task(self) -> int:
        """GPUs of each process."""
        return self.gpus_per_node // self.tasks_per_node

    @property
    def cpus_per_node(self) -> int:
        """Cores on a full node."""
        return self.cpus_per_task * self.tasks_per_node


@dataclass(frozen=True)
class JobScript:
    """The contents of a job script.

    Attributes:
        script: Absolute path of the script.
        run: Absolute path of the run's folder.
        python: Python of the workers if the site names neither an environment nor a container.
        source: Folder of Scalestudy's source, for the workers' PYTHONPATH; None if it is installed like any
            other package.
        submission: Digits of the submission; "" for a job without a study.
    """

    name: str
    script: Path
    run: Path
    point: Point
    layout: JobLayout
    site: Site
    submission: str = ""
    python: str = sys.executable
    source: Path | None = field(default_factory=own_source)

    @property
    def study(self) -> Path:
        """Folder STUDY of a run in STUDY/points/NAME/run-K; any other run's own folder."""
        if self.run.parent.parent.name == "points":
            return self.run.parents[2]
        # A run of `check`, which belongs to no study.
        return self.run

    @property
    def printed(self) -> str:
        """File of the output before the script opens its log; /dev/null if its path has unusual characters.

        Slurm cannot write to a folder with a backslash in its name.
        """
        text = str(output_of(self.script))
        if text.isprintable() and "\\" not in text:
            return text
        return "/dev/null"


def layout(point: Point, site: Site) -> JobLayout:
    """Return the layout of a point, which `expand_for` has checked for the site."""
    tasks = point.processes
    launch = point.launch
    nodes = site.machine().nodes(
        tasks,
        launch.cpus_per_worker,
        launch.device,
        launch.workers_per_node,
    )
    tasks_per_node = -(-tasks // nodes)  # balanced: 6 workers on nodes of 4 are 3 + 3
    workers = point.traits.workers_at_once(point.workers)
    gpus_per_node = 0
    if site.gpus_per_node and launch.device != "cpu":
        gpus_per_node = tasks_per_node * workers
    return JobLayout(
        nodes=nodes,
        tasks=tasks,
        tasks_per_node=tasks_per_node,
        cpus_per_task=workers * launch.cpus_per_worker,
        gpus_per_node=gpus_per_node,
        seconds=seconds(site.time_limit),
    )


def gpu_request(site: Site, layout: JobLayout) -> str:
    """Fill the number of GPUs into the site's option: for a node (also PBS), a task, or the whole job."""
    counts = {
        "--gpus-per-task": layout.gpus_per_task,
        "--gpus": layout.gpus_per_task * layout.tasks,
    }
    count = counts.get(site.gpu_request.partition("=")[0], layout.gpus_per_node)
    return site.gpu_request.replace("{gpus}", str(count))


def allocation(
    site: Site,
    layouts: Sequence[JobLayout],
    requeues: int = 0,
    submissions: Sequence[int] = (),
) -> str:
    """Describe how much of what jobs allocate their workers use: GPUs if all jobs have some, else cores.

    If all jobs have a time limit, the maximum number of GPU-hours or core-hours is added, for a start of each
    and for all starts; node-hours if the site bills those.

    Args:
        site: The site profile.
        layouts: Layouts of the jobs.
        requeues: How often a job may put itself back into the queue.
        submissions: How often each job may still be submitted, now included; by default once.
    """
    on_gpus = all(layout.gpus_per_node for layout in layouts)
    unit, of_node = "core", site.cpus_per_node
    whole = site.whole_nodes
    if on_gpus:
        unit, of_node = "GPU", site.gpus_per_node
        # A request without a number is for all GPUs of a node, or the partition gives them.
        whole = whole or "{gpus}" not in site.gpu_request
    used, taken = [], []
    for layout in layouts:
        of_task = layout.cpus_per_task
        if on_gpus:
            of_task = layout.gpus_per_task
        needed = layout.tasks * of_task
        used.append(needed)
        if whole:
            needed = layout.nodes * of_node
        taken.append(needed)
    share = sum(used) / sum(taken)
    jobs = f"{len(layouts)} jobs allocate"
    if len(layouts) == 1:
        jobs = "1 job allocates"
    text = (
        f"Workers use {sum(used)} of the {sum(taken)} {unit}s that {jobs} ({share:.0%})"
    )
    limits = [layout.seconds for layout in layouts if layout.seconds is not None]
    if len(limits) < len(layouts):
        return f"{text}."
    if site.bill == "node":
        unit, taken = "node", [layout.nodes for layout in layouts]
    hours = [count * limit / 3600 for count, limit in zip(taken, limits, strict=True)]
    return f"{text}: {_most_hours(hours, unit, requeues, submissions)}"


def _most_hours(
    hours: Sequence[float],
    unit: str,
    requeues: int,
    submissions: Sequence[int],
) -> str:
    """Describe the hours of a start of each job, and those of all starts."""
    if not submissions:
        submissions = [1] * len(hours)
    one_start = units.cost(sum(hours), unit)
    resubmissions = max(submissions) - 1
    again = []
    if requeues > 0:
        again.append(f"queue themselves again up to {_times(requeues)}")
    if resubmissions > 0:
        again.append(f"are submitted again up to {_times(resubmissions)}")
    if not again:
        return f"at most {one_start} by their time limits."
    total = 0.0
    for each, count in zip(hours, submissions, strict=True):
        # Every submission may be put back that often.
        total += each * count * (1 + requeues)
    all_starts = units.cost(total, unit)
    return (
        f"at most {one_start} per start by their time limits. Jobs that are not done by then "
        f"{' and '.join(again)}: at most {all_starts}, not counting preemptions and failed nodes."
    )


def _times(count: int) -> str:
    if count == 1:
        return "once"
    return f"{count} times"


def shares_nodes(site: Site, layout: JobLayout) -> bool:
    """Whether a job's request leaves room on its nodes for other jobs."""
    return not site.whole_nodes and layout.cpus_per_node < site.cpus_per_node


def memory_per_node(site: Site, layout: JobLayout) -> str | None:
    """Return the memory that a job requests on each node, in Slurm's form; None if the profile has none.

    A job that shares its nodes requests the same part of the memory as of the cores or of the GPUs, whichever
    is larger.
    """
    if site.memory_per_node is None or site.whole_nodes:
        return site.memory_per_node
    memory = memory_bytes(site.memory_per_node)
    if memory == 0:
        return "0"  # all memory of the node, of which a part is not asked for
    share = layout.cpus_per_node / site.cpus_per_node
    if site.gpus_per_node:
        share = max(share, layout.gpus_per_node / site.gpus_per_node)
    if share >= 1:
        return site.memory_per_node
    # At least 1: a request for 0 is one for all memory of the node.
    mebibytes = max(1, int(memory * share / 2**20))
    return f"{mebibytes}M"


def expand_for(study: Study, site: Site) -> list[Point]:
    """Return the points of a study on the nodes of a site; across nodes, `native` means multiworker.

    Raises:
        UserError: If a combination is impossible there, or if the sweep names `launch.site`.
    """
    if "launch.site" in study.sweep.other:
        raise UserError(
            "one launch.site for the whole study",
            f"it in [sweep]{study.place.of('launch.site')}",
            "Write it under [launch]; to compare sites, run the study once on each.",
        )
    machine = site.machine()
    return expand(
        study,
        gpus=machine.gpus,
        cores=machine.cores,
        cluster=True,
        tasks_per_node=machine.tasks_per_node,
    )
