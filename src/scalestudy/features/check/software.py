"""Check software: versions, from package metadata of the Python that will run, and builds of libraries."""

import os
import re
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from scalestudy.features.check.exchange import Facts, RankAnswer
from scalestudy.features.check.host import shown_at_once
from scalestudy.features.check.report import Line, Plan, failed, passed, warned
from scalestudy.hardware.installed import describe, describe_other
from scalestudy.plugins.engines import Collective, EngineTraits, StrategyLibrary, engine_traits
from scalestudy.plugins.strategies import REGISTRY
from scalestudy.util.errors import UserError

PYTHON = ">=3.11,<3.14"
LONGEST = 300
"""Maximum number of characters of a quoted line."""
_CAUSE = re.compile(r"^(Collective ops is aborted by|[\w.]*(Error|Exception):? )")
"""Start of the last line of errors of TensorFlow and Python."""


def read_versions(environment: str | None) -> dict[str, str] | str:
    """Return the versions of packages and of Python in an environment's folder, or why they are unknown.

    None is the environment of this process. Versions are read from metadata; nothing is imported.
    """
    try:
        if environment is None:
            built = describe(builds=False)
        else:
            built = describe_other(Path(os.path.expandvars(environment)).expanduser(), builds=False)
    except (UserError, OSError, subprocess.SubprocessError) as error:
        return error.received if isinstance(error, UserError) else str(error)
    return built.packages | {"Python": built.python}


def judge_versions(
    versions: dict[str, str] | str, where: str, engine: EngineTraits, *, libraries: Collection[str]
) -> list[Line]:
    """Return lines about the result of `read_versions`; the study's strategies need `libraries`."""
    if isinstance(versions, str):
        action = "Build the environment (see environments/), or correct `environment` in the site profile."
        return [failed("versions", where, f"no environment: {versions}", action)]
    good, problems = [], []

    def judge(label: str, version: str | None, wanted: str, action: str, *, needed: bool = True) -> None:
        if version is None and needed:
            problems.append(failed("versions", where, f"{label} not installed", action))
        elif version is None:
            good.append(f"{label} not installed (not needed)")
        elif _fits(version, wanted):
            good.append(f"{label} {version}")
        else:
            line = failed if needed else warned
            problems.append(line("versions", where, f"{label} {version}, but {wanted} is needed", action))

    judge("Python", versions["Python"], PYTHON, "Build a new environment with another Python.")
    for wanted in engine.requirements:
        present = [name for name in wanted.packages if name in versions]
        if len({versions[name] for name in present}) > 1:
            both = " and ".join(f"{name} {versions[name]}" for name in present)
            problems.append(failed("versions", where, f"{both} overwrite each other", "Keep one of them."))
            continue
        action = f"Run `pip install '{wanted.packages[0]}{wanted.versions}'`."
        judge(wanted.label, versions[present[0]] if present else None, wanted.versions, action)
    for library in engine.libraries:
        needed = library.name in libraries
        judge(library.label, versions.get(library.name), library.versions, library.mend, needed=needed)
    for name in sorted(set(libraries) - {library.name for library in engine.libraries}):
        judge(name, versions.get(name.replace("_", "-").lower()), "", f"Run `pip install {name}` there.")
    return [passed("versions", where, ", ".join(good)), *problems]


def _fits(version: str, wanted: str) -> bool:
    try:
        return SpecifierSet(wanted).contains(Version(version).base_version)
    except InvalidVersion:
        return False


def judge_builds(plan: Plan, facts: Mapping[int, Facts], answers: Mapping[int, RankAnswer]) -> list[Line]:
    """Check the framework's CUDA support and its libraries' Gloo, MPI and NCCL support on each host."""
    engine = engine_traits(plan.engine)
    lines = []
    for rank, answer in sorted(answers.items()):
        fact, build = facts[rank], answer.build
        if fact.local_rank:
            continue
        if build is None:
            stalled = answer.state == "stalled"
            why = "was not imported in time" if stalled else f"cannot be imported: {cause(answer.tail)}"
            action = "Repair the environment. A slow file system looks the same."
            lines.append(failed("builds", fact.host, f"{engine.label} {why}", action))
            continue
        gpus = fact.gpus if plan.device != "cpu" else 0
        lines.append(_framework(fact.host, engine, build, shown_at_once(gpus, fact.uuids), plan.device))
        lines += [
            _library(fact.host, library, build, gpus, needed=library.name in plan.libraries)
            for library in engine.libraries
        ]
    return lines


