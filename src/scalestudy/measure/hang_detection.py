"""Hang detection: heartbeats of the work, a watchdog in every worker, a detector beside their launcher.

The work marks its progress in a `Heartbeat`. Each worker's `Watchdog` writes that down as a sign of life,
`signs/RANK.json`, and ends the worker when nothing has moved for too long; a `HangDetector` ends a run whose
processes are all stopped. Who was first is judged by `first_hung`, from signs alone.
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

from scalestudy.study.records import Hang, Sign
from scalestudy.study.run_folder import RunFolder

EXIT_CODE = 79
"""Exit code of a worker that its watchdog has ended."""


class ProgressMark(NamedTuple):
    """A place in a run.

    Attributes:
        number: How many marks there were; alike on all ranks at the same place.
        phase: What the process is at.
        epoch: Epoch under way, counted from 1; 0 before the first.
        step: Steps done in it.
        since: `time.monotonic()` at which it got there.
        slowest: Most seconds between two marks within the steps so far; 0 before the first.
    """

    number: int
    phase: str
    epoch: int
    step: int
    since: float
    slowest: float


SERVING = "serving"
"""Phase of a process that computes what a coordinator asks for."""
STEPS = ("input", "step")
"""Phases of a call of the compiled step, whose seconds are alike from call to call."""


class Heartbeat:
    """The latest mark of a process, replaced as a whole: another thread never sees half of one."""

    def __init__(self) -> None:
        self.last = ProgressMark(0, "start-up", 0, 0, time.monotonic(), 0.0)

    def enter(self, phase: str) -> None:
        """The process has come to this phase."""
        self.step(self.last.epoch, self.last.step, phase)

    def step(self, epoch: int, step: int, phase: str) -> None:
        """So many steps of this epoch are done, and the process has come to this phase."""
        last, now = self.last, time.monotonic()
        slowest = max(last.slowest, now - last.since) if last.phase in STEPS else last.slowest
        self.last = ProgressMark(last.number + 1, phase, epoch, step, now, slowest)


class ProgressTimer:
    """Adds up for how long nothing has changed, in seconds in which this process could have seen it.

    While a job is suspended nobody's time runs: between two looks no more than `longest` seconds count.
    """

    def __init__(self, longest: float, now: Callable[[], float] = time.monotonic) -> None:
        self._longest, self._now = longest, now
        self._seen: object = None
        self._looked = now()
        self.seconds = 0.0

    def look(self, seen: object) -> float:
        """Look again; seconds since what is seen has changed."""
        now = self._now()
        between, self._looked = min(now - self._looked, self._longest), now
        self.seconds = 0.0 if seen != self._seen else self.seconds + between
        self._seen = seen
        return self.seconds


def first_hung(before: Sequence[Sign], after: Sequence[Sign], size: int, seconds: float) -> Hang:
    """The rank that the others wait for: one without any sign, else the one that has come least far.

    No two clocks are compared: how far a rank has come is a number that all ranks count alike, and a process
    lives if it has written anew between the two readings. Among ranks at the same place it is the one that
    does not live; where all live, or none does, nobody can tell. A process that serves a coordinator goes
    through no places with it: it is waited for once it does not live, and never before.

    Args:
        before: The signs when nothing had moved for too long.
        after: The same, a few times later than a living process takes to write a sign.
        size: Number of ranks.
        seconds: How long nothing has moved.
    """
    known = {sign.rank for sign in after}
    absent = [rank for rank in range(size) if rank not in known]
    if absent:
        return Hang(rank=absent[0], seconds=seconds, lives=False)
    living = _living(before, after)
    silent = [sign for sign in after if sign.phase == SERVING and sign.rank not in living]
    after = silent or [sign for sign in after if sign.phase != SERVING] or after
    last = min(after, key=lambda sign: (sign.marks, sign.rank in living, sign.rank))
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

    It is long from half a minute on, and from a quarter of the time after which the run is ended. `now` is a
    Unix time; without signs it is (0, False).
    """
    if not signs:
        return 0, False
    last = min(signs, key=lambda sign: sign.moved)
    seconds = max(0.0, now - last.moved)
    return int(seconds) // 5 * 5, seconds > max(30.0, last.due / 4)


def in_words(hang: Hang, role: str = "") -> str:
    """One sentence: "rank 1 on node2 fell silent in epoch 3 after step 12 (callbacks), and …".

    `role` follows the rank.
    """
    who = "all ranks" if hang.rank is None else f"rank {hang.rank}{role}"
    if hang.host:
        who += f" on {hang.host}"
    if not hang.phase:
        return f"{who} reported no progress within {hang.seconds:.0f} s"
    where = (
        f"in epoch {hang.epoch} after step {hang.step} ({hang.phase})" if hang.epoch else f"at {hang.phase}"
    )
    how = "it stands still" if hang.lives else "its process is stopped, or its node is gone"
    if hang.rank is None:
        how = "none is behind another" if hang.lives else "their processes are stopped"
    return f"{who} fell silent {where}, and {how}: nothing moved for {hang.seconds:.0f} s"


HANG_EVERY = 1.0
"""Seconds between two looks of a launcher at the signs."""
HANG_GRACE = 15.0
"""Seconds beyond the limit in which ranks have to end by themselves."""


