"""What a launcher makes of ranks that have fallen silent."""

from collections.abc import Sequence

from scalestudy.measure.stillness import Stillness
from scalestudy.study.hang import first_hung, in_words
from scalestudy.study.records import Failure, Hang, Sign
from scalestudy.study.run_folder import RunFolder

LOOK_EVERY = 1.0
"""Seconds between two looks at the signs."""
BEYOND = 15.0
"""Seconds beyond a silence that the ranks have to end by themselves."""


class Outside:
    """Looks from outside whether any process of a run still lives: if all are stopped, none can end the run.

    Args:
        run: The run, whose signs are of its present processes only.
        size: Number of its processes.
        silent_after: Seconds that they may be silent.
    """

    def __init__(self, run: RunFolder, size: int, silent_after: float) -> None:
        self._run, self._size, self._silent_after = run, size, silent_after
        self._still = Stillness(5 * LOOK_EVERY)
        self._due = 0.0

    def look(self, now: float) -> Hang | None:
        """Look again, if it is time to (a clock's seconds); the silence, once no process has given a sign."""
        if now < self._due:
            return None
        self._due = now + LOOK_EVERY
        signs: Sequence[Sign] = self._run.signs()
        seconds = self._still.look([sign.written for sign in signs])
        limit = max((sign.due for sign in signs), default=self._silent_after) + BEYOND
        return first_hung(signs, signs, self._size, seconds) if seconds > limit else None


def failure_of_hang(silence: Hang, tail: Sequence[str]) -> Failure:
    """The failure of a run that was ended since nothing moved; `tail`: the last lines of the rank's log."""
    return Failure(rank=silence.rank, exit_code=None, reason=in_words(silence), tail=list(tail))
