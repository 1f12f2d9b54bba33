"""The useful speed-up: what remains of a speed-up when the same quality takes more samples.

With n times fewer updates, the speed-up at fixed epochs is not the speed-up in time to solution. Useful
speed-up is U(n) = S(n) / r(n); r(n) is how many times the samples n workers need for the same quality. A
larger global batch makes fewer updates per epoch, so n workers may be S(n) times as fast and still need more
samples (Shallue et al., "Measuring the effects of data parallelism on neural network training", JMLR 20,
2019). Samples until a quality is first reached are interpolated between evaluations of the running best, and
compared by seed on logarithms. At one number of workers and one global batch, synchronous strategies make the
same updates: the row with the most trainings gives r for all of them, also where it has no times (`virtual`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import isfinite
from typing import NamedTuple

from scalestudy.analysis.measures import Measures, build_measure, is_asynchronous
from scalestudy.analysis.price import speed_up
from scalestudy.analysis.runs import Key, Run, Seed, epoch_values, seed_of
from scalestudy.analysis.statistics import LOGARITHM, NOTHING, ONE, Estimate
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
    keys: Sequence[Key], measures: Measures, target: float
) -> dict[Key, Useful]:
    """What each row needs to reach `target`; without rows that nothing can be compared with."""
    alike: dict[_Updates, list[Key]] = {}
    trainings: dict[Key, dict[Seed, float | None]] = {}
    for key in keys:
        runs, better = measures.groups[key], measures.senses[key].better
        if better is None or is_asynchronous(runs):
            continue
        one = runs[0].result
        updates = _Updates(
            one.engine, one.metric, key.variant, key.workers, one.global_batch
        )
        alike.setdefault(updates, []).append(key)
        trainings[key] = {
            seed_of(run): _samples_until(run, target, better)
            for run in runs
            if _has_qualities(run)
        }
    sources = {
        updates: max(members, key=lambda key: len(trainings[key]))
        for updates, members in alike.items()
    }
    sources = {updates: key for updates, key in sources.items() if trainings[key]}
    complete = {
        key: {seed: needed for seed, needed in trainings[key].items() if needed}
        for key in sources.values()
        if all(trainings[key].values())
    }
    needed = build_measure(
        complete, dict.fromkeys(complete, LOGARITHM), [list(complete)], LOGARITHM
    )
    firsts: dict[tuple[str | None, ...], _Updates] = {}
    for updates in sorted(sources, key=lambda updates: updates.workers):
        firsts.setdefault(updates[:3], updates)
    answers: dict[Key, Useful] = {}
    for updates, source in sources.items():
        first = firsts[updates[:3]]
        baseline = sources[first]
        same_batch = (
            updates.global_batch is not None
            and updates.global_batch == first.global_batch
        )
        ratio = NOTHING
        if same_batch or source == baseline:
            ratio = ONE
        elif source in complete and baseline in complete:
            ratio = needed.ratio(source, baseline)
        reached = [needed for needed in trainings[source].values() if needed]
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
                same_batch and source != baseline,
                source,
                baseline,
            )
    return answers


def _has_qualities(run: Run) -> bool:
    """Whether the epochs of a run hold the quality and their samples."""
    qualities = epoch_values(run.epochs, "validation", run.result.metric)
    return any(
        quality is not None for quality in qualities
    ) and None not in epoch_values(run.epochs, "samples")


def _samples_until(run: Run, target: float, better: Better) -> float | None:
    """Samples until a run reached the target; None if it never did."""
    qualities = epoch_values(run.epochs, "validation", run.result.metric)
    samples = epoch_values(run.epochs, "samples")
    wanted, before = gain(target, better), 0.0
    chance = run.result.constant_quality
    best = None if chance is None else gain(chance, better)
    for seen, quality in zip(accumulate(samples), qualities, strict=True):
        if quality is None or not isfinite(quality):
            continue
        reached = gain(quality, better)
        if reached >= wanted:
            share = (
                1.0
                if best is None or best >= wanted
                else (wanted - best) / (reached - best)
            )
            return float(before + share * (seen - before))
        before, best = float(seen), reached if best is None else max(best, reached)
    return None
