"""Timing runs: the time of the training that each stands for, and which rows make equal updates."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isclose

from scalestudy.analysis.runs import Key, Run
from scalestudy.plugins.strategies import is_synchronous
from scalestudy.store.records import PROVING_STEPS, Timing

EQUAL = 1e-4
"""Relative difference of losses that rounding explains; other updates differ by more within a few steps. Only
the first losses are compared, since the differences of rounding grow with every update."""
MEASURED = ("steps", "input")
"""Phases that make up the training time."""


def as_training(run: Run) -> Run:
    """The training that a timing run stands for, with computed times; any other run as it is.

    Start-up and compilation are the timing run's own. Steps after the warm-up take the measured step time,
    evaluations after the first take the time of the second, and the model is saved once more. Energy and
    traffic are unknown.
    """
    timing, result = run.result.timing, run.result
    wall = run.wall_seconds
    if timing is None or result.training_seconds is None or wall is None:
        return run
    step = timing.seconds / timing.steps
    training = timing.warm_up_seconds + (timing.training_updates - timing.warm_up_steps) * step
    evaluation = max(0, timing.training_evaluations - len(timing.evaluations)) * timing.evaluations[-1]
    saving = result.phases.get("saving", 0.0)
    phases = dict(result.phases)
    done = sum(phases.get(name, 0.0) for name in MEASURED)
    phases |= {name: phases[name] * training / done for name in MEASURED if phases.get(name)}
    phases["evaluation"] = phases.get("evaluation", 0.0) + evaluation
    phases["saving"] = 2 * saving
    computed = {
        "epochs": timing.training_epochs,
        "updates": timing.training_updates,
        "phases": phases,
        "samples_processed": timing.training_samples,
        "training_seconds": training,
        "wall_seconds": wall - result.training_seconds + training + evaluation + saving,
        "gpus": [use.model_copy(update={"joules": None}) for use in result.gpus],
        "nodes": [type(use)(rank=use.rank) for use in result.nodes],
        "processes": [],
    }
    return replace(run, result=result.model_copy(update=computed), epochs=(), damage=(), allocations=())


def equal_updates(groups: Mapping[Key, Sequence[Run]]) -> dict[Key, Key]:
    """The first row whose updates each row's equal, according to the first losses of their timing runs.

    With one global batch, synchronous strategies of one engine sum the same gradients on any number of
    workers, unless a layer sees only its worker's share. Rows without timing runs, and those whose losses
    differ, make updates of their own.
    """
    firsts: dict[Key, Key] = {}
    for key, runs in groups.items():
        own = _losses(runs)
        firsts[key] = next(
            (
                first
                for first in dict.fromkeys(firsts.values())
                if first.variant == key.variant
                and _batch(groups[first]) == _batch(runs)
                and groups[first][0].result.engine == runs[0].result.engine
                and _agree(own, _losses(groups[first]))
            ),
            key,
        )
    return firsts


def _batch(runs: Sequence[Run]) -> tuple[int | None, int | None]:
    """Global batch; the number of workers stands for one that is not recorded."""
    result = runs[0].result
    return result.global_batch, result.workers if result.global_batch is None else None


def _losses(runs: Sequence[Run]) -> dict[int | None, Timing]:
    """Timing runs that prove updates, by seed."""
    return {
        run.result.seed: timing
        for run in runs
        if (timing := run.result.timing)
        and timing.warm_up_steps + timing.steps >= PROVING_STEPS
        and run.result.local_steps == 1
        and is_synchronous(run.result.implementation)
    }


def _agree(ours: Mapping[int | None, Timing], theirs: Mapping[int | None, Timing]) -> bool:
    pairs = [(ours[seed].losses, theirs[seed].losses) for seed in ours.keys() & theirs.keys()]
    return bool(pairs) and all(
        len(one) == len(other) and all(isclose(*both, rel_tol=EQUAL) for both in zip(one, other, strict=True))
        for one, other in pairs
    )
