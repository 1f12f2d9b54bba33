"""Check what a host offers: software, cores, GPUs, network and folders."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from scalestudy.features.check.check_files import CheckPlan, Facts, RankAnswer
from scalestudy.features.check.check_report import (
    Line,
    Topic,
    report_failure,
    report_pass,
    report_warning,
)
from scalestudy.hardware.installed import describe, describe_other
from scalestudy.plugins.engines import (
    Collective,
    EngineTraits,
    StrategyLibrary,
    engine_traits,
)
from scalestudy.util import units
from scalestudy.util.errors import UserError

SPARE_BYTES = 2**30
"""Free space in bytes below which a folder is considered nearly full."""
PYTHON = ">=3.11,<3.14"
LONGEST = 300
"""Maximum number of characters of a quoted line."""
_CAUSE = re.compile(r"^(Collective ops is aborted by|[\w.]*(Error|Exception):? )")
"""Start of the last line of errors of TensorFlow and Python."""


def count_gpus(ranks: Sequence[tuple[int, Sequence[str]]]) -> int:
    """Return the GPUs of a host, given the number and UUIDs that each rank sees: its own GPUs or all."""
    counts = []
    distinct: set[str] = set()
    all_known = True
    for count, uuids in ranks:
        counts.append(count)
        distinct.update(uuids)
        all_known = all_known and len(uuids) == count
    if all_known:
        return len(distinct)
    # Without all UUIDs, a rank that sees one GPU has its own, and one that sees several sees all.
    if counts[0] == 1:
        return sum(counts)
    return counts[0]


def shown_at_once(gpus: int, uuids: Sequence[str]) -> int:
    """Return how many GPUs CUDA certainly shows to a process: with MIG, a single instance and no full GPU.

    Source: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/#cuda-device-enumeration
    """
    for uuid in uuids:
        if uuid.startswith("MIG-"):
            return min(gpus, 1)
    return gpus


def judge_devices(
    where: str,
    *,
    device: str,
    promised: int,
    gpus: int,
    workers: int,
    why: Sequence[str] = (),
) -> Line:
    """Compare the usable GPUs with those that the site states (`promised`) and the workers need.

    `why` holds the host's reason why no GPU is visible, and what to do.
    """
    if device == "cpu":
        return report_pass(
            "devices",
            where,
            f"{gpus} GPUs seen; the study computes on CPUs",
        )
    needed = promised
    # With device = "auto", a host without GPUs is one that computes on CPUs, unless the site states GPUs.
    if gpus or device == "gpu":
        needed = workers
    if gpus >= needed:
        seen = f"{gpus} GPUs seen"
        if not gpus:
            seen += ": workers compute on CPUs"
        return report_pass("devices", where, seen)
    seen = f"{gpus} GPUs seen, {needed} needed for {workers} workers"
    if not gpus and why:
        return report_failure("devices", where, f"{seen}: {why[0]}", why[1])
    action = "Request more GPUs per node (gpu_request in the site profile) or fewer workers. See nvidia-smi there."
    return report_failure("devices", where, seen, action)


def judge_folder(where: str, folder: str, purpose: str) -> Line:
    """Check whether a folder, or its nearest existing parent, can be written to, and its free space."""
    path = Path(os.path.expandvars(folder)).expanduser()
    name = f"{purpose} folder {path}"
    if not path.is_absolute():
        return report_failure(
            "folders",
            where,
            f"{name}: a variable is not set",
            "Set it, or write the path out.",
        )
    try:
        # Not `exists`: a link to nowhere is no place to create a folder in, and fails below.
        present = path
        while not os.path.lexists(present):
            present = present.parent
        with tempfile.NamedTemporaryFile(
            prefix=".scalestudy-check-",
            dir=present,
        ) as file:
            # Some file systems report a full quota only when data reach the disk.
            file.write(b"scalestudy")
            file.flush()
            os.fsync(file.fileno())
        free = shutil.disk_usage(present).free
    except OSError as error:
        action = "Name another folder, or correct its permissions or quota."
        return report_failure(
            "folders",
            where,
            f"{name}: {error.strerror or error}",
            action,
        )
    state = f"can be made in {present}"
    if present == path:
        state = "writable"
    seen = f"{name}: {state}, {units.size(free)} free"
    if free < SPARE_BYTES:
        return report_warning("folders", where, seen, "Make space.")
    return report_pass("folders", where, seen)


def present(folder: Path) -> Path:
    """Return a folder, or its nearest parent that exists."""
    while not folder.is_dir():
        folder = folder.parent
    return folder


def read_versions(environment: str | None) -> dict[str, str] | str:
    """Return the versions of packages and of Python in an environment's folder, or why they are unknown.

    None is the environment of this process. Versions are read from metadata; nothing is imported.
    """
    try:
        if environment is None:
            built = describe()
        else:
            built = describe_other(Path(os.path.expandvars(environment)).expanduser())
    except UserError as error:
        return error.received
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return built.packages | {"Python": built.python}


def judge_versions(
    versions: dict[str, str] | str,
    where: str,
    engine: EngineTraits,
    *,
    libraries: Collection[str],
) -> list[Line]:
    """Return lines about the result of `read_versions`; the study's strategies need `libraries`."""
    if isinstance(versions, str):
        action = "Build the environment (see environments/), or correct `environment` in the site profile."
        return [
            report_failure("versions", where, f"no environment: {versions}", action)
        ]
    good = []
    problems = []

    def judge(
        label: str,
        version: str | None,
        wanted: str,
        action: str,
        *,
        needed: bool = True,
    ) -> None:
        if version is None and needed:
            seen = f"{label} not installed"
            problems.append(report_failure("versions", where, seen, action))
        elif version is None:
            good.append(f"{label} not installed (not needed)")
        elif _fits(version, wanted):
            good.append(f"{label} {version}")
        else:
            report = _report_unless(needed=needed)
            seen = f"{label} {version}, but {wanted} is needed"
            problems.append(report("versions", where, seen, action))

    judge(
        "Python",
        versions["Python"],
        PYTHON,
        "Build a new environment with another Python.",
    )
    for wanted in engine.requirements:
        # One framework has several packages: tensorflow, tensorflow-cpu.
        names = [name for name in wanted.packages if name in versions]
        present = None
        if names:
            present = versions[names[0]]
        action = f"Run `pip install '{wanted.packages[0]}{wanted.versions}'`."
        judge(wanted.label, present, wanted.versions, action)
    for library in engine.libraries:
        needed = library.name in libraries
        version = versions.get(library.name)
        judge(library.label, version, library.versions, library.repair, needed=needed)
    # Strategies of other packages bring libraries that the engine does not know.
    own = {library.name for library in engine.libraries}
    for name in sorted(set(libraries) - own):
        # Packages are listed by their normalised names.
        version = versions.get(name.replace("_", "-").lower())
        judge(name, version, "", f"Run `pip install {name}` there.")
    return [report_pass("versions", where, ", ".join(good)), *problems]


