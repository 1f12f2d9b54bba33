"""What one host offers to the workers on it."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scalestudy.features.check.plan import WritableFolder
from scalestudy.features.check.report import Line, failed, passed, warned
from scalestudy.util import units

GIB = 2**30
WORKER_BYTES = GIB
"""Memory of one worker besides its data: TensorFlow with a small model, rounded up."""
SPARE_BYTES = GIB
"""Free space below which a folder is about to be full."""


def judge_memory(where: str, *, workers: int, cache: int, available: int, limit: int) -> Line:
    """Workers must fit into memory; the data set should, or it is read from disk again each epoch. Bytes."""
    free, base = min(available, limit), workers * WORKER_BYTES
    seen = f"{units.size(free)} free for {workers} workers"
    if cache:
        seen += f" and {units.size(cache)} of data"
    if base > limit:
        action = "Ask for more memory (memory_per_node in the site profile), or for fewer workers per node."
        return failed("memory", where, seen, action)
    if base + cache > free:
        action = "Ask for more memory, or lower image_size; otherwise the disk's speed decides."
        return warned("memory", where, seen, action)
    return passed("memory", where, seen)


def judge_cores(where: str, *, ranks: Sequence[Sequence[int]], cpus_per_worker: int) -> Line:
    """Cores granted to the ranks of a host, by affinity, against `cpus_per_worker` for each."""
    together = set().union(*ranks)
    wanted = cpus_per_worker * len(ranks)
    seen = f"{len(together)} cores granted, {len(ranks)} x {cpus_per_worker} asked for"
    if len(together) < wanted or min(len(cpus) for cpus in ranks) < cpus_per_worker:
        action = "Give each task its cores (--cpus-per-task to srun), or lower cpus_per_worker or workers."
        return warned("cores", where, seen, action)
    return passed("cores", where, seen)


def gpus_of(ranks: Sequence[tuple[int, Sequence[str]]]) -> int:
    """GPUs of a host by each rank's number and UUIDs: it may see its own, or all."""
    if all(len(uuids) == count for count, uuids in ranks):
        return len({uuid for _, uuids in ranks for uuid in uuids})
    first = ranks[0][0]
    return sum(count for count, _ in ranks) if first == 1 else first


def shown_at_once(gpus: int, uuids: Sequence[str]) -> int:
    """GPUs that CUDA surely shows one process: of MIG instances one, and then no whole GPU beside it.

    Source: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/#cuda-device-enumeration
    """
    return min(gpus, 1) if any(uuid.startswith("MIG-") for uuid in uuids) else gpus


def judge_devices(
    where: str, *, device: str, promised: int, found: int, workers: int, why: Sequence[str] = ()
) -> Line:
    """GPUs that can be used, against those that the site promises a node and those that workers need.

    `why` says why none are seen, and what to do, as the host itself does.
    """
    seen = f"{found} GPUs seen"
    if device == "cpu":
        return passed("devices", where, f"{seen}; the study computes on CPUs")
    if not found and (promised or device == "gpu") and why:
        words, action = why
        asked = f"{promised} requested" if promised else f"for {workers} workers"
        return failed("devices", where, f"{seen}, {asked}: {words}", action)
    if found < promised:
        action = "Correct gpu_request in the site profile; look at CUDA_VISIBLE_DEVICES and nvidia-smi there."
        return failed("devices", where, f"{seen}, {promised} requested", action)
    if found < workers and (device == "gpu" or found):
        action = "Ask for more GPUs per node, or for fewer workers per node."
        return failed("devices", where, f"{seen} for {workers} workers", action)
    return passed("devices", where, seen if found else f"{seen}: workers compute on CPUs")


def judge_folder(where: str, folder: WritableFolder) -> Line:
    """Whether a file can be written there (or where a missing folder would be made), and the space left."""
    path = Path(os.path.expandvars(folder.path)).expanduser()
    name = f"{folder.purpose} folder {path}"
    if not path.is_absolute():
        return failed("folders", where, f"{name}: a variable is not set", "Set it, or write the path out.")
    try:
        there = next(parent for parent in (path, *path.parents) if os.path.lexists(parent))
        with tempfile.NamedTemporaryFile(prefix=".scalestudy-check-", dir=there) as file:
            file.write(b"scalestudy")
            file.flush()
            os.fsync(file.fileno())
        free = shutil.disk_usage(there).free
    except OSError as error:
        action = "Name another folder, or mend its permissions or quota."
        return failed("folders", where, f"{name}: {error.strerror or error}", action)
    seen = f"{name}: {'writable' if there == path else f'can be made in {there}'}, {units.size(free)} free"
    if free < folder.bytes:
        needed = f"{seen}, {units.size(folder.bytes)} needed"
        return failed("folders", where, needed, "Make space, or name another folder.")
    if free < SPARE_BYTES:
        return warned("folders", where, seen, "Make space.")
    return passed("folders", where, seen)
