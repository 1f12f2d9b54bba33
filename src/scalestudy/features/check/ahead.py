"""What can be checked before the queue, on a login node or a workstation."""

import math
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.features.check import versions
from scalestudy.features.check.host import judge_folder, judge_memory
from scalestudy.features.check.plan import Plan, WritableFolder
from scalestudy.features.check.report import QUEUE_TOPIC, Line, failed, passed, warned
from scalestudy.launch.queue.base import QueueAbsent, QueueRefused, QueueUnreachable
from scalestudy.launch.queue.layout import JobLayout, memory_per_node
from scalestudy.launch.queue.site import Site, memory_bytes, notation
from scalestudy.launch.slurm import SLURM, Nodes
from scalestudy.study.engines import engine_traits
from scalestudy.study.point import Point
from scalestudy.util import units
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from scalestudy.data.sources.registry import Kind


def data_lines(
    points: Iterable[Point], base: Path, kind: "Kind | None", *, ahead: bool
) -> tuple[list[Line], int, tuple[WritableFolder, ...]]:
    """What is known of the points' data sets; `ahead` where a queue needs them prepared.

    Returns:
        The lines, the bytes that the largest data set takes, and the cache folders with the space
        that is still needed there.
    """
    from scalestudy.data.sources.locate import cache_folder
    from scalestudy.data.store.prepare import find_prepared, predicted_bytes

    lines: list[Line] = []
    missing: dict[str, int] = {}
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
            seen += ", decoded while training"
        if prepared or not ahead:
            lines.append(passed("data", "here", f"{seen}, {'prepared' if prepared else 'not prepared yet'}"))
        else:
            action = "Run `scalestudy data prepare STUDY` first: a job takes only what is prepared."
            lines.append(failed("data", "here", f"{seen}, not prepared", action))
        largest = max(largest, size)
        missing[cache] = missing.get(cache, 0) + (0 if prepared else size)
    folders = (WritableFolder(path=path, purpose="cache", bytes=size) for path, size in missing.items())
    return lines, largest, tuple(folders)


def machine_lines(plan: Plan, python: str | None) -> list[Line]:
    """Versions and folders of this machine; `python` is what jobs run with, None in a container."""
    here: str = socket.gethostname()
    lines: list[Line] = []
    if plan.wants("versions"):
        if python is None:
            lines.append(passed("versions", here, "in the container, not looked at here"))
        else:
            engine = engine_traits(plan.engine)
            installed = versions.read(python, engine, plan.libraries)
            lines += versions.judge(installed, here, engine, libraries=plan.libraries)
    if plan.wants("folders"):
        lines += [judge_folder(here, folder) for folder in plan.folders]
    return lines


def site_lines(plan: Plan, site: Site, layouts: Sequence[JobLayout]) -> list[Line]:
    """The site profile, held against Slurm and against the data; `layouts` are those of the study's jobs."""
    lines = []
    if plan.wants("site"):
        lines.append(_profile(site))
    fullest = max(layouts, key=lambda layout: layout.tasks_per_node)
    memory = memory_bytes(memory_per_node(site, fullest) or "0")
    if plan.wants("memory") and memory:
        workers = fullest.tasks_per_node
        lines.append(
            judge_memory(
                f"a node of {site.name}", workers=workers, cache=plan.cache_bytes, available=memory,
                limit=memory,
            )
        )  # fmt: skip
    if plan.wants(QUEUE_TOPIC):
        lines += slurm_lines(
            JobNeeds(
                partition=site.partition,
                account=site.account,
                seconds=max(math.inf if job.seconds is None else job.seconds for job in layouts),
                nodes=max(layout.nodes for layout in layouts),
                cpus=max(layout.cpus_per_task * layout.tasks_per_node for layout in layouts),
                memory=memory,
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


WHERE = "Slurm"


@dataclass(frozen=True)
class JobNeeds:
    """What the study's jobs will ask for, most of it of a node. Seconds, bytes; 0 asks for nothing."""

    partition: str | None
    account: str | None
    seconds: float
    nodes: int
    cpus: int
    memory: int
    gpus: int


def judge_partition(nodes: Sequence[Nodes], request: JobNeeds) -> list[Line]:
    """Whether the partition is there, up, and has such nodes for that long."""
    names = list(dict.fromkeys(kind.partition for kind in nodes))
    name = request.partition or next((kind.partition for kind in nodes if kind.default), None)
    if name is None:
        return [failed("slurm", WHERE, "no default partition", f"Name a partition: {', '.join(names)}.")]
    members = [kind for kind in nodes if kind.partition == name]
    if not members:
        action = f"Set partition in the site profile to one of {', '.join(names) or 'none'}."
        return [failed("slurm", WHERE, f"no partition {name}", action)]
    if not any(kind.up for kind in members):
        return [warned("slurm", WHERE, f"partition {name} is down", "Jobs wait until it is up.")]
    lines = []
    limit = members[0].seconds
    if limit is not None and request.seconds > limit:
        action = f"Set time_limit in the site profile to at most {notation(limit)}."
        asked = notation(None if math.isinf(request.seconds) else int(request.seconds))
        seen = f"{asked} asked for, {notation(limit)} allowed in {name}"
        lines.append(failed("slurm", WHERE, seen, action))
    fitting = members
    for attribute, text in (("cpus", "cores"), ("gpus", "GPUs"), ("memory", "of memory")):
        need = getattr(request, attribute)
        most = max(getattr(kind, attribute) for kind in members)
        if need > most:
            sizes = (units.size(need), units.size(most)) if attribute == "memory" else (need, most)
            seen = f"{sizes[0]} {text} a node asked for, {sizes[1]} at most in {name}"
            action = "Correct cpus_per_node, gpus_per_node, memory_per_node or partition in the site profile."
            lines.append(failed("slurm", WHERE, seen, action))
        fitting = [kind for kind in fitting if getattr(kind, attribute) >= need]
    count = sum(kind.count for kind in fitting)
    if not lines and count < request.nodes:
        seen = f"{request.nodes} nodes needed, {count} such in {name}"
        lines.append(failed("slurm", WHERE, seen, "Take fewer workers, or another partition."))
    return lines or [passed("slurm", WHERE, f"partition {name}: up, {count} such nodes")]


def judge_account(accounts: Sequence[str], request: JobNeeds) -> Line:
    """Whether the user may charge it; `accounts` are the user's, none where there is no accounting."""
    names = ", ".join(dict.fromkeys(accounts))
    if not names:
        asked = f"; account {request.account} is not checked" if request.account else ""
        return passed("slurm", WHERE, f"no accounting answers{asked}")
    if request.account is None:
        return passed("slurm", WHERE, f"default account of {names}")
    if request.account not in accounts:
        action = f"Set account in the site profile to one of {names}."
        return failed("slurm", WHERE, f"account {request.account} is not yours", action)
    return passed("slurm", WHERE, f"account {request.account}")


def slurm_lines(request: JobNeeds) -> list[Line]:
    """Ask Slurm, each question with a time limit."""
    try:
        nodes = SLURM.queue.partitions()
    except QueueAbsent as error:
        return [failed("slurm", "here", f"no Slurm client ({error.received})", error.action)]
    except QueueUnreachable as error:
        return [failed("slurm", WHERE, f"no answer: {error.received}", "Try again later, or ask the site.")]
    except QueueRefused as error:
        return [failed("slurm", WHERE, error.words, "Ask the site.")]
    return [*judge_partition(nodes, request), judge_account(SLURM.queue.accounts(), request)]
