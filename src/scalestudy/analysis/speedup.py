"""Speed-up S(n) = T(1) / T(n) for the same work, and efficiency E(n) = S(n) / n.

If there is no one-worker run, both are relative to the strategy's smallest number of workers n0:
T(n0) / T(n) and n0 T(n0) / (n T(n)).
"""

from dataclasses import dataclass

from scalestudy.analysis.measures import (
    Groups,
    Measure,
    Measures,
    find_baseline,
    is_virtual,
    other_updates,
    oversubscription,
)
from scalestudy.analysis.runs import Key, seed_of
from scalestudy.analysis.statistics import NOTHING, ONE, Estimate
from scalestudy.plugins.strategies import references


@dataclass(frozen=True)
class SpeedUp:
    """Speed-up of one row; if `steady` or `training` is missing, there is a reason.

    Attributes:
        steady: Ratio of steady throughputs, or of their substitutes (`measures.RATES`).
        training: Ratio of total training times.
        wall: Ratio of times from the start of the processes to the result.
        baseline: The row that it is compared with.
        reason: Why `steady` has no value.
        training_reason: Why `training` has no value.
    """

    steady: Estimate = NOTHING
    training: Estimate = NOTHING
    wall: Estimate = NOTHING
    baseline: Key | None = None
    reason: str | None = None
    training_reason: str | None = None

    @property
    def against(self) -> int:
        """Workers of the baseline: 1, or more if the speed-up is relative."""
        return self.baseline.workers if self.baseline else 1

    @property
    def note(self) -> str | None:
        """The baseline of a relative speed-up, in words; None for an ordinary speed-up."""
        if self.baseline is None or self.against == 1:
            return None
        return f"relative: against {self.baseline.label}, since there is no one-worker run to compare with"


def speed_up(key: Key, measures: Measures) -> SpeedUp:
    """Speed-up of a row over its baseline, from steady throughput, training time and wall time."""
    runs = measures.groups[key]
    baseline = find_baseline(key, measures.groups, timed=True)
    excluded = oversubscription(runs)
    reason = (
        "virtual workers are computed one after another, so they have no speed-up"
        if is_virtual(runs)
        else other_updates(runs) or (f"oversubscribed: {excluded}" if excluded else None)
    )
    if reason is None and baseline is None:
        reason = _no_baseline(key, measures.groups)
    if reason is not None or baseline is None:
        return SpeedUp(reason=reason, training_reason=reason)
    steady, reason = _steady(key, baseline, measures)
    training, training_reason = _of_times(key, baseline, measures, measures.training_seconds)
    wall, _ = _of_times(key, baseline, measures, measures.wall_seconds)
    return SpeedUp(steady, training, wall, baseline, reason, training_reason)


def efficiency(speed: Estimate, workers: int, against: int = 1) -> Estimate:
    """n0 S(n) / n with its interval; `against` is n0, the workers of the baseline."""
    return speed.scaled(against / workers)


def _no_baseline(key: Key, groups: Groups) -> str:
    others = f" with {key.details}" if key.swept else ""
    if key.on(1) in groups:
        return f"its one-worker run{others} was oversubscribed, so it is no baseline"
    names = dict.fromkeys((key.strategy, *references(groups[key][0].result.engine)))
    return f"no finished one-worker run of {' or '.join(names)}{others} to compare with"


def _ratio(key: Key, baseline: Key, measures: Measures, measure: Measure) -> Estimate:
    """Ratio of a row to its baseline; exactly 1 for the baseline itself."""
    if key == baseline:
        return ONE if len(measures.groups[key]) > 1 else Estimate(1.0)
    return measure.ratio(key, baseline)


def _steady(key: Key, baseline: Key, measures: Measures) -> tuple[Estimate, str | None]:
    for row in (key, baseline):
        if not measures.rate.values[row]:
            return NOTHING, _no_rate(row, measures)
    unlike = unlike_work(key, baseline, measures) if measures.bases[key] != "throughput" else None
    if unlike:
        return NOTHING, unlike
    estimate = _ratio(key, baseline, measures, measures.rate)
    return estimate, None if estimate.value is not None else "a throughput is not a positive number"


def _no_rate(key: Key, measures: Measures) -> str:
    if not any(run.foreign for run in measures.groups[key]):
        return "no steady throughput: one epoch only, or resumed in all others"
    missing = {"throughput": "throughput", "epoch": "time of an epoch", "training": "training time"}
    return f"its {missing[measures.bases[key]]}, by which the others are compared, is unknown"


def _of_times(key: Key, baseline: Key, measures: Measures, times: Measure) -> tuple[Estimate, str | None]:
    if not times.values[key] or not times.values[baseline]:
        return NOTHING, "its training time is unknown"
    if unlike := unlike_work(key, baseline, measures):
        return NOTHING, unlike
    estimate = _ratio(baseline, key, measures, times)
    return estimate, None if estimate.value is not None else "a training time is not a positive number"


def unlike_work(key: Key, baseline: Key, measures: Measures) -> str | None:
    """How the work of two rows differs; None if it is equal. Unknown work is assumed to be equal."""
    if key == baseline:
        return None
    runs = [*measures.groups[key], *measures.groups[baseline]]
    processed = {run.result.samples_processed for run in runs}
    sizes = {run.result.training_samples for run in runs} - {None} if processed == {None} else set()
    if len(sizes) > 1 or (len(processed) > 1 and not _same_work_in_pairs(key, baseline, measures)):
        return "processed a different number of samples than its baseline"
    if runs[0].result.samples_processed is None and len({run.result.epochs for run in runs}) > 1:
        return "trained for a different number of epochs than its baseline"
    return None


def _same_work_in_pairs(key: Key, baseline: Key, measures: Measures) -> bool:
    """Whether paired runs did the same work: the sizes of folds differ by a sample."""
    ours, theirs = (
        {seed_of(run): run.result.samples_processed for run in measures.groups[row]}
        for row in (key, baseline)
    )
    common = ours.keys() & theirs.keys()
    return len(common) > 1 and all(ours[seed] == theirs[seed] for seed in common)
