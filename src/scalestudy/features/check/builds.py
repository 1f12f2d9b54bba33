"""What frameworks were built with, and which collectives follow from it."""

from collections.abc import Mapping, Sequence
from typing import Any

from scalestudy.features.check.collectives import cause
from scalestudy.features.check.host import shown_at_once
from scalestudy.features.check.mailbox import Facts, RankAnswer
from scalestudy.features.check.plan import Plan
from scalestudy.features.check.report import Line, failed, passed, warned
from scalestudy.study.engines import Collective, EngineTraits, StrategyLibrary, engine_traits


def judge_builds(plan: Plan, facts: Mapping[int, Facts], answers: Mapping[int, RankAnswer]) -> list[Line]:
    """The framework's CUDA and its libraries' Gloo, MPI and NCCL, on each host."""
    engine = engine_traits(plan.engine)
    lines = []
    for rank, answer in sorted(answers.items()):
        fact, build = facts[rank], answer.build
        if fact.local_rank:
            continue
        if build is None:
            lines.append(_not_imported(fact.host, engine, answer))
            continue
        gpus = fact.gpus if plan.device != "cpu" else 0
        lines.append(_framework(fact.host, engine, build, shown_at_once(gpus, fact.uuids), plan.device))
        lines += [
            _library(fact.host, library, build, gpus, needed=library.name in plan.libraries)
            for library in engine.libraries
        ]
    return lines


def _not_imported(host: str, engine: EngineTraits, answer: RankAnswer) -> Line:
    outcome = answer.outcome
    stalled = outcome is not None and outcome.state == "stalled"
    last = cause(outcome.tail if outcome else [])
    seen = f"{engine.label} " + ("was not imported in time" if stalled else f"cannot be imported: {last}")
    return failed("builds", host, seen, "Mend the environment; a slow file system looks the same as a stall.")


def _framework(
    host: str, engine: EngineTraits, build: Mapping[str, Any], gpus: int, plan_device: str
) -> Line:
    made = f"CUDA {build['cuda']}" if build["cuda"] else "ROCm" if build["rocm"] else "no CUDA"
    seen = f"{engine.label} {build[engine.name]} with {made}"
    if build["rocm"]:
        action = "Take nodes with NVIDIA's GPUs, and install '.[gpu]': AMD's are not found."
        worse = failed if plan_device == "gpu" else warned
        return worse("builds", host, f"{seen}, by which workers compute on CPUs only", action)
    if build["gpus"] < gpus:
        words, action = build["no_gpus"]
        return failed("builds", host, f"{seen} sees {build['gpus']} of {gpus} GPUs: {words}", action)
    return passed("builds", host, seen)


def _library(
    host: str, library: StrategyLibrary, build: Mapping[str, Any], gpus: int, *, needed: bool
) -> Line:
    worse, label, mend = failed if needed else warned, library.label, library.mend
    if error := build[f"{library.name}_error"]:
        return worse("builds", host, f"{label} does not load: {error}", mend)
    flags = build[library.name]
    if flags is None:
        seen = f"no {label}"
        return worse("builds", host, seen, mend) if needed else passed("builds", host, seen)
    has = [name for name in ("gloo", "mpi", "nccl") if flags[name]]
    seen = f"{label} with {', '.join(has) or 'nothing'}"
    if not (flags["gloo"] or flags["mpi"]):
        return worse("builds", host, seen, library.mend_sums)
    if gpus and not flags["nccl"]:
        return warned("builds", host, f"{seen}, beside {gpus} GPUs", library.mend_gpus)
    return passed("builds", host, seen)


def collectives_to_try(
    plan: Plan, facts: Mapping[int, Facts], answers: Mapping[int, RankAnswer], *, source: str, met: bool
) -> list[str]:
    """The collectives that can be tried, in order; only MPI's unless hosts and a port are known (`met`)."""
    builds = [answer.build for answer in answers.values() if answer.build]
    if not builds or len(builds) < len(answers):
        return []
    gpu = on_gpus(plan, facts)
    return [
        way.name
        for way in engine_traits(plan.engine).collectives
        if (source == way.launcher if way.launcher else met)
        and way.of_use(gpu=gpu)
        and all(_has(build, way) for build in builds)
    ]


def on_gpus(plan: Plan, facts: Mapping[int, Facts]) -> bool:
    """Whether the study's workers compute on GPUs."""
    return plan.device != "cpu" and all(fact.gpus for fact in facts.values())


def _has(build: Mapping[str, Any], collective: Collective) -> bool:
    if collective.library is None:
        return True
    flags = build[collective.library]
    return bool(flags) and all(flags[name] for name in collective.built_with)


def used(plan: Plan, available: Sequence[str], *, source: str) -> set[str]:
    """Of these collectives, those that the study's runs will use; all of them without a study."""
    if plan.needs is None:
        return set(available)
    # Of those that one need may be met by, the last is what its library prefers.
    chosen = {
        need: way.name
        for need in plan.needs
        for way in engine_traits(plan.engine).meeting([need])
        if way.name in available and way.launcher in ("", source)
    }
    return set(chosen.values())
