"""Which jobs a sweep becomes: arrays, at most k at a time, references first. Pure."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

LARGEST_ARRAY = 1000
"""Tasks of one array, where the queue does not say how many it takes."""


@dataclass(frozen=True)
class Wanted:
    """A point to submit.

    Attributes:
        name: Its name.
        like: What its job script depends on; points with equal ones can share an array.
        seconds: Its time limit.
        reference: Whether others are measured against it: it has one worker.
    """

    name: str
    like: Hashable
    seconds: float
    reference: bool = False


@dataclass(frozen=True)
class Batch:
    """One submission.

    Attributes:
        names: Its points; more than one make an array.
        throttle: Tasks of the array that may run at once, or None for all.
        afterok: Indices of earlier batches that must have succeeded.
        afterany: Indices of earlier batches that must have ended, however.
    """

    names: tuple[str, ...]
    throttle: int | None = None
    afterok: tuple[int, ...] = ()
    afterany: tuple[int, ...] = ()


def plan(
    wanted: Sequence[Wanted],
    *,
    at_most: int | None = None,
    reference_first: bool = False,
    arrays: bool = True,
    largest: int = LARGEST_ARRAY,
) -> list[Batch]:
    """The submissions, in their order; a batch depends on earlier ones only.

    With `at_most` = k there are k lanes. A single job takes one lane, an array of m takes min(m, k) of them
    and runs that many tasks at once; each starts when whatever held its lanes before has ended. So no more
    than k jobs of these run at any time.

    Args:
        wanted: Points, in the order of their runs.
        at_most: k, at least 1, or None for no limit.
        reference_first: Whether all others wait for the references to succeed.
        arrays: Whether points that are alike and follow each other share an array.
        largest: Tasks that one array may have; more points become several.
    """
    if reference_first:
        wanted = sorted(wanted, key=lambda each: not each.reference)  # else in the same order
    groups = _groups(wanted, largest if arrays else 1)
    references = [index for index, group in enumerate(groups) if group[0].reference]
    lanes = _Lanes(at_most) if at_most is not None else None
    batches = []
    for index, group in enumerate(groups):
        throttle, before = lanes.take(index, group) if lanes else (None, ())
        waits = reference_first and not group[0].reference
        afterok = tuple(references) if waits else ()
        batches.append(
            Batch(
                names=tuple(each.name for each in group),
                throttle=throttle if len(group) > 1 else None,
                afterok=afterok,
                afterany=tuple(each for each in before if each not in afterok),
            )
        )
    return batches


def _groups(wanted: Sequence[Wanted], largest: int) -> list[list[Wanted]]:
    """Neighbours that are alike: whatever else shared an array would leave its place in the order."""
    groups: list[list[Wanted]] = []
    for each in wanted:
        last = groups[-1] if groups else []
        if last and len(last) < largest and (last[0].like, last[0].reference) == (each.like, each.reference):
            last.append(each)
        else:
            groups.append([each])
    return groups


@dataclass
class _Lanes:
    """k lanes, each held by the batch that was put on it last; `busy` is their time limits summed up."""

    count: int
    holder: list[int | None] = field(init=False)
    busy: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.holder = [None] * self.count
        self.busy = [0.0] * self.count

    def take(self, index: int, group: Sequence[Wanted]) -> tuple[int, tuple[int, ...]]:
        """Put a batch on the lanes that are free first: how many, and the batches that it waits for."""
        width = min(len(group), self.count)
        lanes = sorted(range(self.count), key=lambda lane: self.busy[lane])[:width]
        before = {self.holder[lane] for lane in lanes} - {None}
        start = max(self.busy[lane] for lane in lanes)
        rounds = -(-len(group) // width)
        for lane in lanes:
            self.holder[lane] = index
            self.busy[lane] = start + rounds * group[0].seconds
        return width, tuple(sorted(each for each in before if each is not None))
