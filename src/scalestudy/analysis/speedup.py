"""Speed-up S(n) = T(1) / T(n) for the same work, and efficiency E(n) = S(n) / n.

Where no one-worker run is there to compare with, both are relative to the fewest workers n0 of the strategy:
T(n0) / T(n) and n0 T(n0) / (n T(n)).
"""

from dataclasses import dataclass

from scalestudy.analysis.measures import (
    Groups,
    Measure,
    Measures,
    find_baseline,
    is_virtual,
    oversubscription,
)
from scalestudy.analysis.runs import Key
from scalestudy.analysis.statistics import NOTHING, Estimate


@dataclass(frozen=True)
class SpeedUp:
    """Speed-up of one row; an absent value always has its reason."""

    steady: Estimate = NOTHING
    """Ratio of steady throughputs, or of what stands for them (`rates`)."""
    training: Estimate = NOTHING
    """Ratio of total training times."""
    wall: Estimate = NOTHING
    """Ratio of times from the start of the processes to the result."""
    baseline: Key | None = None
    reason: str | None = None
    """Why `steady` has no value."""
    training_reason: str | None = None
    """Why `training` has no value."""

    @property
    def against(self) -> int:
        """Workers of the baseline: 1, or more where the speed-up is a relative one."""
        return self.baseline.workers if self.baseline else 1

    @property
    def note(self) -> str | None:
        """What a relative speed-up is against; None for an ordinary one."""
        if self.baseline is None or self.against == 1:
            return None
        return f"relative: against {self.baseline.label}, since there is no one-worker run to compare with"


def speed_up(key: Key, measures: Measures) -> SpeedUp:
    """Speed-up of a row over its baseline, from steady throughput and from total training time."""
    groups = measures.groups
    runs = groups[key]
    if is_virtual(runs):
        return _without("virtual workers are computed one after another, so they have no speed-up")
    excluded = oversubscription(runs)
    if excluded:
        return _without(f"oversubscribed: {excluded}")
    baseline = find_baseline(key, groups, timed=True)
    if baseline is None:
        return _without(_no_baseline(key, groups))
    if baseline == key:
        return _of_baseline(key, measures)
    steady, reason = _steady(key, baseline, measures)
    training, training_reason = _times(key, baseline, measures, measures.training_seconds)
    wall, _ = _times(key, baseline, measures, measures.wall_seconds)
    return SpeedUp(steady, training, wall, baseline, reason, training_reason)


def efficiency(speed: Estimate, workers: int, against: int = 1) -> Estimate:
    """n0 S(n) / n with the ends of its interval; `against` is n0, the workers of the baseline."""
    return speed.scaled(against / workers)


def _without(reason: str) -> SpeedUp:
    return SpeedUp(reason=reason, training_reason=reason)


def _of_baseline(key: Key, measures: Measures) -> SpeedUp:
    # Held against itself the ratio is 1 by definition, with nothing left to chance.
    one = Estimate(1.0, 1.0, 1.0) if len(measures.groups[key]) > 1 else Estimate(1.0)
    steady, reason = (one, None) if measures.rate.values[key] else (NOTHING, _no_rate(key, measures))
    training, no_time = (one, None) if measures.training_seconds.values[key] else (NOTHING, _NO_TIME)
    wall = one if measures.wall_seconds.values[key] else NOTHING
    return SpeedUp(steady, training, wall, key, reason, no_time)


def _no_baseline(key: Key, groups: Groups) -> str:
    others = f" with {key.details}" if key.swept else ""
    own = key.with_(key.strategy, 1)
    if own in groups:
        return f"its one-worker run{others} was oversubscribed, so there is nothing to compare with"
    return f"no finished one-worker run of {key.strategy}, single or native{others} to compare with"


_ONE_EPOCH = "trained for one epoch only, or resumed in the others, and so warming up: no steady throughput"
_NO_TIME = "its training time is not known"


def _no_rate(key: Key, measures: Measures) -> str:
    if not any(run.foreign for run in measures.groups[key]):
        return _ONE_EPOCH
    missing = {"throughput": "throughput", "epoch": "time of an epoch", "training": "training time"}
    return f"its {missing[measures.bases[key]]}, by which the others are compared, is not known"


def _steady(key: Key, baseline: Key, measures: Measures) -> tuple[Estimate, str | None]:
    values = measures.rate.values
    for each in (key, baseline):
        if not values[each]:
            return NOTHING, _no_rate(each, measures)
    unlike = _unlike_work(key, baseline, measures) if measures.bases[key] != "throughput" else None
    if unlike:
        return NOTHING, unlike
    estimate = measures.rate.ratio(key, baseline)
    return estimate, None if estimate.value is not None else "a throughput is not a positive number"


def _times(key: Key, baseline: Key, measures: Measures, times: Measure) -> tuple[Estimate, str | None]:
    if not times.values[key] or not times.values[baseline]:
        return NOTHING, _NO_TIME
    unlike = _unlike_work(key, baseline, measures)
    if unlike:
        return NOTHING, unlike
    estimate = times.ratio(baseline, key)
    return estimate, None if estimate.value is not None else "a training time is not a positive number"


def _unlike_work(key: Key, baseline: Key, measures: Measures) -> str | None:
    """How the work of two rows differed, as far as that is known; what is not known is taken to be alike."""
    runs = [*measures.groups[key], *measures.groups[baseline]]
    processed = {run.result.samples_processed for run in runs}
    sizes = {run.result.training_samples for run in runs} - {None} if processed == {None} else set()
    if len(processed) > 1 or len(sizes) > 1:
        return "processed another number of samples than the run it is compared with"
    if runs[0].result.samples_processed is None and len({run.result.epochs for run in runs}) > 1:
        return "trained for another number of epochs than the run it is compared with"
    return None
