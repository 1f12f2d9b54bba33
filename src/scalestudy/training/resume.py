"""A session that is kept in its run folder, and goes on from there."""

import time
from collections.abc import Callable

import numpy as np

from scalestudy.measure.clock import PhaseClock
from scalestudy.study.run_folder import RunFolder
from scalestudy.training import checkpoint
from scalestudy.training.agreement import Agreement, Decision
from scalestudy.training.checkpoint import Position, UnusableError
from scalestudy.training.session import Session
from scalestudy.util.errors import RunError

SEEN_WITHIN = 60.0
"""Seconds until a checkpoint that rank 0 sees must be seen on every node."""
WRITTEN_WITHIN = 600.0
"""Seconds that the other ranks wait for rank 0 to write one."""


class StoppedError(Exception):
    """The run was asked to stop: its checkpoint is written, and every rank is to leave."""


class Keeper:
    """Takes a run's checkpoints, and restores the last one.

    Args:
        folder: Where they are kept, seen from every node.
        session: What is run.
        clock: Where time is counted.
    """

    def __init__(self, folder: RunFolder, session: Session, clock: PhaseClock) -> None:
        self._folder, self._session, self._clock = folder, session, clock
        self._group = session.group
        self._fingerprint = session.fingerprint()
        self._agreement: Agreement | None = None

    def found(self) -> Position | None:
        """Where this run was kept, as this rank sees it. What is unusable is named in the log."""
        try:
            return checkpoint.read_position(self._folder.checkpoint, self._fingerprint)
        except UnusableError as error:
            print(f"scalestudy: {self._folder.checkpoint} is left aside: {error}", flush=True)
            return None

    def go_on(self) -> Position | None:
        """Restore what rank 0 finds, on every rank, and begin to watch for a request to stop.

        Raises:
            RunError: If a rank does not see the file that rank 0 sees.
        """
        position = self._agreed()
        if position is not None:
            with self._clock.phase("checkpoint"):
                self._session.go_on(position, checkpoint.read_values(self._folder.checkpoint))
            print(
                f"scalestudy: goes on in epoch {position.epoch + 1} after step {position.step} "
                f"(restart {self._session.restarts})", flush=True,
            )  # fmt: skip
        self._agreement = Agreement(self._folder.stop.exists, self._group)
        return position

    def after_call(self) -> None:
        """Between two calls of an epoch, on every rank.

        Raises:
            StoppedError: If all are to leave.
        """
        assert self._agreement
        if self._agreement.due():
            with self._session.pause():
                self._act(self._agreement.within_epoch)

    def after_epoch(self) -> None:
        """After an epoch's record was written, on every rank.

        Raises:
            StoppedError: If all are to leave. Once training is over it is too late for that.
        """
        assert self._agreement
        self._act(self._agreement.after_epoch)

    def remove(self) -> None:
        """Remove the checkpoint of a run that is done."""
        checkpoint.remove(self._folder.checkpoint)

    def _act(self, decide: Callable[[], Decision]) -> None:
        with self._clock.phase("exchange"):
            decision = decide()
        if decision.keep:
            with self._clock.phase("checkpoint"):
                position, values = self._session.checkpoint()
                if self._group.rank == 0:
                    self._folder.refuse_other_job()
                    checkpoint.write(self._folder.checkpoint, position, values, self._fingerprint)
            if decision.stop and not self._session.over:
                # A ring's last sum may still read from a rank that has its own answer.
                self._await(position.mark, WRITTEN_WITHIN, "rank 0 to write its checkpoint")
                print(
                    f"scalestudy: stopped on request in epoch {position.epoch + 1} after step {position.step}"
                )
                raise StoppedError

    def _agreed(self) -> Position | None:
        position = self.found() if self._group.rank == 0 else None
        mine = np.array([1, *position.mark] if position else [0, 0, 0, 0], np.int64)
        there, *mark = self._group.host_sum(mine).tolist()
        return self._await(tuple(mark), SEEN_WITHIN, "the checkpoint that rank 0 sees") if there else None

    def _await(self, mark: tuple[int, ...], within: float, what: str) -> Position:
        deadline = time.monotonic() + within
        while (position := self.found()) is None or position.mark != mark:
            if time.monotonic() > deadline:
                raise RunError(
                    f"{what} within {within:.0f} s",
                    f"{'none' if position is None else 'another one'} at {self._folder.checkpoint}",
                    "Look into rank 0's log, and whether all nodes see the same folder.",
                )
            time.sleep(0.05)
        return position
