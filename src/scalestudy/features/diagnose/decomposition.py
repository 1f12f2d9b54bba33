"""Split the step times of a point's ablations into parts of the lost efficiency, which add up to 1 - E(n).

With T the time of a step, E(n) = k T(1) / T(n), where k is the ratio of the samples per worker of a step with
n workers to those with one worker. T(n) - k T(1) is a telescoping sum of differences between ablations, each
of which leaves out one thing more:

    input       T(n) - without input, less k times the same difference for one worker
    exchange    without input - without exchange (the slowest of the point's own processes)
    rest        without exchange - the slowest of as many processes that do not communicate
    imbalance   the slowest of these in each step - the first of them
    contention  the first of them - the same process alone on the node
    fixed       that process alone - k times the one-worker run's whole batch

With a batch per worker, the slice is the one worker's whole batch, and the last difference belongs to "rest".

Intervals are from Tukey's jackknife over rounds ("Bias and confidence in not quite large samples", Annals of
Mathematical Statistics 29, 1958). Each round measures all ablations in turn, so that effects common to a
round cancel. Values are computed from the mean times of all rounds, so that the parts add up exactly.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import fmean, variance

from scalestudy.analysis.estimate import student
from scalestudy.config.point import Point
from scalestudy.features.diagnose.ablation_record import (
    AblationTimes,
    BlockName,
    BlockTimes,
)
from scalestudy.features.diagnose.diagnosis_record import (
    Diagnosis,
    DiagnosisTerms,
    IntervalRecord,
    LostPart,
    PartName,
    RankSpeed,
    digest_of,
)

SLOW = 1.05
"""Ratio to the mean of the other ranks from which a rank is reported as slow."""


@dataclass(frozen=True)
class RoundTimes:
    """Seconds of a step in one round, or as the mean of several rounds.

    Attributes:
        whole: The unchanged point.
        without_input: With one staged batch, reused.
        without_exchange: With one staged batch and no exchange of gradients; the slowest worker.
        slowest: The slowest worker of each step among processes that do not communicate.
        together: The same processes, one value per worker.
        alone: The first of these processes alone on the node.
        full: The whole batch of the one-worker run, without input.
        reference: The whole batch of the one-worker run, with input.
        share: k, the ratio of the samples of a worker to those of the one-worker run.
    """

    whole: float
    without_input: float
    without_exchange: float
    slowest: float
    together: tuple[float, ...]
    alone: float
    full: float
    reference: float
    share: float

    @property
    def ideal(self) -> float:
        """Seconds of a step without losses."""
        return self.share * self.reference

    @property
    def efficiency(self) -> float:
        """E(n)."""
        return self.ideal / self.whole


Statistic = Callable[[RoundTimes], float]


def round_times(
    joined: Sequence[AblationTimes],
    apart: Sequence[AblationTimes],
    workers: int,
) -> RoundTimes:
    """Return the times of a round from the point's own processes (`joined`) and separate ones (`apart`)."""
    first = apart[0]
    of_all = joined[0].all_of("whole")[0].samples
    of_one = first.all_of("reference")[0].samples
    return RoundTimes(
        # Ranks that exchange gradients wait for one another, so any of them shows the time of a step.
        whole=fmean(rank.mean_step("whole") for rank in joined),
        without_input=fmean(rank.mean_step("without input") for rank in joined),
        without_exchange=_slowest(joined, "without exchange"),
        slowest=_slowest(apart, "together"),
        together=tuple([rank.mean_step("together") for rank in apart]),
        alone=first.mean_step("alone"),
        full=first.mean_step("full"),
        reference=first.mean_step("reference"),
        share=of_all / (workers * of_one),
    )


def _slowest(ranks: Sequence[AblationTimes], name: BlockName) -> float:
    """Return the mean over calls of the slowest rank's step. Ranks may differ in their number of calls."""
    by_rank = [rank.all_of(name) for rank in ranks]
    means = []
    for blocks in zip(*by_rank, strict=True):
        by_call = zip(*map(_steps, blocks), strict=False)
        means.append(fmean(map(max, by_call)))
    return fmean(means)


def _steps(block: BlockTimes) -> list[float]:
    """Return the seconds of a step in each call, scaled so that they add up to the time of the block.

    What a device still does after the last call was handed over is spread over all calls.
    """
    calls = [wait + call for wait, call in zip(block.waits, block.calls, strict=True)]
    factor = block.seconds / (sum(calls) * block.steps_per_call)
    return [call * factor for call in calls]


