"""Hang detection: which rank stopped making progress first, and how that is said. Pure."""

from collections.abc import Sequence

from scalestudy.study.records import Hang, Sign

EXIT_CODE = 79
"""Exit code of a worker that its watchdog has ended."""
STILL = 30.0
"""Least seconds without progress that are worth a word."""


def first_hung(before: Sequence[Sign], after: Sequence[Sign], size: int, seconds: float) -> Hang:
    """The rank that the others wait for: one without any sign, else the one that has come least far.

    No two clocks are compared: how far a rank has come is a number that all ranks count alike, and a process
    lives if it has written anew between the two readings. Among ranks at the same place it is the one that
    does not live; where all live, or none does, nobody can tell.

    Args:
        before: The signs when nothing had moved for too long.
        after: The same, a few times later than a living process takes to write a sign.
        size: Number of ranks.
        seconds: How long nothing has moved.
    """
    known = {sign.rank: sign for sign in after}
    absent = [rank for rank in range(size) if rank not in known]
    if absent:
        return Hang(rank=absent[0], seconds=seconds, lives=False)
    living = _living(before, after)
    last = min(known.values(), key=lambda sign: (sign.marks, sign.rank in living, sign.rank))
    lives = last.rank in living
    alike = sum(sign.marks == last.marks and (sign.rank in living) == lives for sign in after)
    hang = _at(last, seconds, lives=lives)
    return hang if alike == 1 else hang.model_copy(update={"rank": None, "host": ""})


def first_stopped(before: Sequence[Sign], after: Sequence[Sign], seconds: float) -> Hang | None:
    """Of the ranks that do not live, by signs as of `first_hung`, the one that has come least far."""
    living = _living(before, after)
    stopped = [sign for sign in after if sign.rank not in living]
    first = min(stopped, key=lambda sign: (sign.marks, sign.rank), default=None)
    return None if first is None else _at(first, seconds, lives=False)


def _at(sign: Sign, seconds: float, *, lives: bool) -> Hang:
    """That this rank hangs where its last sign was."""
    place = sign.model_dump(include={"rank", "host", "phase", "epoch", "step"})
    return Hang(**place, seconds=seconds, lives=lives)


def _living(before: Sequence[Sign], after: Sequence[Sign]) -> set[int]:
    earlier = {sign.rank: sign.written for sign in before}
    return {sign.rank for sign in after if earlier.get(sign.rank) != sign.written}


def stalled_for(signs: Sequence[Sign], now: float) -> tuple[int, bool]:
    """Seconds, in fives, since the rank that is furthest behind has come further, and whether that is long.

    It is long from half a minute on, and from a quarter of the time after which the run is ended: its pace
    tells nothing then.

    Args:
        signs: Of all ranks; (0, False) without any.
        now: Unix time.
    """
    if not signs:
        return 0, False
    last = min(signs, key=lambda sign: sign.moved)
    seconds = max(0.0, now - last.moved)
    return int(seconds) // 5 * 5, seconds > max(STILL, last.due / 4)


def in_words(hang: Hang) -> str:
    """One sentence: "rank 1 on node2 fell silent in step 12 of epoch 3 (callbacks): …"."""
    who = "all ranks" if hang.rank is None else f"rank {hang.rank}"
    if hang.host:
        who += f" on {hang.host}"
    if not hang.phase:
        return f"{who} gave no sign of life within {hang.seconds:.0f} s"
    where = place(hang.phase, hang.epoch, hang.step)
    how = "it stands still" if hang.lives else "its process is stopped, or its node is gone"
    if hang.rank is None:
        how = "none is behind another" if hang.lives else "their processes are stopped"
    return f"{who} fell silent {where}, and {how}: nothing moved for {hang.seconds:.0f} s"


def place(phase: str, epoch: int, step: int) -> str:
    """Where a rank is: "in epoch 3 after step 12 (callbacks)", or "at compile" before the first epoch."""
    return f"in epoch {epoch} after step {step} ({phase})" if epoch else f"at {phase}"
