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
        self.number = 0
        self.awaited = False

    def __call__(self, number: int, frame: object) -> None:
        """Handle a signal."""
        if self.number and number != signal.SIGINT:
            return  # queues repeat their signals
        first = not self.number
        if first:
            self.number = number
        if not (first and self.awaited):
            raise KeyboardInterrupt

    def failure(self, run: RunFolder) -> Failure:
        """Return the failure of a run that was stopped by this signal."""
        reason, name = "interrupted by the user", None
        if self.number:
            known = signal.Signals(self.number)
            reason, name = STOPPED_BY.get(known, ""), known.name
        if run.checkpoint.exists():
            reason += "; run it again to continue"
        return Failure(
            rank=None,
            exit_code=None,
            signal=name,
            reason=reason,
            cancelled=True,
        )


_received = StopSignal()
"""The handler of the latest `stoppable`. A process has one exit code, and needs the signal for it at its end,
after all errors have been handled."""


def exit_code() -> int:
    """Return the exit code of a stopped process, as shells report it: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + (_received.number or signal.SIGINT)


@contextlib.contextmanager
def stoppable() -> Iterator[StopSignal]:
    """Handle SIGTERM, SIGINT and SIGHUP within the context, and yield the handler.

    Ignored signals, such as SIGHUP under nohup, stay ignored. Outside of the main thread, in which alone
    Python handles signals, none is handled.
    """
    global _received  # noqa: PLW0603 (see there)
    stop = StopSignal()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    _received = stop
    handlers = {}
    for number in STOPPED_BY:
        # nohup, and shells for background jobs, ignore signals on purpose.
        if signal.getsignal(number) != signal.SIG_IGN:
            handlers[number] = signal.signal(number, stop)
    try:
        yield stop
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
