"""Memory that a job asks for: its share of a node, or all of it. Pure."""

import re

from scalestudy.launch.queue.site.layout import Layout
from scalestudy.launch.queue.site.profile import MEMORY, Site


def memory_bytes(text: str) -> int:
    """Bytes of a Slurm memory request, "180G"; a bare number is in MiB. 0 for what is none."""
    match = re.fullmatch(MEMORY, text.strip(), re.IGNORECASE)
    return int(float(match[1]) * 1024 ** ("KMGT".index(match[2].upper() or "M") + 1)) if match else 0


def memory_per_node(site: Site, layout: Layout) -> str | None:
    """What a job asks for on each node, in Slurm's form; None where the profile names nothing.

    A job that shares its nodes takes as large a part of the memory as of the cores or of the GPUs,
    whichever is larger, unless the profile says that all jobs ask for all of it.
    """
    if site.memory_per_node is None or site.exclusive or site.memory_scaling == "none":
        return site.memory_per_node
    cores = layout.cpus_per_task * layout.tasks_per_node / site.cpus_per_node
    gpus = layout.gpus_per_node / site.gpus_per_node if site.gpus_per_node else 0.0
    share = max(cores, gpus)
    if share >= 1:
        return site.memory_per_node
    return f"{max(1, int(memory_bytes(site.memory_per_node) * share / 2**20))}M"
