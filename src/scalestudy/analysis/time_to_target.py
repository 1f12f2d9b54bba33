"""Time and cost until the quality first reaches a target.

With n times fewer updates, the speed-up at fixed epochs is not the time to solution. Time counts from the
start of the processes: start-up and compilation, then every epoch with its evaluation, as in Coleman et al.,
"DAWNBench" (2017), and in MLPerf.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from scalestudy.analysis.decision import Bill, units_of
from scalestudy.analysis.measures import Measures, is_virtual, measured, oversubscription
from scalestudy.analysis.quality import accepted_loss
from scalestudy.analysis.runs import Key, Run, Seed, epoch_values, seed_of
from scalestudy.analysis.statistics import LOGARITHM, NOTHING, Estimate
from scalestudy.analysis.table import Row
from scalestudy.study.metrics import gain
from scalestudy.study.quality_margin import QualityMargin

BEFORE = ("start-up", "compile")
"""Phases before the first epoch."""


@dataclass(frozen=True)
class ToTarget:
    """What a row took to reach a quality.

    Attributes:
        quality: The target, in the metric's own unit.
        reached: Runs that reached it.
        runs: Runs whose epochs are known.
        seconds: Geometric mean of their times; empty unless all reached it.
        cost: Unit-hours until then.
        speedup: Time of the fastest one-worker row over this one.
    """

    quality: float
    reached: int
    runs: int
    seconds: Estimate = NOTHING
    cost: Estimate = NOTHING
    speedup: Estimate = NOTHING


def default_target(rows: Sequence[Row], margin: QualityMargin | None) -> float | None:
    """The quality of the best one-worker row, less the loss that is accepted of it; None where unknown."""
    singles = [row for row in rows if row.workers == 1 and not row.verdict.failed and row.sense.better]
    known = [row for row in singles if row.quality.value is not None]
    if not known or len({row.metric for row in rows}) > 1:
        return None
    best = max(known, key=lambda row: gain(row.quality.value or 0.0, row.sense.better or "higher"))
    assert best.quality.value is not None
    assert best.sense.better is not None
    return best.quality.value - gain(accepted_loss(best.quality.value, best.sense, margin), best.sense.better)


def times_to_target(
    rows: Sequence[Row], measures: Measures, target: float, bill: Bill = "worker"
) -> dict[Key, ToTarget]:
    """What each timed row took to reach `target`; rows whose epochs tell no quality are left out."""
    times: dict[Key, dict[Seed, float]] = {}
    counts: dict[Key, tuple[int, int]] = {}
    for row in rows:
        runs = measures.groups[row.key]
        if (
            row.sense.better is None
            or oversubscription(runs)
            or is_virtual(runs)
            or not all(map(_known, runs))
        ):
            continue
        reached = {seed_of(run): _first(run, target, row.sense.better) for run in runs}
        known = {seed: seconds for seed, seconds in reached.items() if seconds is not None}
        counts[row.key] = len(known), len(runs)
        times[row.key] = known if len(known) == len(runs) else {}
    keys = [key for key, values in times.items() if values]
    measure = measured(times, dict.fromkeys(times, LOGARITHM), [keys], LOGARITHM)
    means = {key: measure.mean(key) for key in keys}
    reference = min(
        (key for key in keys if key.workers == 1), key=lambda key: means[key].value or 0.0, default=None
    )
    found = {}
    for key, (reached_by, of) in counts.items():
        if key not in means:
            found[key] = ToTarget(target, reached_by, of)
            continue
        cost = means[key].scaled(units_of(measures.groups[key], bill) / 3600)
        speedup = (
            NOTHING
            if reference is None
            else Estimate(1.0)
            if key == reference
            else measure.ratio(reference, key)
        )
        found[key] = ToTarget(target, reached_by, of, means[key], cost, speedup)
    return found


def _known(run: Run) -> bool:
    return bool(run.epochs) and any(
        value is not None for value in epoch_values(run.epochs, "validation", run.result.metric)
    )


def _first(run: Run, target: float, better: str) -> float | None:
    """Seconds until a run's quality first reached the target; None where it never did."""
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