def _report_unless(*, needed: bool) -> Callable[[Topic, str, str, str], Line]:
    """Return how to report a problem: without a library that the study does not use, it can still run."""
    if needed:
        return report_failure
    return report_warning


def _fits(version: str, wanted: str) -> bool:
    try:
        # A release candidate is older than its release: 2.21.0rc1 is taken as 2.21.0.
        return SpecifierSet(wanted).contains(Version(version).base_version)
    except InvalidVersion:
        return False


def judge_builds(
    plan: CheckPlan,
    facts: Mapping[int, Facts],
    answers: Mapping[int, RankAnswer],
) -> list[Line]:
    """Check the framework's CUDA support and its libraries' Gloo, MPI and NCCL support on each host."""
    engine = engine_traits(plan.engine)
    lines = []
    for rank, answer in sorted(answers.items()):
        fact = facts[rank]
        build = answer.build
        # The ranks of a host share its environment: one speaks for it.
        if fact.local_rank:
            continue
        if build is None:
            if answer.state == "stalled":
                why = "was not imported in time"
            else:
                why = f"cannot be imported: {cause(answer.tail)}"
            seen = f"{engine.label} {why}"
            action = "Repair the environment. A slow file system looks the same."
            lines.append(report_failure("builds", fact.host, seen, action))
            continue
        # A study on CPUs misses no GPU that its framework does not see.
        gpus = 0
        if plan.device != "cpu":
            gpus = fact.gpus
        shown = shown_at_once(gpus, fact.uuids)
        lines.append(_framework(fact.host, engine, build, shown))
        for library in engine.libraries:
            needed = library.name in plan.libraries
            lines.append(_library(fact.host, library, build, gpus, needed=needed))
    return lines


