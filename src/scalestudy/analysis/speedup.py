"""Speed-up S(n) = T(1) / T(n) for the same work, and efficiency E(n) = S(n) / n."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scalestudy.analysis.runs import Key, Run
from scalestudy.analysis.statistics import NOTHING, Estimate, ratio
from scalestudy.study.strategies import is_timed, references

Groups = Mapping[Key, Sequence[Run]]


@dataclass(frozen=True)
class SpeedUp:
    """Speed-up of one row; an absent value always has its reason."""

    steady: Estimate = NOTHING
    """Ratio of steady throughputs."""
    training: Estimate = NOTHING
    """Ratio of total training times."""
    baseline: Key | None = None
    reason: str | None = None
    """Why `steady` has no value."""
    training_reason: str | None = None
    """Why `training` has no value."""


def oversubscription(runs: Sequence[Run]) -> str | None:
    """Why the timing of these runs says nothing about speed-up, or None."""
    return next((run.result.oversubscribed for run in runs if run.result.oversubscribed), None)


def find_baseline(key: Key, groups: Groups) -> Key | None:
    """The one-worker row that `key` is held against: its own strategy's, else plain training's.

    Only rows with the same other swept values count, and none that was oversubscribed.
    """
    for strategy in (key.strategy, *references()):
        candidate = key.with_(strategy, 1)
        if candidate in groups and not oversubscription(groups[candidate]):
            return candidate
    return None


def speed_up(key: Key, groups: Groups) -> SpeedUp:
    """Speed-up of a row over its baseline, from steady throughput and from total training time."""
    runs = groups[key]
    if not is_timed(runs[0].result.implementation):
        return _without("virtual workers are computed one after another, so they have no speed-up")
    excluded = oversubscription(runs)
    if excluded:
        return _without(f"oversubscribed: {excluded}")
    baseline = find_baseline(key, groups)
    if baseline is None:
        return _without(_no_baseline(key, groups))
    if baseline == key:
        return _of_baseline(key, runs)
    base = groups[baseline]
    steady, reason = _steady(runs, base)
    training, training_reason = _training(runs, base)
    return SpeedUp(steady, training, baseline, reason, training_reason)


def efficiency(speed: Estimate, workers: int) -> Estimate:
    """S(n) / n with the ends of its interval."""
    return speed.scaled(1 / workers)


def _without(reason: str) -> SpeedUp:
    return SpeedUp(reason=reason, training_reason=reason)


def _of_baseline(key: Key, runs: Sequence[Run]) -> SpeedUp:
    # Held against itself the ratio is 1 by definition, with nothing left to chance.
    one = Estimate(1.0, 1.0, 1.0) if len(runs) > 1 else Estimate(1.0)
    steady, reason = (one, None) if _throughputs(runs) else (NOTHING, _ONE_EPOCH)
    return SpeedUp(steady, one, key, reason)


def _no_baseline(key: Key, groups: Groups) -> str:
    others = f" with {key.details}" if key.swept else ""
    own = key.with_(key.strategy, 1)
    if own in groups:
        return f"its one-worker run{others} was oversubscribed, so there is nothing to compare with"
    return f"no finished one-worker run of {key.strategy}, single or native{others} to compare with"


_ONE_EPOCH = "trained for one epoch only, or resumed in the others, and so warming up: no steady throughput"


def _throughputs(runs: Sequence[Run]) -> list[float] | None:
    values = [run.result.throughput for run in runs]
    found = [value for value in values if value is not None]
    return found if len(found) == len(values) else None


def _steady(runs: Sequence[Run], base: Sequence[Run]) -> tuple[Estimate, str | None]:
    ours, theirs = _throughputs(runs), _throughputs(base)
    if ours is None or theirs is None:
        return NOTHING, _ONE_EPOCH
    estimate = ratio(ours, theirs)
    return estimate, None if estimate.value is not None else "a throughput is not a positive number"


def _training(runs: Sequence[Run], base: Sequence[Run]) -> tuple[Estimate, str | None]:
    if len({run.result.samples_processed for run in (*runs, *base)}) > 1:
        return NOTHING, "processed another number of samples than the one-worker run"
    estimate = ratio(
        [run.result.training_seconds for run in base], [run.result.training_seconds for run in runs]
    )
    return estimate, None if estimate.value is not None else "a training time is not a positive number"
