"""For how long nothing has changed."""

import time
from collections.abc import Callable


class Stillness:
    """Adds up for how long nothing has changed, in seconds in which this process could have seen it.

    While a job is suspended nobody's time runs: between two looks no more than `longest` counts.

    Args:
        longest: Most seconds that may lie between two looks.
        now: The time in seconds.

    Attributes:
        seconds: Since what was seen has changed.
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
