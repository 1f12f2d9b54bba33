"""Hang detection: heartbeats of the training thread, a watchdog per worker, and a detector in the launcher.

The training thread marks its progress in a `Heartbeat`. Each worker's `Watchdog` writes the last mark to a
heartbeat file, `signs/RANK.json`, and ends the worker if there is no progress for too long. A `HangDetector`
ends a run whose processes are all stopped. `first_hung` determines from these files which rank hung first.
"""

import contextlib
import faulthandler
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from scalestudy.store.records import Hang, Sign
from scalestudy.store.run_folder import RunFolder
from scalestudy.util import units

EXIT_CODE = 79
"""Exit code of a worker that is ended by its watchdog."""


class ProgressMark(NamedTuple):
    """The position of a process in a run.

    Attributes:
        number: Number of marks so far; equal on all ranks at the same position.
        phase: Current phase of the process.
        epoch: Current epoch, counted from 1; 0 before the first.
        step: Steps completed in the epoch.
        since: `time.monotonic()` of this mark.
        slowest: Longest seconds between two marks during steps so far; 0 before the first step.
    """

    number: int
    phase: str
    epoch: int
    step: int
    since: float
    slowest: float


SERVING = "serving"
"""Phase of a process that computes for rank 0, whose marks follow those of rank 0."""
STEPS = ("input", "step", "backward")
"""Phases of a call of the compiled step, which take similar times in every call."""


class Heartbeat:
    """The latest mark of a process. It is replaced atomically, so other threads can read it."""

    def __init__(self) -> None:
        self.last = ProgressMark(0, "start-up", 0, 0, time.monotonic(), 0.0)

    def enter(self, phase: str) -> None:
        """Mark that the process has entered `phase`."""
        self.step(self.last.epoch, self.last.step, phase)

    def exchange(self) -> None:
        """Mark that the process has computed its part of a step, and from here on may wait for others."""
        if self.last.phase in ("step", "backward"):
            self.enter("backward")

    def step(self, epoch: int, step: int, phase: str) -> None:
        """Mark that `step` steps of `epoch` are done and the process has entered `phase`."""
        last, now = self.last, time.monotonic()
        slowest = (
            max(last.slowest, now - last.since) if last.phase in STEPS else last.slowest
        )
        self.last = ProgressMark(last.number + 1, phase, epoch, step, now, slowest)


