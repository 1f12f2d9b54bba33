"""What a quality takes: time and cost until it is first reached, and the useful speed-up.

With n times fewer updates, the speed-up at fixed epochs is not the speed-up in time to solution. Time counts
from the start of the processes and includes start-up, compilation, and every epoch with its evaluation, as in
Coleman et al., "DAWNBench" (2017), and in MLPerf.

Useful speed-up is U(n) = S(n) / r(n); r(n) is how many times the samples n workers need for the same quality.
A larger global batch makes fewer updates per epoch, so n workers may be S(n) times as fast and still need
more samples (Shallue et al., "Measuring the effects of data parallelism on neural network training", JMLR 20,
2019). Samples until a quality is first reached are interpolated between evaluations of the running best, and
compared by seed on logarithms. At one number of workers and one global batch, synchronous strategies make the
same updates: the row with the most trainings gives r for all of them, also where it has no times (`virtual`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp, isfinite, log
from statistics import fmean
from typing import NamedTuple

from scalestudy.analysis.measures import Measures, measure_times, measured, times_count
from scalestudy.analysis.price import Bill, speed_up, units_of
from scalestudy.analysis.runs import Key, Run, Seed, epoch_values, seed_of
from scalestudy.analysis.statistics import LOGARITHM, NOTHING, ONE, Estimate
from scalestudy.config.objectives import Better, gain

BEFORE = ("start-up", "compile")
"""Phases before the first epoch."""


@dataclass(frozen=True)
class ToTarget:
    """What a row took to reach a quality.

    Attributes:
        quality: The target, in the metric's own unit.
        reached: Number of runs that reached it.
        runs: Number of runs with known epochs.
        seconds: Geometric mean of their times; empty unless all runs reached it.
        cost: Unit-hours until then.
        speedup: Time of the fastest one-worker row divided by this time.
    """

    quality: float
    reached: int
    runs: int
    seconds: Estimate = NOTHING
    cost: Estimate = NOTHING
    speedup: Estimate = NOTHING


def times_to_target(
    keys: Sequence[Key], measures: Measures, target: float, bill: Bill = "worker"
) -> dict[Key, ToTarget]:
    """What each timed row took to reach `target`, without rows whose epochs lack the quality."""
    reached: dict[Key, dict[Seed, float | None]] = {}
    for key in keys:
        runs, better = measures.groups[key], measures.senses[key].better
        if better is not None and times_count(runs) and all(map(_has_qualities, runs)):
            reached[key] = {seed_of(run): _seconds_until(run, target, better) for run in runs}
    times = {
        key: {seed: seconds for seed, seconds in by_seed.items() if seconds is not None}
        for key, by_seed in reached.items()
    }
    counts = {key: (len(times[key]), len(measures.groups[key])) for key in reached}
    complete = {key: by_seed for key, by_seed in times.items() if len(by_seed) == counts[key][1]}
    measure = measure_times({key: measures.groups[key] for key in complete}, complete)
    means = {key: measure.mean(key) for key in complete}
    singles = [key for key in complete if key.workers == 1]
    reference = min(singles, key=lambda key: means[key].value or 0.0, default=None)
    answers = {key: ToTarget(target, *count) for key, count in counts.items()}
    for key, seconds in means.items():
        cost = seconds.scaled(units_of(measures.groups[key], bill) / 3600)
        speedup = measure.ratio(reference, key) if reference else NOTHING
        speedup = Estimate(1.0) if key == reference else speedup
        answers[key] = ToTarget(target, *counts[key], seconds, cost, speedup)
    return answers


def _has_qualities(run: Run) -> bool:
    values = epoch_values(run.epochs, "validation", run.result.metric)
    return any(value is not None for value in values)


def _seconds_until(run: Run, target: float, better: Better) -> float | None:
    """Seconds until a run's quality first reached the target; None if it never did or times are unknown."""
    qualities = epoch_values(run.epochs, "validation", run.result.metric)
    trained = epoch_values(run.epochs, "train_seconds")
    if any(seconds is None for seconds in trained):
        return None
    evaluated = [seconds or 0.0 for seconds in epoch_values(run.epochs, "evaluation_seconds")]
    before = sum(run.result.phases.get(phase, 0.0) for phase in BEFORE)
    elapsed = accumulate(train + evaluation for train, evaluation in zip(trained, evaluated, strict=True))
    for seconds, quality in zip(elapsed, qualities, strict=True):
        if quality is not None and (quality >= target if better == "higher" else quality <= target):
            return float(before + seconds)
    return None


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
        at_most: Upper bound of U(n) if some runs did not reach the target.
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
    at_most: float | None
    by_construction: bool
    source: Key
    baseline: Key