def mean_times(rounds: Sequence[RoundTimes]) -> RoundTimes:
    """Return the mean of each time over rounds."""
    numbers = (
        "whole",
        "without_input",
        "without_exchange",
        "slowest",
        "alone",
        "full",
        "reference",
    )
    means = {}
    for name in numbers:
        means[name] = fmean([getattr(times, name) for times in rounds])
    by_worker = zip(*[times.together for times in rounds], strict=True)
    return replace(rounds[0], **means, together=tuple(map(fmean, by_worker)))


def parts(times: RoundTimes, *, per_worker: bool) -> dict[PartName, float]:
    """Return the seconds of a step that each part costs; their sum is `whole - ideal`.

    With a batch `per_worker`, the part "fixed" is zero.
    """
    first = times.together[0]
    input_of_one = times.share * (times.reference - times.full)
    fixed = times.alone - times.share * times.full
    rest = times.without_exchange - times.slowest
    # With a batch per worker, the slice is the one worker's whole batch: their difference is noise.
    if per_worker:
        rest += fixed
        fixed = 0.0
    return {
        "input": times.whole - times.without_input - input_of_one,
        "exchange": times.without_input - times.without_exchange,
        "imbalance": times.slowest - first,
        "contention": first - times.alone,
        "fixed": fixed,
        "rest": rest,
    }


def relative_speed(times: RoundTimes, worker: int) -> float:
    """Return the ratio of a worker's computing time to the mean of the others."""
    others = [*times.together[:worker], *times.together[worker + 1 :]]
    return times.together[worker] / fmean(others)


def jackknife(rounds: Sequence[RoundTimes], statistic: Statistic) -> IntervalRecord:
    """Return a statistic of the mean times with its interval over rounds; one round gives no interval."""
    value = statistic(mean_times(rounds))
    count = len(rounds)
    if count < 2:
        return IntervalRecord(value=value)
    # Tukey's pseudo-values: what each round contributes to a statistic that is no mean.
    pseudo = []
    for left_out in range(count):
        kept = [*rounds[:left_out], *rounds[left_out + 1 :]]
        other = statistic(mean_times(kept))
        pseudo.append(count * value - (count - 1) * other)
    # Pseudo-values are treated as independent values of the statistic, whose mean has Student's interval.
    reach = student(count - 1) * math.sqrt(variance(pseudo) / count)
    return IntervalRecord(
        value=value,
        low=value - reach,
        high=value + reach,
    )


def decompose(
    point: Point,
    rounds: Sequence[RoundTimes],
    ranks: Sequence[AblationTimes],
    terms: DiagnosisTerms,
    *,
    block_seconds: float,
    oversubscribed: str | None = None,
) -> Diagnosis:
    """Split a point's step time into the parts of a diagnosis; `ranks` hold host and cores of each worker."""
    times = mean_times(rounds)
    per_worker = point.train.batch == "per-worker"

    def share(name: PartName) -> Statistic:
        return lambda times: parts(times, per_worker=per_worker)[name] / times.whole

    def ratio(worker: int) -> Statistic:
        return lambda times: relative_speed(times, worker)

    lost = []
    for name, seconds in parts(times, per_worker=per_worker).items():
        part = LostPart(
            name=name,
            seconds=seconds,
            share=jackknife(rounds, share(name)),
        )
        lost.append(part)
    speeds = []
    for index, rank in enumerate(ranks):
        speed = RankSpeed(
            rank=index,
            host=rank.host,
            cpus=rank.cpus,
            seconds=times.together[index],
            ratio=jackknife(rounds, ratio(index)),
        )
        speeds.append(speed)
    return Diagnosis(
        point=point.name,
        digest=digest_of(point),
        strategy=point.strategy,
        implementation=point.implementation,
        workers=point.workers,
        global_batch=point.global_batch,
        swept=point.swept,
        host=ranks[0].host,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        rounds=len(rounds),
        block_seconds=block_seconds,
        step_seconds=times.whole,
        ideal_seconds=times.ideal,
        efficiency=jackknife(rounds, lambda times: times.efficiency),
        input=jackknife(rounds, _input_share),
        reference_input=jackknife(rounds, _reference_input_share),
        parts=tuple(lost),
        ranks=tuple(speeds),
        terms=terms,
        oversubscribed=oversubscribed,
    )


def _input_share(times: RoundTimes) -> float:
    return (times.whole - times.without_input) / times.whole


def _reference_input_share(times: RoundTimes) -> float:
    return (times.reference - times.full) / times.reference


def slow_rank(diagnosis: Diagnosis) -> RankSpeed | None:
    """Return the worker that is significantly slower than the others, by `SLOW` or more; None if none is."""
    slowest = max(diagnosis.ranks, key=lambda rank: rank.seconds)
    # One round has no interval: a rank that was slow once may have been so by chance.
    certain = (slowest.ratio.low or 0) > 1
    if certain and slowest.ratio.value >= SLOW:
        return slowest
    return None
