"""Which rank the others wait for, found in the heartbeats of all."""

from collections.abc import Sequence

from scalestudy.measure.heartbeat import SERVING
from scalestudy.store.records import Hang, Sign


def first_hung(
    before: Sequence[Sign], after: Sequence[Sign], size: int, seconds: float
) -> Hang:
    """Determine the rank that the others wait for: one without a heartbeat, else the one furthest behind.

    This does not compare clocks of hosts. Progress is the number of marks, which all ranks count equally, and
    a process is alive if it wrote a heartbeat between the two readings. Among ranks with equal progress, it
    is the one that is not alive; if several remain, the result has no rank. A process that serves rank 0
    waits for it, so it counts only if it is not alive.

    Args:
        before: The heartbeats when there had been no progress for too long.
        after: The heartbeats several heartbeat intervals later.
        size: Number of ranks.
        seconds: Seconds without progress.
    """
    known = {sign.rank for sign in after}
    absent = [rank for rank in range(size) if rank not in known]
    if absent:
        return Hang(rank=absent[0], seconds=seconds, lives=False)
    living = _living(before, after)
    silent = [
        sign for sign in after if sign.phase == SERVING and sign.rank not in living
    ]
    after = silent or [sign for sign in after if sign.phase != SERVING] or after
    last = min(after, key=lambda sign: (sign.marks, sign.rank in living, sign.rank))
    lives = last.rank in living
    alike = sum(
        sign.marks == last.marks and (sign.rank in living) == lives for sign in after
    )
    hang = _at(last, seconds, lives=lives)
    return hang if alike == 1 else hang.model_copy(update={"rank": None, "host": ""})


def first_stopped(
    before: Sequence[Sign], after: Sequence[Sign], seconds: float
) -> Hang | None:
    """Return the rank furthest behind among those that are not alive; see `first_hung`."""
    living = _living(before, after)
    stopped = [sign for sign in after if sign.rank not in living]
    first = min(stopped, key=lambda sign: (sign.marks, sign.rank), default=None)
    return None if first is None else _at(first, seconds, lives=False)


def _at(sign: Sign, seconds: float, *, lives: bool) -> Hang:
    place = sign.model_dump(include={"rank", "host", "phase", "epoch", "step"})
    return Hang(**place, seconds=seconds, lives=lives)


def _living(before: Sequence[Sign], after: Sequence[Sign]) -> set[int]:
    earlier = {sign.rank: sign.written for sign in before}
    return {sign.rank for sign in after if earlier.get(sign.rank) != sign.written}
