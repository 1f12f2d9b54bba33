"""Speed-up of each row over its baseline.

Speed-up is S(n) = T(1) / T(n) for the same work, and efficiency E(n) = S(n) / n. If there is no one-worker
run, both are relative to the strategy's smallest number of workers n0: T(n0) / T(n) and n0 T(n0) / (n T(n)).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scalestudy.analysis.estimate import NOTHING, ONE, Estimate
from scalestudy.analysis.measures import (
    Basis,
    Groups,
    Measure,
    Measures,
    find_baseline,
    gpu_names,
    is_asynchronous,
    is_virtual,
    why_oversubscribed,
)
from scalestudy.analysis.runs import Key, Run, Seed, seed_of
from scalestudy.plugins.strategies import references
from scalestudy.store.records import SHARED_CORES

UnlikeWork = Literal["unlike-samples", "unlike-epochs"]
"""How the work of two rows differs."""


@dataclass(frozen=True)
class ExcludedTimes:
    """Times that do not count, by the record of the run: cores were oversubscribed, or shared with others."""

    record: str
    disturbed: bool


@dataclass(frozen=True)
class OtherGpus:
    """GPUs that are unlike those of the baseline."""

    names: frozenset[str]
    baseline: frozenset[str]


@dataclass(frozen=True)
class NoBaseline:
    """No one-worker row to compare with: `strategies` lack one, or it was oversubscribed."""

    oversubscribed: bool
    strategies: tuple[str, ...]
    details: str


@dataclass(frozen=True)
class UnknownRate:
    """A row from elsewhere that lacks the quantity by which the others of its variant are compared."""

    basis: Basis


NoSpeedUp = (
    Literal[
        "in turn",
        "asynchronous",
        "no-steady-epoch",
        "rate-not-positive",
        "time-unknown",
        "time-not-positive",
    ]
    | UnlikeWork
    | ExcludedTimes
    | OtherGpus
    | NoBaseline
    | UnknownRate
)
"""Why a row has no speed-up."""


@dataclass(frozen=True)
class SpeedUp:
    """Speed-up of one row; if `steady` or `training` is missing, there is a reason.

    Attributes:
        steady: Ratio of steady throughputs, or of their substitutes (`measures.BASES`).
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
    reason: NoSpeedUp | None = None
    training_reason: NoSpeedUp | None = None

    @property
    def against(self) -> int:
        """Workers of the baseline: 1, or more if the speed-up is relative."""
        if self.baseline is None:
            return 1
        return self.baseline.workers


def speed_up(key: Key, measures: Measures) -> SpeedUp:
    """Speed-up of a row over its baseline, from steady throughput, training time and wall time."""
    runs = measures.groups[key]
    baseline = find_baseline(key, measures.groups, timed=True)
    reason: NoSpeedUp | None = _why_no_speed_up(runs)
    if reason is None and baseline is None:
        reason = _no_baseline(key, measures.groups)
    if reason is None and baseline is not None:
        reason = _unlike_devices(measures.groups[key], measures.groups[baseline])
    if reason is not None or baseline is None:
        return SpeedUp(reason=reason, training_reason=reason)
    steady, reason = _steady(key, baseline, measures)
    training, training_reason = _of_times(
        key,
        baseline,
        measures,
        measures.training_seconds,
    )
    wall, _ = _of_times(key, baseline, measures, measures.wall_seconds)
    return SpeedUp(steady, training, wall, baseline, reason, training_reason)


def _why_no_speed_up(runs: Sequence[Run]) -> NoSpeedUp | None:
    if is_virtual(runs):
        return "in turn"
    if is_asynchronous(runs):
        return "asynchronous"
    excluded = why_oversubscribed(runs)
    if excluded is None:
        return None
    return ExcludedTimes(excluded, disturbed=excluded == SHARED_CORES)


