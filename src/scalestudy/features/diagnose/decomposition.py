"""Where efficiency is lost: the times of a point's twins, taken apart so that the parts add up to 1 - E(n).

With T the time of a step, E(n) = k T(1) / T(n), where k is what a worker computes of n workers' step, over
what the one worker computes of its own. T(n) - k T(1) telescopes through the twins, each with something less
than the one before:

    input       T(n) less that without input, less k times the same difference of one worker
    exchange    without input, less without exchange: the slowest of the point's own processes
    rest        that, less the slowest of as many processes that know nothing of each other
    imbalance   the slowest of these in each step, less the first of them
    contention  the first, less the same alone on the node
    fixed       that, less k times the one-worker run's whole batch: what does not shrink with the slice

With a batch per worker the slice is the one worker's whole batch, and that difference belongs to the rest.

Beside it POP's factors (https://pop-coe.eu/node/69): a worker's useful time u is what it spends outside of
the exchange; load balance is mean(u) / max(u), communication efficiency max(u) / T(n), computation scaling
k T(1) / mean(u). Their product is E(n).

Intervals are Tukey's jackknife over rounds ("Bias and confidence in not quite large samples", Annals of
Mathematical Statistics 29, 1958), each of which measures everything in turn: what a round has in common
cancels. Values are those of the mean times of all rounds, so that parts and factors are exact.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from scalestudy.analysis.statistics import Estimate, student
from scalestudy.features.diagnose.records import FactorName, PartName


@dataclass(frozen=True)
class StepTimes:
    """Seconds of a step, of one round or the mean of several.

    Attributes:
        whole: The point as it is.
        without_input: With one staged batch handed out again.
        without_exchange: That, and no worker hearing of the others: the slowest of them.
        slowest: The slowest worker of each step, of processes that know nothing of each other.
        together: The same processes, one value a worker.
        alone: The first of them alone on the node.
        full: The one-worker run's whole batch, without input.
        reference: The same with its input.
        waits: Waiting for input in `whole`, one value a worker.
        share: k: samples of a worker over samples of the one worker.
    """

    whole: float
    without_input: float
    without_exchange: float
    slowest: float
    together: tuple[float, ...]
    alone: float
    full: float
    reference: float
    waits: tuple[float, ...]
    share: float

    @property
    def ideal(self) -> float:
        """A step if nothing were lost."""
        return self.share * self.reference

    @property
    def efficiency(self) -> float:
        """E(n)."""
        return self.ideal / self.whole


Statistic = Callable[[StepTimes], float]


def mean_times(rounds: Sequence[StepTimes]) -> StepTimes:
    """The mean of each time over rounds."""
    numbers = ("whole", "without_input", "without_exchange", "slowest", "alone", "full", "reference")
    return StepTimes(
        **{name: fmean(getattr(each, name) for each in rounds) for name in numbers},
        together=_means([each.together for each in rounds]),
        waits=_means([each.waits for each in rounds]),
        share=rounds[0].share,
    )


def parts(times: StepTimes, *, per_worker: bool) -> dict[PartName, float]:
    """Seconds of a step that each part costs; they add up to `whole - ideal`.

    Args:
        times: Of the twins.
        per_worker: Whether the batch is given per worker, so that no cost of a step is left over.
    """
    first = times.together[0]
    smaller = times.alone - times.share * times.full
    return {
        "input": times.whole - times.without_input - times.share * (times.reference - times.full),
        "exchange": times.without_input - times.without_exchange,
        "imbalance": times.slowest - first,
        "contention": first - times.alone,
        "fixed": 0.0 if per_worker else smaller,
        "rest": times.without_exchange - times.slowest + (smaller if per_worker else 0.0),
    }


def factors(times: StepTimes) -> dict[FactorName, float]:
    """POP's factors, whose product is E(n)."""
    useful = [compute + wait for compute, wait in zip(times.together, times.waits, strict=True)]
    return {
        "load balance": fmean(useful) / max(useful),
        "communication efficiency": max(useful) / times.whole,
        "computation scaling": times.ideal / fmean(useful),
    }


def relative_speed(times: StepTimes, worker: int) -> float:
    """How long a worker computes, over the mean of the others."""
    others = [each for index, each in enumerate(times.together) if index != worker]
    return times.together[worker] / fmean(others)


def jackknifed(rounds: Sequence[StepTimes], statistic: Statistic) -> Estimate:
    """A statistic of the mean times, with its interval over rounds; without one of a single round."""
    value = statistic(mean_times(rounds))
    count = len(rounds)
    if count < 2:
        return Estimate(value)
    without = [statistic(mean_times([*rounds[:i], *rounds[i + 1 :]])) for i in range(count)]
    pseudo = [count * value - (count - 1) * each for each in without]
    reach = student(count - 1) * math.sqrt(variance(pseudo) / count)
    return Estimate(value, value - reach, value + reach)


def slowest_of(ranks: Sequence[Sequence[float]]) -> float:
    """Mean over calls of the slowest rank's time; ranks may have made different numbers of calls."""
    return fmean(max(together) for together in zip(*ranks, strict=False))


def _means(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(fmean(column) for column in zip(*rows, strict=True))