def _framework(host: str, engine: EngineTraits, build: Mapping[str, Any], gpus: int, device: str) -> Line:
    built_with = f"CUDA {build['cuda']}" if build["cuda"] else "ROCm" if build["rocm"] else "no CUDA"
    seen = f"{engine.label} {build[engine.name]} with {built_with}"
    if build["rocm"]:
        install = f", and install '.[{engine.gpu_extra}]'" if engine.gpu_extra else ""
        action = f"Use nodes with NVIDIA GPUs{install}. AMD GPUs are not supported."
        worse = failed if device == "gpu" else warned
        return worse("builds", host, f"{seen}, so workers compute on CPUs only", action)
    if build["gpus"] < gpus:
        words, action = build["no_gpus"]
        return failed("builds", host, f"{seen} sees {build['gpus']} of {gpus} GPUs: {words}", action)
    return passed("builds", host, seen)


def _library(
    host: str, library: StrategyLibrary, build: Mapping[str, Any], gpus: int, *, needed: bool
) -> Line:
    worse = failed if needed else warned
    if error := build[f"{library.name}_error"]:
        return worse("builds", host, f"{library.label} does not load: {error}", library.mend)
    flags = build[library.name]
    if flags is None:
        seen = f"no {library.label}"
        return failed("builds", host, seen, library.mend) if needed else passed("builds", host, seen)
    has = [name for name in ("gloo", "mpi", "nccl") if flags[name]]
    seen = f"{library.label} with {', '.join(has) or 'nothing'}"
    if not (flags["gloo"] or flags["mpi"]):
        return worse("builds", host, seen, library.mend_sums)
    if gpus and not flags["nccl"]:
        return warned("builds", host, f"{seen}, beside {gpus} GPUs", library.mend_gpus)
    return passed("builds", host, seen)


def collectives_to_try(
    plan: Plan, facts: Mapping[int, Facts], answers: Mapping[int, RankAnswer], *, source: str, met: bool
) -> list[Collective]:
    """Return the collectives to try, in order; unless hosts and port are known (`met`), only MPI's."""
    builds = [answer.build for answer in answers.values() if answer.build]
    if not builds or len(builds) < len(answers):
        return []
    gpu = plan.device != "cpu" and all(fact.gpus for fact in facts.values())

    def has(build: Mapping[str, Any], way: Collective) -> bool:
        flags = {} if way.library is None else build[way.library]
        return flags is not None and all(flags[name] for name in way.built_with)

    return [
        way
        for way in engine_traits(plan.engine).collectives
        if (source == way.launcher if way.launcher else met)
        and way.of_use(gpu=gpu)
        and all(has(build, way) for build in builds)
    ]


def used_by_study(plan: Plan, ways: Sequence[Collective], *, source: str) -> set[str]:
    """Return the names of the collectives that the study's runs will use; without a study, all of them."""
    if plan.needs is None:
        return {way.name for way in ways}
    # If several collectives meet a need, the library prefers the last.
    usable = [way for way in ways if way.launcher in ("", source)]
    return {
        way.name for way in {need: way for need in plan.needs for way in usable if need in way.needs}.values()
    }


def cause(tail: Sequence[str]) -> str:
    """Return the line that most likely shows the cause: the last exception's message, or the last line."""
    lines = [line.strip() for line in tail]
    return ([line for line in lines if _CAUSE.match(line)] or lines or ["no output"])[-1][:LONGEST]


def strategy_records() -> list[dict[str, Any]]:
    """Return each strategy in display order, with what moves its gradients, and what is missing here for it.

    `timed` is whether its times are meaningful for speed-up, `nodes` whether workers may be on several.
    """
    records = []
    for row in REGISTRY.items():
        missing = engine_traits(row.engine).missing_software([row.library] if row.library else [])
        records.append(
            {
                "strategy": row.name,
                "engine": row.engine,
                "summary": row.summary,
                "synchronous": row.synchronous,
                "nodes": row.spans_nodes,
                "timed": row.timed,
                "summed_by": row.summed_by,
                "missing": missing.received if missing else "",
                "action": missing.action if missing else "",
            }
        )
    return records
