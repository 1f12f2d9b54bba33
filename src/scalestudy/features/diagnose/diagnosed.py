"""A diagnosis of a point from what its twins measured."""

from collections.abc import Sequence
from datetime import UTC, datetime

from scalestudy.features.diagnose import decomposition
from scalestudy.features.diagnose.decomposition import Statistic, StepTimes, jackknifed, mean_times
from scalestudy.features.diagnose.records import (
    Diagnosis,
    Factor,
    FactorName,
    Interval,
    Part,
    PartName,
    RankSpeed,
    Terms,
    digest_of,
)
from scalestudy.features.diagnose.twin import AblationTimes
from scalestudy.study.point import Point

SLOW = 1.05
"""Times the others' mean from which a rank is named."""


def diagnosed(
    point: Point,
    rounds: Sequence[StepTimes],
    ranks: Sequence[AblationTimes],
    terms: Terms,
    *,
    block_seconds: float,
    oversubscribed: str | None = None,
    trace: str | None = None,
) -> Diagnosis:
    """Take a point's times apart.

    Args:
        point: What was measured.
        rounds: Times of each round.
        ranks: Of one round, each worker's process: where it computed.
        terms: What the point ran under.
        block_seconds: Length that a block was to have.
        oversubscribed: Why the times say little, if they do.
        trace: File of the trace.
    """
    times, per_worker = mean_times(rounds), point.train.batch == "per-worker"

    def over_rounds(statistic: Statistic) -> Interval:
        found = jackknifed(rounds, statistic)
        return Interval(value=statistic(times), low=found.low, high=found.high)

    def part(name: PartName) -> Statistic:
        return lambda each: decomposition.parts(each, per_worker=per_worker)[name] / each.whole

    def factor(name: FactorName) -> Statistic:
        return lambda each: decomposition.factors(each)[name]

    def slower(index: int) -> Statistic:
        return lambda each: decomposition.relative_speed(each, index)

    return Diagnosis(
        point=point.name, digest=digest_of(point), strategy=point.strategy,
        implementation=point.implementation, workers=point.workers, global_batch=point.global_batch,
        swept=point.swept, host=ranks[0].host, made=datetime.now(UTC).isoformat(timespec="seconds"),
        rounds=len(rounds), block_seconds=block_seconds, step_seconds=times.whole, ideal_seconds=times.ideal,
        efficiency=over_rounds(lambda each: each.efficiency),
        input=over_rounds(lambda each: (each.whole - each.without_input) / each.whole),
        reference_input=over_rounds(lambda each: (each.reference - each.full) / each.reference),
        parts=tuple(
            Part(name=name, seconds=seconds, share=over_rounds(part(name)))
            for name, seconds in decomposition.parts(times, per_worker=per_worker).items()
        ),
        factors=tuple(
            Factor(name=name, value=over_rounds(factor(name))) for name in decomposition.factors(times)
        ),
        ranks=tuple(
            RankSpeed(
                rank=index, host=rank.host, cpus=rank.cpus, seconds=times.together[index],
                ratio=over_rounds(slower(index)),
            )
            for index, rank in enumerate(ranks)
        ),
        terms=terms, oversubscribed=oversubscribed, trace=trace,
    )  # fmt: skip


def slow_rank(diagnosis: Diagnosis) -> RankSpeed | None:
    """The worker that computes longer than the others in every round; None where there is none."""
    slowest = max(diagnosis.ranks, key=lambda rank: rank.seconds)
    ratio = slowest.ratio
    certain = ratio.low is None or ratio.low > 1
    return slowest if ratio.value >= SLOW and certain else None
