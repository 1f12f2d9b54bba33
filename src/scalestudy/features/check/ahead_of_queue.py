"""What can be checked before the queue, on a login node or a workstation."""

import math
import os
import socket
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.features.check import machine, versions
from scalestudy.features.check.line import QUEUE_TOPIC, Line, failed, passed
from scalestudy.features.check.partitions import JobNeeds, slurm_lines
from scalestudy.features.check.plan import Plan, WritableFolder
from scalestudy.launch.queue.layout import Layout, memory_bytes, memory_per_node
from scalestudy.launch.queue.site import Site
from scalestudy.study.engines import engine_traits
from scalestudy.study.point import Point
from scalestudy.util import units
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from scalestudy.data.sources.registry import Kind


def data_lines(
    points: Iterable[Point], base: Path, kind: "Kind | None", *, ahead: bool
) -> tuple[list[Line], int, tuple[WritableFolder, ...]]:
    """What is known of the points' data sets.

    Args:
        points: The points.
        base: WritableFolder that relative paths are seen from.
        kind: Kind of data that the task needs.
        ahead: Whether it must be prepared ahead, as for a queue.

    Returns:
        The lines, the bytes that the largest data set takes, and the cache folders with the space
        that is still needed there.
    """
    from scalestudy.data.sources.locate import cache_folder
    from scalestudy.data.store.prepare import find_prepared, predicted_bytes

    lines: list[Line] = []
    folders: dict[str, int] = {}
    largest = 0
    for data in {point.data.model_dump_json(): point.data for point in points}.values():
        assert data.source is not None
        try:
            cache = str(cache_folder(data.cache, base))
            prepared = find_prepared(data, task_kind=kind, base=base)
            if prepared:
                size, decoded, storage = prepared.bytes, prepared.decoded_bytes, prepared.storage
            else:
                size, storage = predicted_bytes(data, base=base)
                decoded = size
        except UserError as error:
            lines.append(failed("data", "here", f"{data.source}: {error.received}", error.action))
            continue
        seen = f"{data.source}: {units.size(decoded)} decoded"
        if storage == "encoded":
            taken = f"{units.size(size)} encoded" if prepared else "less encoded"
            seen += f", {taken}: decoded while training"
        if prepared or not ahead:
            lines.append(passed("data", "here", f"{seen}, {'prepared' if prepared else 'not prepared yet'}"))
        else:
            action = "Run `scalestudy data prepare STUDY` first: a job takes only what is prepared."
            lines.append(failed("data", "here", f"{seen}, not prepared", action))
        largest = max(largest, size)
        missing = folders.get(cache, 0) + (0 if prepared else size)
        folders[cache] = missing
    return lines, largest, tuple(
        WritableFolder(path=path, purpose="cache", bytes=size) for path, size in folders.items()
    )  # fmt: skip


def machine_lines(plan: Plan, python: str | None) -> list[Line]:
    """Versions, folders and proxies of this machine.

    Args:
        plan: What is checked.
        python: Python that jobs run with, or None when it is in a container.
    """
    here, lines = socket.gethostname(), []
    if plan.wants("versions"):
        if python is None:
            seen = "in the container, not looked at here"
            lines.append(passed("versions", here, seen))
        else:
            engine = engine_traits(plan.engine)
            found = versions.read(python, engine, plan.libraries)
            lines += versions.judge(found, here, engine, libraries=plan.libraries)
    if plan.wants("folders"):
        lines += [machine.judge_folder(here, folder) for folder in plan.folders]
    if plan.wants("proxies"):
        lines.append(machine.judge_proxies(here, os.environ))
    return lines


def site_lines(plan: Plan, site: Site, layouts: Sequence[Layout]) -> list[Line]:
    """The site profile, held against Slurm and against the data.

    Args:
        plan: What is checked.
        site: The profile.
        layouts: Of the jobs that the study will ask for.
    """
    lines = []
    if plan.wants("site"):
        lines.append(_profile(site))
    fullest = max(layouts, key=lambda layout: layout.tasks_per_node)
    memory = memory_bytes(memory_per_node(site, fullest) or "")
    if plan.wants("memory") and memory:
        workers = fullest.tasks_per_node
        lines.append(
            machine.judge_memory(
                f"a node of {site.name}", workers=workers, cache=plan.cache_bytes, available=memory,
                limit=memory,
            )
        )  # fmt: skip
    if plan.wants(QUEUE_TOPIC):
        lines += slurm_lines(
            JobNeeds(
                partition=site.partition,
                account=site.account,
                seconds=max(math.inf if each.seconds is None else each.seconds for each in layouts),
                nodes=max(layout.nodes for layout in layouts),
                cpus=max(layout.cpus_per_task * layout.tasks_per_node for layout in layouts),
                memory=memory,
                # Where the partition alone brings its GPUs, Slurm does not count them.
                gpus=max(layout.gpus_per_node for layout in layouts) if site.gpu_request else 0,
            )
        )
    return lines


def _profile(site: Site) -> Line:
    image = getattr(site.container, "image", None)
    if image and "$" not in image and "://" not in image and not Path(image).expanduser().exists():
        action = "Build it (see environments/), or correct container in the site profile."
        return failed("site", "here", f"{site.name}: no container image {image}", action)
    return passed("site", "here", f"profile {site.name}")