class _Training(NamedTuple):
    """Samples of one run until it reached the target, None if it did not; and all of its samples."""

    needed: float | None
    trained: float

    @property
    def bound(self) -> float:
        """Samples that are needed, at least."""
        return self.trained if self.needed is None else self.needed


class _Updates(NamedTuple):
    """Identifies rows that make the same updates."""

    engine: str | None
    metric: str
    variant: str
    workers: int
    global_batch: int | None


def useful_speed_ups(keys: Sequence[Key], measures: Measures, target: float) -> dict[Key, Useful]:
    """What each synchronous row needs to reach `target`; without rows that nothing can be compared with."""
    alike: dict[_Updates, list[Key]] = {}
    trainings: dict[Key, dict[Seed, _Training]] = {}
    for key in keys:
        runs, better = measures.groups[key], measures.senses[key].better
        if better is None:
            continue
        one = runs[0].result
        updates = _Updates(one.engine, one.metric, key.variant, key.workers, one.global_batch)
        alike.setdefault(updates, []).append(key)
        found = {seed_of(run): _training(run, target, better) for run in runs}
        trainings[key] = {seed: training for seed, training in found.items() if training}
    sources = {
        updates: max(members, key=lambda key: len(trainings[key])) for updates, members in alike.items()
    }
    sources = {updates: key for updates, key in sources.items() if trainings[key]}
    complete = {
        key: {seed: training.needed for seed, training in trainings[key].items() if training.needed}
        for key in sources.values()
        if all(training.needed for training in trainings[key].values())
    }
    needed = measured(complete, dict.fromkeys(complete, LOGARITHM), [list(complete)], LOGARITHM)
    firsts: dict[tuple[str | None, ...], _Updates] = {}
    for updates in sorted(sources, key=lambda updates: updates.workers):
        firsts.setdefault(updates[:3], updates)
    answers: dict[Key, Useful] = {}
    for updates, source in sources.items():
        first = firsts[updates[:3]]
        baseline = sources[first]
        same_batch = updates.global_batch is not None and updates.global_batch == first.global_batch
        ratio, least = NOTHING, None
        if same_batch or source == baseline:
            ratio = ONE
        elif source in complete and baseline in complete:
            ratio = needed.ratio(source, baseline)
        elif baseline in complete:
            least = _least_ratio(trainings[source], trainings[baseline])
        reached = [training.needed for training in trainings[source].values() if training.needed]
        for key in alike[updates]:
            speed = speed_up(key, measures)
            steady = speed.steady if speed.against == first.workers else NOTHING
            answers[key] = Useful(
                target,
                len(reached),
                len(trainings[source]),
                tuple(reached),
                ratio,
                steady.times(ratio.inverse()),
                steady.value / least if least and steady.value else None,
                same_batch and source != baseline,
                source,
                baseline,
            )
    return answers


def _training(run: Run, target: float, better: Better) -> _Training | None:
    """When a run reached the target; None if its epochs lack the quality or their samples."""
    qualities = epoch_values(run.epochs, "validation", run.result.metric)
    samples = epoch_values(run.epochs, "samples")
    if all(quality is None for quality in qualities) or any(count is None for count in samples):
        return None
    wanted, before = gain(target, better), 0.0
    chance = run.result.constant_quality
    best = None if chance is None else gain(chance, better)
    for seen, quality in zip(accumulate(samples), qualities, strict=True):
        if quality is None or not isfinite(quality):
            continue
        reached = gain(quality, better)
        if reached >= wanted:
            share = 1.0 if best is None or best >= wanted else (wanted - best) / (reached - best)
            return _Training(before + share * (seen - before), seen)
        before, best = float(seen), reached if best is None else max(best, reached)
    return _Training(None, float(sum(samples)))


def _least_ratio(ours: Mapping[Seed, _Training], theirs: Mapping[Seed, _Training]) -> float:
    """Lower bound of r(n), for runs that ended before they reached the target."""
    common = ours.keys() & theirs.keys()
    if common:
        return exp(fmean(log(ours[seed].bound / theirs[seed].bound) for seed in common))
    return exp(
        fmean(log(training.bound) for training in ours.values())
        - fmean(log(training.bound) for training in theirs.values())
    )
