"""Software that goes together: versions, by metadata in the Python that will run, and how it was built."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from scalestudy.features.check.exchange import Facts, RankAnswer
from scalestudy.features.check.host import shown_at_once
from scalestudy.features.check.report import Line, Plan, failed, passed, warned
from scalestudy.study.engines import Collective, EngineTraits, StrategyLibrary, engine_traits

PYTHON = ">=3.11,<3.14"
LIMIT = 60.0
LONGEST = 300
"""Characters of a quoted line."""
_CAUSE = re.compile(r"^(Collective ops is aborted by|[\w.]*(Error|Exception):? )")
"""How TensorFlow's and Python's last words begin, before what is said about their circumstances."""
_READ = """
import json, platform, sys
from importlib import metadata
names, keys = json.loads(sys.argv[1])
packages, built_for = {}, {}
for name in names:
    try:
        packages[name] = metadata.version(name)
        if name in keys:
            text = metadata.distribution(name).locate_file(name + "/metadata.json").read_text()
            built_for[name] = json.loads(text).get(keys[name])
    except (metadata.PackageNotFoundError, OSError, ValueError):
        pass
print(json.dumps({"python": platform.python_version(), "packages": packages, "built_for": built_for}))
"""


class Installed(TypedDict):
    """What a Python has of the packages that were asked for."""

    python: str
    packages: dict[str, str]
    """Versions by name."""
    built_for: dict[str, str | None]
    """Version of the framework that each of its libraries was built for, where it says so."""


def python_of(environment: str | None) -> str:
    """The Python of a virtual environment, or this one."""
    if environment is None:
        return sys.executable
    return str(Path(os.path.expandvars(environment)).expanduser() / "bin" / "python")


def read_versions(python: str, engine: EngineTraits, libraries: Collection[str] = ()) -> Installed | str:
    """Versions in a Python, an engine's and these libraries' among them, or why they cannot be read."""
    keys = {library.name: library.built_for for library in engine.libraries}
    names = ["scalestudy", *(name for wanted in engine.requirements for name in wanted.packages), *keys]
    try:
        done = subprocess.run(
            [python, "-c", _READ, json.dumps([[*names, *libraries], keys])],
            capture_output=True, text=True, timeout=LIMIT, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        installed: Installed = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return f"{python} did not answer within {LIMIT:.0f} s"
    except OSError as error:
        return f"{python}: {error.strerror}"
    except json.JSONDecodeError:
        return f"{python}: {(done.stderr.strip().splitlines() or ['no output'])[-1]}"
    return installed


def judge_versions(
    installed: Installed | str, where: str, engine: EngineTraits, *, libraries: Collection[str]
) -> list[Line]:
    """Lines about what `read_versions` read; `libraries` are those that the study's strategies need."""
    if isinstance(installed, str):
        action = "Build the environment (see environments/), or correct `environment` in the site profile."
        return [failed("versions", where, f"no Python: {installed}", action)]
    packages = installed["packages"]
    lines = [
        _within(
            "Python", installed["python"], PYTHON, where, "Make the environment anew with another Python."
        ),
        _within("Scalestudy", packages.get("scalestudy"), "", where, "Install it there."),
    ]
    for wanted in engine.requirements:
        present = [name for name in wanted.packages if name in packages]
        if len({packages[name] for name in present}) > 1:
            both = " and ".join(f"{name} {packages[name]}" for name in present)
            action = "Uninstall both; install one."
            lines.append(failed("versions", where, f"{both} overwrite each other", action))
            continue
        version = packages[present[0]] if present else None
        action = f"Run `pip install '{wanted.packages[0]}{wanted.versions}'`."
        lines.append(_within(wanted.label, version, wanted.versions, where, action))
    lines += [
        _built_for(installed, engine, library, where, needed=library.name in libraries)
        for library in engine.libraries
    ]
    for name in sorted(set(libraries) - {library.name for library in engine.libraries}):
        lines.append(_within(name, packages.get(name), "", where, f"Run `pip install {name}` there."))
    good = [line.seen for line in lines if line.status == "pass"]
    return [passed("versions", where, ", ".join(good)), *(line for line in lines if line.status != "pass")]


def _built_for(
    installed: Installed, engine: EngineTraits, library: StrategyLibrary, where: str, *, needed: bool
) -> Line:
    """A library that is built for one version of the framework."""
    packages, worse = installed["packages"], failed if needed else warned
    version, built_for = packages.get(library.name), installed["built_for"].get(library.name)
    if version is None and not needed:
        return passed("versions", where, f"{library.label} not installed (not needed)")
    if version is None:
        return failed("versions", where, f"{library.label} not installed", library.mend)
    name, framework = f"{library.label} {version}", engine.requirements[0].packages
    beside = next((packages[package] for package in framework if package in packages), None)
    if built_for is None or built_for == "none":
        return worse("versions", where, f"{name} built without {engine.label}", library.mend)
    if built_for != beside:
        seen = f"{name} built for {engine.label} {built_for}, beside {beside or 'none'}"
        return worse("versions", where, seen, library.mend)
    if not _fits(version, library.versions):
        return warned("versions", where, f"{name}; tried with {library.versions}", "Look at the collectives.")
    return passed("versions", where, f"{name}, built for {engine.label} {built_for}")


def _within(name: str, version: str | None, wanted: str, where: str, action: str) -> Line:
    if version is None:
        return failed("versions", where, f"{name} not installed", action)
    if not _fits(version, wanted):
        return failed("versions", where, f"{name} {version}, but {wanted} is needed", action)
    return passed("versions", where, f"{name} {version}")


def _fits(version: str, wanted: str) -> bool:
    try:
        return SpecifierSet(wanted).contains(Version(version).base_version)
    except InvalidVersion:
        return False


def judge_builds(plan: Plan, facts: Mapping[int, Facts], answers: Mapping[int, RankAnswer]) -> list[Line]:
    """The framework's CUDA and its libraries' Gloo, MPI and NCCL, on each host."""
    engine = engine_traits(plan.engine)
    lines = []
    for rank, answer in sorted(answers.items()):
        fact, build = facts[rank], answer.build
        if fact.local_rank:
            continue
        if build is None:
            stalled = answer.state == "stalled"
            why = "was not imported in time" if stalled else f"cannot be imported: {cause(answer.tail)}"
            action = "Mend the environment; a slow file system looks the same as a stall."
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
        action = "Take nodes with NVIDIA's GPUs, and install '.[gpu]': AMD's are not found."
        worse = failed if device == "gpu" else warned
        return worse("builds", host, f"{seen}, by which workers compute on CPUs only", action)
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
    """The collectives that can be tried, in order; only MPI's unless hosts and a port are known (`met`)."""
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
    """Of these collectives, those that the study's runs will use; all of them without a study."""
    if plan.needs is None:
        return {way.name for way in ways}
    # Of those that one need may be met by, the last is what its library prefers.
    usable = [way for way in ways if way.launcher in ("", source)]
    return {
        way.name for way in {need: way for need in plan.needs for way in usable if need in way.needs}.values()
    }


def cause(tail: Sequence[str]) -> str:
    """The line of a log's tail that most likely says why: an exception's last words, or the last line."""
    lines = [line.strip() for line in tail]
    return ([line for line in lines if _CAUSE.match(line)] or lines or ["no output"])[-1][:LONGEST]