class ProgressTimer:
    """Measures how long a value has not changed, in seconds during which this process was running.

    At most `longest` seconds count between two checks, so that time during which a job is suspended is
    ignored.
    """

    def __init__(
        self, longest: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._longest, self._now = longest, now
        self._seen: object = None
        self._looked = now()
        self.seconds = 0.0

    def look(self, seen: object) -> float:
        """Compare with the last value; return the seconds since it changed."""
        now = self._now()
        between, self._looked = min(now - self._looked, self._longest), now
        self.seconds = 0.0 if seen != self._seen else self.seconds + between
        self._seen = seen
        return self.seconds


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


SILENT = 30.0
"""Seconds without a sign of life after which a rank may be dead: more than clocks of hosts should differ."""


def stalled_seconds(signs: Sequence[Sign], now: float) -> tuple[int, bool]:
    """Return the seconds, in steps of 5, since the rank with the oldest progress moved, and if that is long.

    It is long if it exceeds 30 s and a quarter of the rank's time limit. `now` is a Unix time. Without
    heartbeats the result is (0, False).
    """
    if not signs:
        return 0, False
    last = max(signs, key=lambda sign: _unmoved(sign, now))
    seconds = _unmoved(last, now)
    return int(seconds) // 5 * 5, seconds > max(SILENT, last.due / 4)


def _unmoved(sign: Sign, now: float) -> float:
    """Return the seconds since a rank moved: by its own host's clock, while it gives signs of life."""
    until = sign.written if abs(now - sign.written) <= SILENT else now
    return max(0.0, until - sign.moved)


def describe_silence(signs: Sequence[Sign], now: float) -> str:
    """Describe which rank keeps a run from progressing, and since when; `now` is a Unix time.

    A rank without heartbeats is named first: the others wait for it.
    """
    # For display only: here the clocks of hosts are compared. What ends a run is decided by `first_hung`.
    mute = min(signs, key=lambda sign: sign.written)
    behind = max(signs, key=lambda sign: _unmoved(sign, now))
    seconds = now - mute.written
    if seconds > max(SILENT, LATE * len(signs) / AT_MOST):
        where = (
            f"no sign of life of rank {mute.rank} on {mute.host} for {_since(seconds)}"
        )
        return f"{where}: its process is stopped, or its node is gone"
    where = f"no progress of rank {behind.rank} on {behind.host} for {_since(_unmoved(behind, now))}"
    return f"{where}: it stands still at {behind.phase}"


def _since(seconds: float) -> str:
    return units.duration(int(seconds) // 5 * 5)


def describe_hang(hang: Hang) -> str:
    """Describe a hang in one sentence: "rank 1 on node2 fell silent in epoch 3 after step 12 (…), and …"."""
    who = "all ranks" if hang.rank is None else f"rank {hang.rank}"
    if hang.host:
        who += f" on {hang.host}"
    if not hang.phase:
        return f"{who} reported no progress within {hang.seconds:.0f} s"
    where = (
        f"in epoch {hang.epoch} after step {hang.step} ({hang.phase})"
        if hang.epoch
        else f"at {hang.phase}"
    )
    how = (
        "it stands still"
        if hang.lives
        else "its process is stopped, or its node is gone"
    )
    if hang.rank is None:
        how = "none is behind another" if hang.lives else "their processes are stopped"
    return (
        f"{who} fell silent {where}, and {how}: nothing moved for {hang.seconds:.0f} s"
    )


HANG_EVERY = 1.0
"""Seconds between two checks of the heartbeats by a launcher."""
HANG_GRACE = 15.0
"""Seconds beyond the limit during which ranks can still end by themselves."""


class HangDetector:
    """Detects from outside that no process of a run is alive. If all are stopped, none can end the run.

    `progress_timeout` is the time to wait for a first heartbeat, `every` the interval of checks, in seconds.
    """

    def __init__(
        self,
        run: RunFolder,
        size: int,
        progress_timeout: float,
        every: float | None = None,
    ) -> None:
        self._run, self._size, self._progress_timeout = run, size, progress_timeout
        self._every = HANG_EVERY if every is None else every
        self._unchanged = ProgressTimer(5 * self._every)
        self._due = 0.0

    def check(self, now: float) -> Hang | None:
        """Return the hang if no process has written a heartbeat for too long; `now` is in seconds."""
        if now < self._due:
            return None
        self._due = now + self._every
        signs = self._run.signs()
        seconds = self._unchanged.look([sign.written for sign in signs])
        limit = (
            max((sign.due for sign in signs), default=self._progress_timeout)
            + HANG_GRACE
        )
        return (
            first_hung(signs, signs, self._size, seconds) if seconds > limit else None
        )


EVERY = 1.0
"""Seconds between two heartbeats of a rank."""
EVERY_IN_JOB = 5.0
"""The same in a job, whose ranks all write to one shared file system."""
AT_MOST = 50
"""Maximum heartbeats per second of all ranks together, to limit the load on a shared file system."""
FLOOR = 120.0
"""Minimum of the time limit of a step in seconds, since shared file systems pause now and then."""
TIMES = 20
"""Time limit of a step as a multiple of the slowest step so far."""
LATE = 4
"""Missed heartbeats after which a rank is checked for being alive."""
LOOKS = 5
"""Heartbeats that a rank which is alive can write before the first hung rank is determined."""


def due_after(mark: ProgressMark, progress_timeout: float) -> float:
    """Return the seconds from a mark within which the next one must follow."""
    if mark.phase not in STEPS or not mark.slowest:
        return progress_timeout
    return min(progress_timeout, max(FLOOR, TIMES * mark.slowest))


def extend_limit(mark: ProgressMark, due: float, signs: Sequence[Sign]) -> float:
    """Return the time limit of a rank: its own, or a longer one of a rank behind it, for which it waits.

    For example, only rank 0 runs callbacks and writes checkpoints, and the others wait for it in their next
    step.
    """
    return max([due, *(sign.due for sign in signs if sign.marks < mark.number)])


class Watchdog:
    """Watches the training thread of this process, and ends the process if it makes no progress in time.

    The watchdog is a thread. Its heartbeats only show that the process is alive; progress is marked by the
    training thread. Each rank checks only itself, since a hung rank makes all others wait; the heartbeats of
    the others only show which rank hung first. If the interpreter lock is held, faulthandler's thread writes
    the stacks. A stopped process cannot act; the other ranks end the run.

    Attributes:
        interval: Seconds between two heartbeats.
    """

    def __init__(
        self,
        folder: RunFolder,
        rank: int,
        size: int,
        heartbeat: Heartbeat,
        progress_timeout: float,
    ) -> None:
        self._folder, self._rank, self._size, self._heartbeat = (
            folder,
            rank,
            size,
            heartbeat,
        )
        self._progress_timeout = progress_timeout
        self.interval = max(EVERY_IN_JOB if folder.in_job else EVERY, size / AT_MOST)
        self._unchanged = ProgressTimer(LOOKS * self.interval)
        self._host, self._pid = socket.gethostname(), os.getpid()
        self._alarm = folder.path / "signs" / "alarm"

    def start(self) -> None:
        """Start watching, until the process ends."""
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def failed(self) -> None:
        """Record a hang if the work has failed because another rank is stopped or gone.

        Communication libraries give up on such a rank after their own timeouts, and blame the rank that
        reports the error.
        """
        before = self._signs()
        written = [sign.written for sign in before]
        # Clocks of hosts are compared only to decide whether to check further.
        if (
            self._raised()
            or not written
            or max(written) - min(written) < LATE * self.interval
        ):
            return
        time.sleep(LOOKS * self.interval)
        seconds = max(written) - min(written) + LOOKS * self.interval
        hang = first_stopped(before, self._signs(), seconds)
        if hang is not None:
            with contextlib.suppress(OSError):
                self._folder.write_hang(hang)

    def _watch(self) -> None:
        while True:
            due = self._look()
            if self._raised():
                break
            if self._unchanged.seconds > due:
                due = extend_limit(self._heartbeat.last, due, self._signs())
                if self._unchanged.seconds > due:
                    break
            # If no Python thread can run at that time, faulthandler writes the stacks, before another rank
            # ends the run.
            late = due - self._unchanged.seconds + 2 * self.interval
            faulthandler.dump_traceback_later(late, file=sys.__stderr__ or 2)
            time.sleep(self.interval)
        try:
            self._end(due)
        finally:
            os._exit(EXIT_CODE)

    def _look(self) -> float:
        """Write a heartbeat. Return the time limit of the current mark in seconds."""
        mark = self._heartbeat.last
        due = due_after(mark, self._progress_timeout)
        self._unchanged.look(mark.number)
        now = time.time()
        sign = Sign(
            rank=self._rank,
            host=self._host,
            pid=self._pid,
            phase=mark.phase,
            epoch=mark.epoch,
            step=mark.step,
            marks=mark.number,
            moved=now - (time.monotonic() - mark.since),
            due=due,
            written=now,
        )
        with contextlib.suppress(OSError):  # the training thread reports a full disk
            self._folder.write_sign(sign)
        return due

    def _end(self, due: float) -> None:
        """Make every rank write its stacks, and record which rank hung first, unless another rank has."""
        seconds, first = self._unchanged.seconds, not self._raised()
        with contextlib.suppress(OSError):
            self._alarm.touch()
        faulthandler.cancel_dump_traceback_later()
        faulthandler.dump_traceback(file=sys.__stderr__ or 2)
        before = self._signs()
        for _ in range(LOOKS if first else 2 * LOOKS):
            time.sleep(self.interval)
            self._look()
            if self._folder.hang():
                break
        hang = self._folder.hang()
        if hang is None:
            hang = first_hung(before, self._signs(), self._size, seconds)
            with contextlib.suppress(OSError):
                self._folder.write_hang(hang)
        # Not with print: the training thread may hold the lock of the stream.
        text = (
            f"scalestudy: Expected progress of every rank within {due:.0f} s. Received none: "
            f"{describe_hang(hang)}. The stacks of the ranks are in their logs; if it takes that long in "
            "good health, raise progress_timeout under [launch].\n"
        )
        os.write(2, text.encode())

    def _signs(self) -> list[Sign]:
        """Return the heartbeats of all ranks, or [] while the file system fails."""
        try:
            return self._folder.signs()
        except OSError:
            return []

    def _raised(self) -> bool:
        try:
            return self._alarm.exists()
        except OSError:
            return False
