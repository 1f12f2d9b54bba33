"""Sentences on a rank that makes no progress, and on a run that hung."""

from collections.abc import Sequence

from scalestudy.measure.heartbeat import AT_MOST, LATE
from scalestudy.store.records import Hang, Sign
from scalestudy.util import units

SILENT = 30.0
"""Seconds without a sign of life after which a rank may be dead: more than clocks of hosts should differ."""


def silent_seconds(signs: Sequence[Sign], now: float) -> tuple[int, bool]:
    """Return the seconds, in steps of 5, since the rank with the oldest progress moved, and if that is long.

    It is long if it exceeds 30 s and a quarter of the rank's time limit. `now` is a Unix time. Without
    heartbeats the result is (0, False).
    """
    if not signs:
        return 0, False
    last = _longest_unmoved(signs, now)
    seconds = _unmoved(last, now)
    # A rank may rightly be slow: the limit of its phase says how slow.
    long = max(SILENT, last.due / 4)
    return _in_steps(seconds), seconds > long


def _longest_unmoved(signs: Sequence[Sign], now: float) -> Sign:
    return max(signs, key=lambda sign: _unmoved(sign, now))


def _unmoved(sign: Sign, now: float) -> float:
    """Return the seconds since a rank moved."""
    until = now
    if abs(now - sign.written) <= SILENT:
        # It gives signs of life: its own host's clock then gives both times.
        until = sign.written
    return max(0.0, until - sign.moved)


def describe_silence(signs: Sequence[Sign], now: float) -> str:
    """Describe which rank keeps a run from progressing, and since when; `now` is a Unix time.

    A rank without heartbeats is named first: the others wait for it.
    """
    # For display only: here the clocks of hosts are compared. What ends a run is decided by `first_hung`.
    mute = min(signs, key=lambda sign: sign.written)
    seconds = now - mute.written
    # Many ranks write less often each, so that a few missed heartbeats take longer.
    missed = LATE * len(signs) / AT_MOST
    if seconds > max(SILENT, missed):
        return (
            f"no sign of life of rank {mute.rank} on {mute.host} for {_since(seconds)}: "
            "its process is stopped, or its node is gone"
        )
    behind = _longest_unmoved(signs, now)
    since = _since(_unmoved(behind, now))
    return (
        f"no progress of rank {behind.rank} on {behind.host} for {since}: "
        f"it stands still at {behind.phase}"
    )


def _since(seconds: float) -> str:
    return units.duration(_in_steps(seconds))


def _in_steps(seconds: float) -> int:
    """Return seconds in steps of 5: a display that changes every second says no more."""
    return int(seconds) // 5 * 5


def describe_hang(hang: Hang) -> str:
    """Describe a hang in one sentence: "rank 1 on node2 fell silent in epoch 3 after step 12 (…), and …"."""
    who = "all ranks"
    if hang.rank is not None:
        who = f"rank {hang.rank}"
    if hang.host:
        who += f" on {hang.host}"
    if not hang.phase:
        return f"{who} reported no progress within {hang.seconds:.0f} s"
    where = f"at {hang.phase}"
    if hang.epoch:
        where = f"in epoch {hang.epoch} after step {hang.step} ({hang.phase})"
    return f"{who} fell silent {where}, and {_how_it_hangs(hang)}: nothing moved for {hang.seconds:.0f} s"


def _how_it_hangs(hang: Hang) -> str:
    if hang.rank is None:
        if hang.lives:
            return "none is behind another"
        return "their processes are stopped"
    if hang.lives:
        return "it stands still"
    return "its process is stopped, or its node is gone"
