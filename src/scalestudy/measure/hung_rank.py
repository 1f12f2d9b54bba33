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
    for rank in range(size):
        if rank not in known:
            return Hang(rank=rank, seconds=seconds, lives=False)
    living = _living(before, after)
    candidates = _candidates(after, living)
    fewest = min(sign.marks for sign in candidates)
    behind = [sign for sign in candidates if sign.marks == fewest]
    # Of ranks at the same position, those that are stopped keep the living ones waiting.
    stopped = [sign for sign in behind if sign.rank not in living]
    blamed = stopped or behind
    first = min(blamed, key=lambda sign: sign.rank)
    hang = _hang_at(first, seconds, lives=not stopped)
    if len(blamed) > 1:
        return hang.model_copy(update={"rank": None, "host": ""})
    return hang


def _candidates(signs: Sequence[Sign], living: set[int]) -> Sequence[Sign]:
    """Return the heartbeats among which to search: serving processes that stopped, else all others."""
    serving = [sign for sign in signs if sign.phase == SERVING]
    stopped = [sign for sign in serving if sign.rank not in living]
    if stopped:
        return stopped
    computing = [sign for sign in signs if sign.phase != SERVING]
    return computing or signs


def first_stopped(
    before: Sequence[Sign], after: Sequence[Sign], seconds: float
) -> Hang | None:
    """Return the rank furthest behind among those that are not alive; see `first_hung`."""
    living = _living(before, after)
    stopped = [sign for sign in after if sign.rank not in living]
    if not stopped:
        return None
    first = min(stopped, key=lambda sign: (sign.marks, sign.rank))
    return _hang_at(first, seconds, lives=False)


def _hang_at(sign: Sign, seconds: float, *, lives: bool) -> Hang:
    return Hang(
        rank=sign.rank,
        host=sign.host,
        phase=sign.phase,
        epoch=sign.epoch,
        step=sign.step,
        seconds=seconds,
        lives=lives,
    )


def _living(before: Sequence[Sign], after: Sequence[Sign]) -> set[int]:
    """Return the ranks that have written a heartbeat between two readings."""
    earlier = {sign.rank: sign.written for sign in before}
    living = set()
    for sign in after:
        if sign.written != earlier.get(sign.rank):
            living.add(sign.rank)
    return living
