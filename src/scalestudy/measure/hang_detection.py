"""Hang detection from outside of the workers.

The training thread marks its progress in a `Heartbeat`. Each worker's `Watchdog` writes the last mark to a
heartbeat file, `signs/RANK.json`, and ends the worker if there is no progress for too long. A `HangDetector`
ends a run whose processes are all stopped. `first_hung` determines from these files which rank hung first.
"""

from scalestudy.measure.hung_rank import first_hung
from scalestudy.measure.progress_timer import ProgressTimer
from scalestudy.store.records import Hang
from scalestudy.store.run_folder import RunFolder

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
        self._every = HANG_EVERY
        if every is not None:
            self._every = every
        self._unchanged = ProgressTimer(5 * self._every)
        self._due = 0.0

    def check(self, now: float) -> Hang | None:
        """Return the hang if no process has written a heartbeat for too long; `now` is in seconds."""
        if now < self._due:
            return None
        self._due = now + self._every
        signs = self._run.signs()
        seconds = self._unchanged.look([sign.written for sign in signs])
        # Before the first heartbeat, ranks load libraries, and have no limit of their own.
        limit = max([sign.due for sign in signs], default=self._progress_timeout)
        if seconds <= limit + HANG_GRACE:
            return None
        return first_hung(signs, signs, self._size, seconds)
