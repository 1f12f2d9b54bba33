"""Weak scaling: how much of its throughput a worker keeps when the batch grows with the workers."""

from typing import NamedTuple

from scalestudy.analysis.estimate import ONE, Estimate
from scalestudy.analysis.runs import Key
from scalestudy.analysis.study_table import Row
from scalestudy.features.proposal.subject import ProposalSubject


class WeakPoint(NamedTuple):
    """A row of a weak-scaling series.

    Attributes:
        global_batch: Samples in a step of all workers.
        throughput: Samples per second of all workers.
        efficiency: Throughput of a worker, divided by that of a worker of the smallest row.
    """

    workers: int
    global_batch: int
    throughput: Estimate
    efficiency: Estimate


def weak_scaling(subject: ProposalSubject) -> list[WeakPoint]:
    """Return the rows of the requested strategy whose batch grows with the workers; none if there are no two.

    Throughput is compared, so each worker has the same work in a step on any number of workers (Gustafson,
    Communications of the ACM 31, 1988).
    """
    rates = subject.findings.measures.rate
    # By variant: rows that also differ in a swept value would show its effect, too.
    by_variant: dict[str, list[Row]] = {}
    for row in subject.findings.rows:
        if row.strategy != subject.row.strategy or row.oversubscribed:
            continue
        if row.throughput.value:
            by_variant.setdefault(row.key.variant, []).append(row)
    for rows in by_variant.values():
        rows.sort(key=lambda row: row.workers)
        if len(rows) > 1 and _batch_grows(rows):
            first = rows[0].key
            points = []
            for row in rows:
                ratio = rates.ratio(row.key, first)
                point = WeakPoint(
                    row.workers,
                    row.global_batch or 0,
                    row.throughput,
                    _efficiency(ratio, row.key, first),
                )
                points.append(point)
            return points
    return []


def _efficiency(ratio: Estimate, key: Key, first: Key) -> Estimate:
    # Exactly one, without an interval: a row does not vary against itself.
    if key == first:
        return ONE
    return ratio.scaled(first.workers / key.workers)


def _batch_grows(rows: list[Row]) -> bool:
    """Whether every worker has the same share of a step, whatever their number."""
    shares = set()
    for row in rows:
        if not row.global_batch:
            return False
        shares.add(row.global_batch / row.workers)
    return len(shares) == 1
