"""The useful speed-up: what remains of a speed-up when the same quality takes more samples.

With n times fewer updates, the speed-up at fixed epochs is not the speed-up in time to solution. Useful
speed-up is U(n) = S(n) / r(n); r(n) is how many times the samples n workers need for the same quality. A
larger global batch makes fewer updates per epoch, so n workers may be S(n) times as fast and still need more
samples (Shallue et al., "Measuring the effects of data parallelism on neural network training", JMLR 20,
2019). Samples until a quality is first reached are interpolated between evaluations of the running best, and
compared by seed on logarithms. At one number of workers and one global batch, synchronous strategies make the
same updates: the row with the most trainings gives r for all of them, also where it has no times (`virtual`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import isfinite
from typing import NamedTuple

from scalestudy.analysis.estimate import NOTHING, ONE, Estimate
from scalestudy.analysis.measures import (
    Measure,
    Measures,
    build_measure,
    is_asynchronous,
)
from scalestudy.analysis.runs import Key, Run, Seed, epoch_values, seed_of
from scalestudy.analysis.scales import LOGARITHM
from scalestudy.analysis.speed_up import speed_up
from scalestudy.config.metric_senses import Better, gain


@dataclass(frozen=True)
class Useful:
    """What a row needs to reach a quality, compared with the fewest workers of the same settings.

    Attributes:
        target: The quality, in the metric's own unit.
        reached: Number of runs that reached it.
        runs: Number of runs whose epochs hold the quality.
        samples: Samples of each of them until then.
        ratio: r(n), the ratio of these samples; empty unless all runs of both rows reached it.
        speedup: U(n); empty if the row was not timed.
        by_construction: Whether r(n) = 1 because the global batch is that of the baseline.
        source: Row whose runs gave r(n).
        baseline: Row that it is compared with.
    """

    target: float
    reached: int
    runs: int
    samples: tuple[float, ...]
    ratio: Estimate
    speedup: Estimate
    by_construction: bool
    source: Key
    baseline: Key


class _Updates(NamedTuple):
    """Identifies rows that make the same updates."""

    engine: str | None
    metric: str
    variant: str
    workers: int
    global_batch: int | None


def useful_speed_ups(
    keys: Sequence[Key],
    measures: Measures,
    target: float,
) -> dict[Key, Useful]:
    """What each row needs to reach `target`; without rows that nothing can be compared with."""
    alike: dict[_Updates, list[Key]] = {}
    trainings: dict[Key, dict[Seed, float | None]] = {}
    for key in keys:
        runs = measures.groups[key]
        better = measures.senses[key].better
        # Updates of asynchronous workers are of older weights: no other strategy makes the same.
        if better is None or is_asynchronous(runs):
            continue
        alike.setdefault(_updates_of(key, runs), []).append(key)
        trainings[key] = {}
        for run in runs:
            if _has_qualities(run):
                trainings[key][seed_of(run)] = _samples_until(run, target, better)
    sources: dict[_Updates, Key] = {}
    for updates, members in alike.items():
        # At one number of workers, strategies make the same updates: the row with most trainings says most.
        source = max(members, key=lambda key: len(trainings[key]))
        if trainings[source]:
            sources[updates] = source
    needed = _samples_of_complete_rows(sources.values(), trainings)
    firsts: dict[tuple[str | None, ...], _Updates] = {}
    for updates in sorted(sources, key=lambda updates: updates.workers):
        firsts.setdefault(updates[:3], updates)
    answers: dict[Key, Useful] = {}
    for updates, source in sources.items():
        first = firsts[updates[:3]]
        baseline = sources[first]
        same_batch = False
        if updates.global_batch is not None:
            same_batch = updates.global_batch == first.global_batch
        ratio = ONE
        if not same_batch:
            ratio = _ratio(source, baseline, needed)
        samples = trainings[source].values()
        reached = tuple(filter(None, samples))
        for key in alike[updates]:
            speed = speed_up(key, measures)
            steady = NOTHING
            # U(n) is S(n) / r(n) only if both are against the same number of workers.
            if speed.against == first.workers:
                steady = speed.steady
            answers[key] = Useful(
                target,
                len(reached),
                len(samples),
                reached,
                ratio,
                steady.times(ratio.inverse()),
                same_batch and source != baseline,
                source,
                baseline,
            )
    return answers


def _ratio(key: Key, baseline: Key, needed: Measure) -> Estimate:
    """r(n) of a row by its samples; empty unless all runs of both rows reached the target."""
    if key == baseline:
        return ONE
    if key in needed.values and baseline in needed.values:
        return needed.ratio(key, baseline)
    return NOTHING


def _updates_of(key: Key, runs: Sequence[Run]) -> _Updates:
    one = runs[0].result
    return _Updates(one.engine, one.metric, key.variant, key.workers, one.global_batch)


def _samples_of_complete_rows(
    keys: Iterable[Key], trainings: Mapping[Key, Mapping[Seed, float | None]]
) -> Measure:
    """Samples until the target of the rows of which all runs reached it."""
    complete: dict[Key, dict[Seed, float]] = {}
    for key in keys:
        reached: dict[Seed, float] = {}
        for seed, number in trainings[key].items():
            if number:
                reached[seed] = number
        # A ratio of the runs that reached it alone would flatter the row.
        if len(reached) == len(trainings[key]):
            complete[key] = reached
    scales = dict.fromkeys(complete, LOGARITHM)
    return build_measure(complete, scales, [list(complete)], LOGARITHM)


def _has_qualities(run: Run) -> bool:
    """Whether the epochs of a run hold the quality and their samples."""
    qualities = set(epoch_values(run.epochs, "validation", run.result.metric))
    if qualities <= {None}:
        return False
    return None not in epoch_values(run.epochs, "samples")


def _samples_until(run: Run, target: float, better: Better) -> float | None:
    """Samples until a run reached the target; None if it never did."""
    qualities = epoch_values(run.epochs, "validation", run.result.metric)
    samples = epoch_values(run.epochs, "samples")
    wanted, before = gain(target, better), 0.0
    chance = run.result.constant_quality
    best = None
    # A model begins at chance, as far as that is known.
    if chance is not None:
        best = gain(chance, better)
    for seen, quality in zip(accumulate(samples), qualities, strict=True):
        if quality is None or not isfinite(quality):
            continue
        reached = gain(quality, better)
        if reached >= wanted:
            share = 1.0
            if best is not None and best < wanted:
                # It was reached between two evaluations.
                share = (wanted - best) / (reached - best)
            return float(before + share * (seen - before))
        before = float(seen)
        # The running best: a quality that was reached stays reached.
        if best is None or reached > best:
            best = reached
    return None
