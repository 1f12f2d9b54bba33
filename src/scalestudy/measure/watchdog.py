"""The watchdog of a worker, which ends it if its training thread makes no progress in time."""

import contextlib
import faulthandler
import os
import socket
import sys
import threading
import time
from collections.abc import Sequence

from scalestudy.measure.heartbeat import AT_MOST, LATE, STEPS, Heartbeat, ProgressMark
from scalestudy.measure.hung_rank import first_hung, first_stopped
from scalestudy.measure.progress_timer import ProgressTimer
from scalestudy.measure.silence import describe_hang
from scalestudy.store.records import Sign
from scalestudy.store.run_folder import RunFolder

EXIT_CODE = 79
"""Exit code of a worker that is ended by its watchdog."""
EVERY = 1.0
"""Seconds between two heartbeats of a rank."""
EVERY_IN_JOB = 5.0
"""The same in a job, whose ranks all write to one shared file system."""
FLOOR = 120.0
"""Minimum of the time limit of a step in seconds, since shared file systems pause now and then."""
TIMES = 20
"""Time limit of a step as a multiple of the slowest step so far."""
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
    longest = due
    for sign in signs:
        if sign.marks < mark.number:
            longest = max(longest, sign.due)
    return longest


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
        self._folder = folder
        self._rank = rank
        self._size = size
        self._heartbeat = heartbeat
        self._progress_timeout = progress_timeout
        every = EVERY
        if folder.in_job:
            every = EVERY_IN_JOB
        self.interval = max(every, size / AT_MOST)
        self._unchanged = ProgressTimer(LOOKS * self.interval)
        self._host = socket.gethostname()
        self._pid = os.getpid()
        self._alarm = folder.path / "signs" / "alarm"

    def start(self) -> None:
        """Start watching, until the process ends."""
        threading.Thread(
            target=self._watch,
            name="watchdog",
            daemon=True,
        ).start()

    def failed(self) -> None:
        """Record a hang if the work has failed because another rank is stopped or gone.

        Communication libraries give up on such a rank after their own timeouts, and blame the rank that
        reports the error.
        """
        before = self._signs()
        if self._raised() or not before:
            return
        written = [sign.written for sign in before]
        # Clocks of hosts are compared only to decide whether to check further.
        apart = max(written) - min(written)
        if apart < LATE * self.interval:
            return
        wait = LOOKS * self.interval
        time.sleep(wait)
        seconds = apart + wait
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
        # sys.exit would end this thread alone, and the training thread may never return.
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
        # The training thread reports a full disk.
        with contextlib.suppress(OSError):
            self._folder.write_sign(sign)
        return due

    def _end(self, due: float) -> None:
        """Make every rank write its stacks, and record which rank hung first, unless another rank has."""
        seconds = self._unchanged.seconds
        looks = LOOKS
        if self._raised():
            # The rank that raised the alarm records the hang; only if it fails to, this one does.
            looks = 2 * LOOKS
        with contextlib.suppress(OSError):
            self._alarm.touch()
        faulthandler.cancel_dump_traceback_later()
        faulthandler.dump_traceback(file=sys.__stderr__ or 2)
        before = self._signs()
        for _ in range(looks):
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