def _framework(
    host: str,
    engine: EngineTraits,
    build: Mapping[str, Any],
    gpus: int,
) -> Line:
    cuda = "no CUDA"
    if build["cuda"]:
        cuda = f"CUDA {build['cuda']}"
    seen = f"{engine.label} {build[engine.name]} with {cuda}"
    if build["gpus"] < gpus:
        words, action = build["no_gpus"]
        seen += f" sees {build['gpus']} of {gpus} GPUs: {words}"
        return report_failure("builds", host, seen, action)
    return report_pass("builds", host, seen)


def _library(
    host: str,
    library: StrategyLibrary,
    build: Mapping[str, Any],
    gpus: int,
    *,
    needed: bool,
) -> Line:
    report = _report_unless(needed=needed)
    error = build[f"{library.name}_error"]
    if error:
        seen = f"{library.label} does not load: {error}"
        return report("builds", host, seen, library.repair)
    flags = build[library.name]
    if flags is None:
        seen = f"no {library.label}"
        if needed:
            return report_failure("builds", host, seen, library.repair)
        return report_pass("builds", host, seen)
    has = [name for name in ("gloo", "mpi", "nccl") if flags[name]]
    seen = f"{library.label} with {', '.join(has) or 'nothing'}"
    if not (flags["gloo"] or flags["mpi"]):
        return report("builds", host, seen, library.repair_sums)
    # Without NCCL, gradients are summed in the hosts' memory: slower, but right.
    if gpus and not flags["nccl"]:
        seen = f"{seen}, beside {gpus} GPUs"
        return report_warning("builds", host, seen, library.repair_gpus)
    return report_pass("builds", host, seen)


def collectives_to_try(
    plan: CheckPlan,
    facts: Mapping[int, Facts],
    answers: Mapping[int, RankAnswer],
    *,
    source: str,
    met: bool,
) -> list[Collective]:
    """Return the collectives that the study uses, in order, or all; unless hosts and port are known, MPI's.

    Args:
        plan: Says what the study needs.
        facts: What each rank found.
        answers: How each rank's framework was built.
        source: Where the placement comes from.
        met: Whether hosts and port are known.
    """
    builds = [answer.build for answer in answers.values() if answer.build]
    if not builds or len(builds) < len(answers):
        return []
    # A collective on GPUs needs one on each rank.
    gpu = plan.device != "cpu" and all(fact.gpus for fact in facts.values())
    usable = []
    for way in engine_traits(plan.engine).collectives:
        # mpirun connects the processes of MPI; others must find one another by hosts and port.
        connected = met
        if way.launcher:
            connected = source == way.launcher
        if not connected or not way.of_use(gpu=gpu):
            continue
        if all(_supports(build, way) for build in builds):
            usable.append(way)
    if plan.needs is None:
        return usable
    used: dict[str, Collective] = {}
    for need in plan.needs:
        for way in usable:
            # If several collectives meet a need, the library prefers the last.
            if need in way.needs:
                used[need] = way
    return list(dict.fromkeys(used.values()))


def _supports(build: Mapping[str, Any], way: Collective) -> bool:
    """Whether a rank's build has what a collective needs; without a library, the framework's own has."""
    flags: Mapping[str, Any] | None = {}
    if way.library is not None:
        flags = build[way.library]
    return flags is not None and all(flags[name] for name in way.built_with)


def cause(tail: Sequence[str]) -> str:
    """Return the line that most likely shows the cause: the last exception's message, or the last line."""
    # The last exception is the one that ended the process; those before it may have been handled.
    lines = [line.strip() for line in tail]
    causes = [line for line in lines if _CAUSE.match(line)]
    likely = causes or lines or ["no output"]
    return likely[-1][:LONGEST]
