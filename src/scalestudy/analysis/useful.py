"""Useful speed-up U(n) = S(n) / r(n); r(n) is how many times the samples n workers need for the same quality.

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

from scalestudy.analysis.measures import Measures, measured, other_updates
from scalestudy.analysis.runs import Key, Run, Seed, epoch_values, seed_of
from scalestudy.analysis.speedup import speed_up
from scalestudy.analysis.statistics import LOGARITHM, NOTHING, ONE, Estimate
from scalestudy.config.metrics import Better, gain


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

    @property
    def costs_samples(self) -> bool:
        """Whether more samples are needed than on the baseline: r(n) is significantly above 1."""
        return self.ratio.low is not None and self.ratio.low > 1


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
        if other_updates(runs) or better is None:
            continue
        first_run = runs[0].result
        updates = _Updates(
            first_run.engine, first_run.metric, key.variant, key.workers, first_run.global_batch
        )
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
        firsts.setdefault((updates.engine, updates.metric, updates.variant), updates)
    answers: dict[Key, Useful] = {}
    for updates, source in sources.items():
        first = firsts[updates.engine, updates.metric, updates.variant]
        baseline = sources[first]
        same_batch = updates.global_batch is not None and updates.global_batch == first.global_batch
        ratio = ONE if same_batch or source == baseline else NOTHING
        if ratio is NOTHING and source in complete and baseline in complete:
            ratio = needed.ratio(source, baseline)
        least = None
        if ratio is NOTHING and baseline in complete:
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
