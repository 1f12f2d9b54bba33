"""What frameworks were built with, and which collectives follow from it."""

from collections.abc import Mapping, Sequence
from typing import Any

from scalestudy.check.line import Line, failed, passed, warned
from scalestudy.check.machine import shown_at_once
from scalestudy.check.mailbox import Answer, Facts
from scalestudy.check.plan import Plan
from scalestudy.check.remedy import cause
from scalestudy.engines.tensorflow.collective_table import COLLECTIVES, LIBRARY, Collective, meeting


def judge_builds(plan: Plan, facts: Mapping[int, Facts], answers: Mapping[int, Answer]) -> list[Line]:
    """TensorFlow's CUDA and Horovod's Gloo, MPI and NCCL, on each host."""
    lines = []
    for rank, answer in sorted(answers.items()):
        if facts[rank].local_rank == 0:
            host = facts[rank].host
            build = answer.build
            if build is None:
                lines.append(_not_imported(host, answer))
                continue
            own = facts[rank]
            gpus = own.gpus if plan.device != "cpu" else 0
            lines += [
                _tensorflow(host, build, shown_at_once(gpus, own.uuids), plan.device),
                _horovod(host, build, gpus, needed=LIBRARY in plan.libraries),
            ]
    return lines


def _not_imported(host: str, answer: Answer) -> Line:
    outcome = answer.outcome
    stalled = outcome is not None and outcome.state == "stalled"
    last = cause(outcome.tail if outcome else [])
    seen = "TensorFlow was not imported in time" if stalled else f"TensorFlow cannot be imported: {last}"
    return failed("builds", host, seen, "Mend the environment; a slow file system looks the same as a stall.")


def _tensorflow(host: str, build: Mapping[str, Any], gpus: int, plan_device: str) -> Line:
    made = f"CUDA {build['cuda']}" if build["cuda"] else "ROCm" if build["rocm"] else "no CUDA"
    seen = f"TensorFlow {build['tensorflow']} with {made}"
    if build["rocm"]:
        action = "Take nodes with NVIDIA's GPUs, and install '.[gpu]': AMD's are not found."
        worse = failed if plan_device == "gpu" else warned
        return worse("builds", host, f"{seen}, by which workers compute on CPUs only", action)
    if build["gpus"] < gpus:
        words, action = build["no_gpus"]
        return failed("builds", host, f"{seen} sees {build['gpus']} of {gpus} GPUs: {words}", action)
    return passed("builds", host, seen)


def _horovod(host: str, build: Mapping[str, Any], gpus: int, *, needed: bool) -> Line:
    worse = failed if needed else warned
    mend = "Build it against this TensorFlow (environments/build-horovod.sh)."
    if error := build[f"{LIBRARY}_error"]:
        return worse("builds", host, f"Horovod does not load: {error}", mend)
    flags = build[LIBRARY]
    if flags is None:
        return worse("builds", host, "no Horovod", mend) if needed else passed("builds", host, "no Horovod")
    has = [name for name in ("gloo", "mpi", "nccl") if flags[name]]
    seen = f"Horovod with {', '.join(has) or 'nothing'}"
    if not (flags["gloo"] or flags["mpi"]):
        return worse("builds", host, seen, "Build it with HOROVOD_WITH_GLOO=1.")
    if gpus and not flags["nccl"]:
        action = "Build it with HOROVOD_GPU_OPERATIONS=NCCL; without NCCL, sums pass through the CPUs."
        return warned("builds", host, f"{seen}, beside {gpus} GPUs", action)
    return passed("builds", host, seen)


def collectives_to_try(
    plan: Plan, facts: Mapping[int, Facts], answers: Mapping[int, Answer], *, source: str, met: bool
) -> list[str]:
    """The collectives that can be tried, in this order.

    Args:
        plan: What is checked.
        facts: By rank.
        answers: By rank, with their builds.
        source: Who started the ranks.
        met: Whether hosts and a port are known, without which only MPI can meet.
    """
    builds = [answer.build for answer in answers.values() if answer.build]
    if not builds or len(builds) < len(answers):
        return []
    gpu = on_gpus(plan, facts)
    return [
        each.name
        for each in COLLECTIVES
        if (source == each.launcher if each.launcher else met)
        and each.of_use(gpu=gpu)
        and all(_has(build, each) for build in builds)
    ]


def on_gpus(plan: Plan, facts: Mapping[int, Facts]) -> bool:
    """Whether the study's workers compute on GPUs."""
    return plan.device != "cpu" and all(each.gpus for each in facts.values())


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
    return set(
        {
            need: each.name
            for need in plan.needs
            for each in meeting([need])
            if each.name in available and each.launcher in ("", source)
        }.values()
    )