def _unlike_devices(runs: Sequence[Run], baseline: Sequence[Run]) -> OtherGpus | None:
    """Devices that cannot be compared with those of a baseline; None if they can, or are unknown."""
    ours = gpu_names(runs)
    theirs = gpu_names(baseline)
    if not ours or not theirs or ours == theirs:
        return None
    return OtherGpus(ours, theirs)


def _no_baseline(key: Key, groups: Groups) -> NoBaseline:
    details = ""
    if key.swept:
        details = key.details
    engine = groups[key][0].result.engine
    names = dict.fromkeys((key.strategy, *references(engine)))
    return NoBaseline(
        oversubscribed=key.on(1) in groups,
        strategies=tuple(names),
        details=details,
    )


def _ratio(
    key: Key,
    baseline: Key,
    measures: Measures,
    measure: Measure,
) -> Estimate:
    """Ratio of a row to its baseline; exactly 1 for the baseline itself."""
    if key != baseline:
        return measure.ratio(key, baseline)
    # A single run has no interval, not even one without width.
    if len(measures.groups[key]) == 1:
        return Estimate(1.0)
    return ONE


def _steady(
    key: Key,
    baseline: Key,
    measures: Measures,
) -> tuple[Estimate, NoSpeedUp | None]:
    """Ratio of the rates, or why there is none."""
    for row in (key, baseline):
        if not measures.rate.values[row]:
            return NOTHING, _why_no_rate(row, measures)
    if measures.bases[key] != "throughput":
        # A throughput counts samples; the time of an epoch or a training does not say how many.
        unlike = unlike_work(key, baseline, measures)
        if unlike:
            return NOTHING, unlike
    estimate = _ratio(key, baseline, measures, measures.rate)
    if estimate.value is None:
        return estimate, "rate-not-positive"
    return estimate, None


def _why_no_rate(row: Key, measures: Measures) -> NoSpeedUp:
    if not any(run.foreign for run in measures.groups[row]):
        return "no-steady-epoch"
    return UnknownRate(measures.bases[row])


def _of_times(
    key: Key,
    baseline: Key,
    measures: Measures,
    times: Measure,
) -> tuple[Estimate, NoSpeedUp | None]:
    if not times.values[key] or not times.values[baseline]:
        return NOTHING, "time-unknown"
    if unlike := unlike_work(key, baseline, measures):
        return NOTHING, unlike
    # The other way round than rates: a longer time is a smaller speed-up.
    estimate = _ratio(baseline, key, measures, times)
    if estimate.value is None:
        return estimate, "time-not-positive"
    return estimate, None


def unlike_work(key: Key, baseline: Key, measures: Measures) -> UnlikeWork | None:
    """How the work of two rows differs; None if it is equal. Unknown work is assumed to be equal."""
    if key == baseline:
        return None
    runs = [*measures.groups[key], *measures.groups[baseline]]
    processed = set()
    sizes = set()
    epochs = set()
    for run in runs:
        processed.add(run.result.samples_processed)
        epochs.add(run.result.epochs)
        if run.result.training_samples is not None:
            sizes.add(run.result.training_samples)
    if processed == {None}:
        # Tables from elsewhere may state the size of the training set alone.
        differs = len(sizes) > 1
    else:
        several = len(processed) > 1
        differs = several and not _same_work_in_pairs(key, baseline, measures)
    if differs:
        return "unlike-samples"
    if runs[0].result.samples_processed is None and len(epochs) > 1:
        return "unlike-epochs"
    return None


def _same_work_in_pairs(key: Key, baseline: Key, measures: Measures) -> bool:
    """Whether paired runs did the same work: with groups, the sizes of splits differ."""
    ours = _samples_by_seed(key, measures)
    theirs = _samples_by_seed(baseline, measures)
    common = ours.keys() & theirs.keys()
    # One pair may be equal by chance.
    if len(common) < 2:
        return False
    return all(ours[seed] == theirs[seed] for seed in common)


def _samples_by_seed(key: Key, measures: Measures) -> dict[Seed, int | None]:
    samples = {}
    for run in measures.groups[key]:
        samples[seed_of(run)] = run.result.samples_processed
    return samples
