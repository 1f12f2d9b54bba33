"""Which rank the others wait for, found in the heartbeats of all."""

from collections.abc import Sequence

from scalestudy.measure.heartbeat import SERVING
from scalestudy.store.records import Hang, Sign


def first_hung(
    before: Sequence[Sign],
    after: Sequence[Sign],
    size: int,
    seconds: float,
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
            return Hang(
                rank=rank,
                seconds=seconds,
                lives=False,
            )
    living = _living(before, after)
    behind = _furthest_behind(_candidates(after, living))
    # Of ranks at the same position, those that are stopped keep the living ones waiting.
    stopped = _without(behind, living)
    blamed = stopped or behind
    first = min(blamed, key=_rank)
    hang = _hang_at(first, seconds, lives=not stopped)
    if len(blamed) > 1:
        # Nothing tells which of them the others wait for: a guess would send the user to a healthy node.
        return hang.model_copy(update={"rank": None, "host": ""})
    return hang


def _candidates(signs: Sequence[Sign], living: set[int]) -> Sequence[Sign]:
    """Return the heartbeats among which to search: serving processes that stopped, else all others."""
    serving = []
    computing = []
    for sign in signs:
        if sign.phase == SERVING:
            serving.append(sign)
        else:
            computing.append(sign)
    return _without(serving, living) or computing or signs


def _furthest_behind(signs: Sequence[Sign]) -> list[Sign]:
    fewest = min(signs, key=_marks).marks
    return [sign for sign in signs if sign.marks == fewest]


def _without(signs: Sequence[Sign], ranks: set[int]) -> list[Sign]:
    return [sign for sign in signs if sign.rank not in ranks]


def _rank(sign: Sign) -> int:
    return sign.rank


def _marks(sign: Sign) -> int:
    return sign.marks


def first_stopped(
    before: Sequence[Sign],
    after: Sequence[Sign],
    seconds: float,
) -> Hang | None:
    """Return the rank furthest behind among those that are not alive; see `first_hung`."""
    stopped = _without(after, _living(before, after))
    if not stopped:
        return None
    first = min(_furthest_behind(stopped), key=_rank)
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
    earlier: dict[int, float] = {}
    for sign in before:
        earlier[sign.rank] = sign.written
    living = set()
    for sign in after:
        # Compared for equality only: each time is one of the rank's own host.
        if sign.written != earlier.get(sign.rank):
            living.add(sign.rank)
    return living
