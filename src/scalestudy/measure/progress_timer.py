"""How long a value has not changed."""

import time
from collections.abc import Callable


class ProgressTimer:
    """Measures how long a value has not changed, in seconds during which this process was running.

    At most `longest` seconds count between two checks, so that time during which a job is suspended is
    ignored.
    """

    def __init__(
        self,
        longest: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._longest, self._now = longest, now
        self._seen: object = None
        self._looked = now()
        self.seconds = 0.0

    def look(self, seen: object) -> float:
        """Compare with the last value; return the seconds since it changed."""
        now = self._now()
        between = min(now - self._looked, self._longest)
        self._looked = now
        if seen == self._seen:
            self.seconds += between
        else:
            self.seconds = 0.0
        self._seen = seen
        return self.seconds
