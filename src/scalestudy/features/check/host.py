"""Check the cores, GPUs, network and folders of a host, and the hosts of a study without a queue."""

import contextlib
import ctypes
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import scalestudy
from scalestudy.features.check.report import Line, Topic, WritableFolder, failed, passed, warned
from scalestudy.launch.hosts.connection import Unreachable, connected
from scalestudy.launch.hosts.hostlist import Listed
from scalestudy.launch.hosts.messages import HostFacts, HostRequest
from scalestudy.util import units
from scalestudy.util.errors import RunError

SPARE_BYTES = 2**30
"""Free space in bytes below which a folder is considered nearly full."""


def judge_cores(where: str, *, ranks: Sequence[Sequence[int]], cpus_per_worker: int) -> Line:
    """Compare the cores granted to the ranks of a host, by affinity, with `cpus_per_worker` for each."""
    together = set().union(*ranks)
    wanted = cpus_per_worker * len(ranks)
    seen = f"{len(together)} cores granted, {len(ranks)} x {cpus_per_worker} requested"
    if len(together) < wanted or min(len(cpus) for cpus in ranks) < cpus_per_worker:
        action = "Give each task its cores (--cpus-per-task to srun), or lower cpus_per_worker or workers."
        return warned("cores", where, seen, action)
    return passed("cores", where, seen)


def gpus_of(ranks: Sequence[tuple[int, Sequence[str]]]) -> int:
    """Return the GPUs of a host, given the number and UUIDs that each rank sees: its own GPUs or all."""
    if all(len(uuids) == count for count, uuids in ranks):
        return len({uuid for _, uuids in ranks for uuid in uuids})
    first = ranks[0][0]
    return sum(count for count, _ in ranks) if first == 1 else first


def shown_at_once(gpus: int, uuids: Sequence[str]) -> int:
    """Return how many GPUs CUDA certainly shows to a process: with MIG, a single instance and no full GPU.

    Source: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/#cuda-device-enumeration
    """
    return min(gpus, 1) if any(uuid.startswith("MIG-") for uuid in uuids) else gpus


def judge_devices(
    where: str, *, device: str, promised: int, gpus: int, workers: int, why: Sequence[str] = ()
) -> Line:
    """Compare the usable GPUs with those that the site states (`promised`) and the workers need.

    `why` holds the host's reason why no GPU is visible, and what to do.
    """
    if device == "cpu":
        return passed("devices", where, f"{gpus} GPUs seen; the study computes on CPUs")
    needed = workers if gpus or device == "gpu" else promised
    if gpus >= needed:
        return passed("devices", where, f"{gpus} GPUs seen" + ("" if gpus else ": workers compute on CPUs"))
    seen = f"{gpus} GPUs seen, {needed} needed for {workers} workers"
    if not gpus and why:
        return failed("devices", where, f"{seen}: {why[0]}", why[1])
    action = (
        "Request more GPUs per node (gpu_request in the site profile) or fewer workers. See nvidia-smi there."
    )
    return failed("devices", where, seen, action)


def judge_infiniband(where: str, root: Path = Path("/"), library: str = "libibverbs.so.1") -> Line | None:
    """Check whether NCCL can use the host's InfiniBand. Without libibverbs, NCCL silently uses sockets."""
    adapters = sorted(path.name for path in (root / "sys/class/infiniband").glob("*"))
    if not adapters:
        return None
    seen = f"InfiniBand ({', '.join(adapters)})"
    try:
        ctypes.CDLL(library)
    except OSError as error:
        action = (
            "Install it where workers run, in the container too (Debian: libibverbs1, ibverbs-providers)."
        )
        return failed("network", where, f"{seen}, but {error}", action)
    return passed("network", where, f"{seen}, and {library} loads")


def judge_folder(where: str, folder: WritableFolder) -> Line:
    """Check whether a folder, or its nearest existing parent, can be written to, and its free space."""
    path = Path(os.path.expandvars(folder.path)).expanduser()
    name = f"{folder.purpose} folder {path}"
    if not path.is_absolute():
        return failed("folders", where, f"{name}: a variable is not set", "Set it, or write the path out.")
    try:
        present = next(parent for parent in (path, *path.parents) if os.path.lexists(parent))
        with tempfile.NamedTemporaryFile(prefix=".scalestudy-check-", dir=present) as file:
            file.write(b"scalestudy")
            file.flush()
            os.fsync(file.fileno())
        free = shutil.disk_usage(present).free
    except OSError as error:
        action = "Name another folder, or correct its permissions or quota."
        return failed("folders", where, f"{name}: {error.strerror or error}", action)
    seen = (
        f"{name}: {'writable' if present == path else f'can be made in {present}'}, {units.size(free)} free"
    )
    if free < SPARE_BYTES:
        return warned("folders", where, seen, "Make space.")
    return passed("folders", where, seen)


def present(folder: Path) -> Path:
    """Return a folder, or its nearest parent that exists."""
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def host_lines(hosts: Sequence[Listed], folders: Sequence[Path]) -> list[Line]:
    """Ask all hosts, and judge their answers. Of each folder they must see a file that is written here."""
    with contextlib.ExitStack() as held:
        seen_by: dict[str, Path] = {}
        for folder in folders:
            with contextlib.suppress(OSError):  # if it cannot be written to, its own line says so
                place = tempfile.TemporaryDirectory(prefix=".scalestudy-check-", dir=present(folder))
                seen_by[held.enter_context(place)] = folder
        request = HostRequest(paths=tuple(seen_by))
        answers = [
            (connection.host, answer)
            for connection, answer in connected(held, [(host.name, request) for host in hosts])
        ]
    return judge_hosts(answers, seen_by)


def judge_hosts(answers: Sequence[tuple[str, HostFacts | RunError]], folders: dict[str, Path]) -> list[Line]:
    """Return lines about hosts, by name; `folders` are those of the files that the hosts must see."""
    lines: list[Line] = []
    answered = [(host, answer) for host, answer in answers if isinstance(answer, HostFacts)]
    usual = Counter(_gpus(facts) for _, facts in answered).most_common(1)
    for host, answer in answers:
        if isinstance(answer, RunError):
            topic: Topic = "network" if isinstance(answer, Unreachable) else "versions"
            lines.append(failed(topic, host, answer.received, answer.action))
            continue
        lines.append(passed("network", host, "answers by SSH"))
        if answer.version != scalestudy.__version__:
            seen = f"Scalestudy {answer.version}, here {scalestudy.__version__}"
            lines.append(failed("versions", host, seen, "Install the same version on every host."))
        lines += [
            failed("folders", host, f"does not see {folders[path]}", "Keep it where all hosts see it.")
            for path in answer.unseen
        ]
        if (own := _gpus(answer)) != usual[0][0]:
            seen = f"{own}; most other hosts have {usual[0][0]}"
            lines.append(warned("devices", host, seen, "Compare numbers of workers on hosts that are alike."))
    return lines


def _gpus(facts: HostFacts) -> str:
    kinds = Counter(gpu.name for gpu in facts.gpus)
    return ", ".join(f"{count} x {name}" for name, count in sorted(kinds.items())) or "no GPU"
