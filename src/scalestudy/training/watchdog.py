"""Hang detection in a worker: gives its signs of life, and ends it when nothing has moved for too long.

What moves is told to `measure.heartbeat`; which rank was first is judged by `study.hang`; what the launcher
says of it stands in `launch.failures`.

It is a thread, yet its signs do not say that the run goes on: how far that has come is told by the thread
that does the work. Each rank judges itself alone, since a silent rank keeps all others waiting; their signs
only tell which one was first. The stacks of a process whose interpreter is held, so that none of its threads
can run, are written all the same, by faulthandler's own thread. A stopped process can do nothing: the others
end the run.
"""

import contextlib
import faulthandler
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from scalestudy.measure.heartbeat import STEPS, Heartbeat, ProgressMark, ProgressTimer
from scalestudy.study.hang import EXIT_CODE, first_hung, first_stopped, in_words
from scalestudy.study.records import Sign
from scalestudy.study.run_folder import RunFolder

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
    """Watches the work of this process.

    Args:
        folder: Of the run, seen by all ranks.
        rank: This process's.
        size: Number of ranks.
        heart: What the work tells.
        progress_timeout: Seconds without progress after which the run is ended.
        leave: Ends this process.
    """

    def __init__(
        self, folder: RunFolder, rank: int, size: int, heart: Heartbeat, progress_timeout: float,
        leave: Callable[[int], object] = os._exit,
    ) -> None:  # fmt: skip
        self._folder, self._rank, self._size, self._heart = folder, rank, size, heart
        self._progress_timeout, self._leave = progress_timeout, leave
        self._every = max(EVERY, size / AT_MOST)
        self._still = ProgressTimer(LOOKS * self._every)
        self._host, self._pid = socket.gethostname(), os.getpid()

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
        silence = first_stopped(before, self._signs(), seconds)
        if silence is not None:
            with contextlib.suppress(OSError):
                self._folder.write_hang(silence)

    def _watch(self) -> None:
        while True:
            due = self._look()
            if self._raised():
                break
            if self._still.seconds > due:
                due = granted(self._heart.last, due, self._signs())
                if self._still.seconds > due:
                    break
            # Should no thread be able to run when it is due, the stacks are written by faulthandler; that is
            # before another rank has ended the run.
            late = due - self._still.seconds + 2 * self._every
            faulthandler.dump_traceback_later(late, file=sys.__stderr__ or 2)
            time.sleep(self._every)
        try:
            self._end(due)
        finally:
            self._leave(EXIT_CODE)

    def _look(self) -> float:
        """Give a sign; seconds that the work may stand still where it is."""
        mark = self._heart.last
        due = due_after(mark, self._progress_timeout)
        self._still.look(mark.number)
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
        seconds, first = self._still.seconds, not self._raised()
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
        silence = self._folder.hang()
        if silence is None:
            silence = first_hung(before, self._signs(), self._size, seconds)
            with contextlib.suppress(OSError):
                self._folder.write_hang(silence)
        # Not by print: the work may hold the lock of the stream.
        text = (
            f"scalestudy: Expected progress of every rank within {due:.0f} s. Received none: "
            f"{in_words(silence)}. The stacks of the ranks stand in their logs; if it takes that long in "
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

    @property
    def _alarm(self) -> Path:
        return self._folder.path / "signs" / "alarm"