class HangDetector:
    """Detects from outside that no process of a run is alive: if all are stopped, none can end the run.

    `progress_timeout` are the seconds to wait for a first heartbeat, `every` those between two looks.
    """

    def __init__(
        self, run: RunFolder, size: int, progress_timeout: float, every: float | None = None
    ) -> None:
        self._run, self._size, self._progress_timeout = run, size, progress_timeout
        self._every = HANG_EVERY if every is None else every
        self._unchanged = ProgressTimer(5 * self._every)
        self._due = 0.0

    def check(self, now: float) -> Hang | None:
        """Which rank hangs, once no process has given a heartbeat; `now`: a clock's seconds."""
        if now < self._due:
            return None
        self._due = now + self._every
        signs = self._run.signs()
        seconds = self._unchanged.look([sign.written for sign in signs])
        limit = max((sign.due for sign in signs), default=self._progress_timeout) + HANG_GRACE
        return first_hung(signs, signs, self._size, seconds) if seconds > limit else None


EVERY = 1.0
"""Seconds between two signs of a rank."""
AT_MOST = 50
"""Signs of all ranks together in a second: a shared file system has others to serve."""
FLOOR = 120.0
"""Least seconds that a step may take, whatever the others took: shared file systems pause now and then."""
TIMES = 20
"""How many times the slowest step so far a step may take."""
LATE = 4
"""Signs that a rank has left out, before it is asked whether its process lives."""
LOOKS = 5
"""Signs that a living rank has time to write before it is said which one was first."""


def due_after(mark: ProgressMark, progress_timeout: float) -> float:
    """Seconds from a mark within which there must be the next one."""
    if mark.phase not in STEPS or not mark.slowest:
        return progress_timeout
    return min(progress_timeout, max(FLOOR, TIMES * mark.slowest))


def granted(mark: ProgressMark, due: float, signs: Sequence[Sign]) -> float:
    """Seconds that a rank may stand still: as long as those that it waits for, since they are behind it.

    Rank 0 alone calls callbacks and writes checkpoints; the others wait for it in their next step.
    """
    return max([due, *(sign.due for sign in signs if sign.marks < mark.number)])


class Watchdog:
    """Watches the work of this process, and ends it when nothing has moved for `progress_timeout` seconds.

    It is a thread, yet its signs do not say that the run goes on: that is marked by the thread that does the
    work. Each rank judges itself alone, since a silent rank keeps all others waiting; their signs only tell
    which one was first. The stacks of a process whose interpreter is held are written by faulthandler's own
    thread. A stopped process can do nothing: the others end the run.
    """

    def __init__(
        self, folder: RunFolder, rank: int, size: int, heart: Heartbeat, progress_timeout: float
    ) -> None:
        self._folder, self._rank, self._size, self._heart = folder, rank, size, heart
        self._progress_timeout = progress_timeout
        self._every = max(EVERY, size / AT_MOST)
        self._unchanged = ProgressTimer(LOOKS * self._every)
        self._host, self._pid = socket.gethostname(), os.getpid()
        self._alarm = folder.path / "signs" / "alarm"

    def start(self) -> None:
        """Watch from now on, until the process ends."""
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def failed(self) -> None:
        """The work has failed: if that is since another rank is stopped or gone, say so.

        The libraries that ranks meet by give up on such a rank in times of their own, and blame the one that
        they are told by.
        """
        before = self._signs()
        written = [sign.written for sign in before]
        # Clocks of two hosts only decide whether it is worth a look.
        if self._raised() or not written or max(written) - min(written) < LATE * self._every:
            return
        time.sleep(LOOKS * self._every)
        seconds = max(written) - min(written) + LOOKS * self._every
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
                due = granted(self._heart.last, due, self._signs())
                if self._unchanged.seconds > due:
                    break
            # Should no thread be able to run when it is due, the stacks are written by faulthandler; that is
            # before another rank has ended the run.
            late = due - self._unchanged.seconds + 2 * self._every
            faulthandler.dump_traceback_later(late, file=sys.__stderr__ or 2)
            time.sleep(self._every)
        try:
            self._end(due)
        finally:
            os._exit(EXIT_CODE)

    def _look(self) -> float:
        """Give a sign; seconds that the work may stand still where it is."""
        mark = self._heart.last
        due = due_after(mark, self._progress_timeout)
        self._unchanged.look(mark.number)
        now = time.time()
        sign = Sign(
            rank=self._rank, host=self._host, pid=self._pid,
            phase=mark.phase, epoch=mark.epoch, step=mark.step, marks=mark.number,
            moved=now - (time.monotonic() - mark.since), due=due, written=now,
        )  # fmt: skip
        with contextlib.suppress(OSError):  # a full disk is for the work to report
            self._folder.write_sign(sign)
        return due

    def _end(self, due: float) -> None:
        """Have every rank write its stacks, and say which one was first; the first to know says so."""
        seconds, first = self._unchanged.seconds, not self._raised()
        with contextlib.suppress(OSError):
            self._alarm.touch()
        faulthandler.cancel_dump_traceback_later()
        faulthandler.dump_traceback(file=sys.__stderr__ or 2)
        before = self._signs()
        for _ in range(LOOKS if first else 2 * LOOKS):
            time.sleep(self._every)
            self._look()
            if self._folder.hang():
                break
        hang = self._folder.hang()
        if hang is None:
            hang = first_hung(before, self._signs(), self._size, seconds)
            with contextlib.suppress(OSError):
                self._folder.write_hang(hang)
        # Not by print: the work may hold the lock of the stream.
        text = (
            f"scalestudy: Expected progress of every rank within {due:.0f} s. Received none: "
            f"{in_words(hang)}. The stacks of the ranks are in their logs; if it takes that long in "
            "good health, raise progress_timeout under [launch].\n"
        )
        os.write(2, text.encode())

    def _signs(self) -> list[Sign]:
        """Those of all ranks, as far as they can be read: a file system may fail for a while."""
        try:
            return self._folder.signs()
        except OSError:
            return []

    def _raised(self) -> bool:
        """Whether a rank has found that nothing moves."""
        try:
            return self._alarm.exists()
        except OSError:
            return False
