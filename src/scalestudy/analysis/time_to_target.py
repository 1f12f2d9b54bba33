"""Time and cost until the quality first reaches a target.

With n times fewer updates, the speed-up at fixed epochs is not the speed-up in time to solution. Time counts
from the start of the processes and includes start-up, compilation, and every epoch with its evaluation, as in
Coleman et al., "DAWNBench" (2017), and in MLPerf.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from scalestudy.analysis.measures import Measures, measured_times, times_count
from scalestudy.analysis.price import Bill, units_of
from scalestudy.analysis.runs import Key, Run, Seed, epoch_values, seed_of
from scalestudy.analysis.statistics import NOTHING, Estimate
from scalestudy.config.metrics import Better

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
    measure = measured_times({key: measures.groups[key] for key in complete}, complete)
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
