"""The signals by which a user, a machine or a queue stops the runs of this process."""

import contextlib
import signal
import threading
from collections.abc import Iterator

from scalestudy.store.records import Failure
from scalestudy.store.run_folder import RunFolder

STOPPED_BY = {
    signal.SIGINT: "interrupted by Ctrl-C (SIGINT)",
    signal.SIGTERM: "stopped by SIGTERM",
    signal.SIGHUP: "stopped when its terminal was closed (SIGHUP)",
}


class StopSignal:
    """The handler of signals by which a user, a machine or a queue stops the runs of this process.

    The first signal asks the current run to stop at a checkpoint. A Ctrl-C after it stops the run at once.

    Attributes:
        number: Number of the first signal; 0 before.
        awaited: Whether a run is polling for the signal; otherwise the signal raises KeyboardInterrupt.
    """

    def __init__(self) -> None:
        self.number, self.awaited = 0, False

    def __call__(self, number: int, frame: object) -> None:
        """Handle a signal."""
        first = not self.number
        if first or number == signal.SIGINT:  # queues repeat their signals
            self.number = self.number or number
            if not (first and self.awaited):
                raise KeyboardInterrupt

    @property
    def exit_code(self) -> int:
        """Exit code of the command, as shells report it: 130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + (self.number or signal.SIGINT)

    def failure(self, run: RunFolder) -> Failure:
        """Return the failure of a run that was stopped by this signal."""
        reason = (
            STOPPED_BY.get(signal.Signals(self.number), "")
            if self.number
            else "interrupted by the user"
        )
        reason += "; run it again to continue" * run.checkpoint.exists()
        name = signal.Signals(self.number).name if self.number else None
        return Failure(
            rank=None, exit_code=None, signal=name, reason=reason, cancelled=True
        )


STOP = StopSignal()


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Handle SIGTERM, SIGINT and SIGHUP with `STOP` within the context; see `StopSignal`.

    Ignored signals, such as SIGHUP under nohup, stay ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    STOP.number = 0
    heard = [
        number for number in STOPPED_BY if signal.getsignal(number) != signal.SIG_IGN
    ]
    before = {number: signal.signal(number, STOP) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
