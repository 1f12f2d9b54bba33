"""Writing the checkpoints of a run, and restoring the last one on every rank."""

import time

import numpy as np

from scalestudy.store.records import Stopped
from scalestudy.store.run_folder import RunFolder
from scalestudy.training.checkpoint import (
    UnusableError,
    read_position,
    read_values,
    remove_checkpoint,
    write_checkpoint,
)
from scalestudy.training.checkpoint_consensus import Agreed, CheckpointConsensus
from scalestudy.training.position import Position
from scalestudy.training.session import Session
from scalestudy.util.errors import RunError

SEEN_WITHIN = 60.0
"""Seconds within which every node must see the checkpoint that rank 0 sees."""
WRITTEN_WITHIN = 600.0
"""Seconds that the other ranks wait for rank 0 to write a checkpoint."""


class StoppedError(Exception):
    """The run was asked to stop. Its checkpoint is written, and every rank must exit."""


class Keeper:
    """Writes the checkpoints of a run and restores the last one."""

    def __init__(self, folder: RunFolder, session: Session) -> None:
        self._folder = folder
        self._session = session
        self._clock = session.clock
        self._group = session.group
        self._fingerprint = session.fingerprint()
        self._agreement: CheckpointConsensus | None = None

    def found(self) -> Position | None:
        """Return the position of the checkpoint that this rank sees; log the reason if it is unusable."""
        try:
            return read_position(self._folder.checkpoint, self._fingerprint)
        except UnusableError as error:
            print(
                f"scalestudy: {self._folder.checkpoint} is ignored: {error}",
                flush=True,
            )
            return None

    def restore(self) -> Position | None:
        """Restore the checkpoint that rank 0 finds on every rank, and start watching for a stop request.

        Raises:
            RunError: If a rank does not see the file that rank 0 sees.
        """
        position = self._agreed()
        if position is not None:
            with self._clock.phase("checkpoint"):
                self._session.restore(position, read_values(self._folder.checkpoint))
            print(
                f"scalestudy: continues in epoch {position.epoch + 1} after step {position.step} "
                f"(restart {self._session.restarts})",
                flush=True,
            )
        self._agreement = CheckpointConsensus(self._folder.stop.exists, self._group)
        return position

    def after_call(self) -> None:
        """Write a checkpoint or stop if due, between two calls of an epoch. Every rank must call this.

        Raises:
            StoppedError: If all ranks must exit.
        """
        assert self._agreement
        if not self._agreement.due():
            return
        self._clock.heartbeat.enter("exchange")
        decision = self._agreement.within_epoch()
        if decision.keep:
            with self._session.pause():
                self._act(decision)

    def after_epoch(self) -> None:
        """Write a checkpoint or stop if due, after an epoch's record. Every rank must call this.

        Raises:
            StoppedError: If all ranks must exit; not after the last epoch.
        """
        assert self._agreement
        with self._clock.phase("exchange"):
            decision = self._agreement.after_epoch()
        self._act(decision)

    def remove(self) -> None:
        """Remove the checkpoint of a finished run."""
        remove_checkpoint(self._folder.checkpoint)

    def _act(self, decision: Agreed) -> None:
        if not decision.keep:
            return
        with self._clock.phase("checkpoint"):
            position, values = self._session.checkpoint()
            if self._group.rank == 0:
                # A job that was requeued may run while an older one still writes.
                self._folder.refuse_other_job()
                # The records of all epochs before it must survive the node as well.
                self._folder.sync_epochs()
                write_checkpoint(
                    self._folder.checkpoint,
                    position,
                    values,
                    self._fingerprint,
                )
                # After the checkpoint, so that it never promises one that is not there.
                if decision.stop:
                    stopped = Stopped(epoch=position.epoch + 1, step=position.step)
                    self._folder.write_stopped(stopped)
        if decision.stop and not self._session.over:
            # In a ring, other ranks may still read from a rank whose sum is complete.
            self._await(position.mark, WRITTEN_WITHIN, "rank 0 to write its checkpoint")
            print(
                f"scalestudy: stopped on request in epoch {position.epoch + 1} after step {position.step}"
            )
            raise StoppedError

    def _agreed(self) -> Position | None:
        # Whether there is one, and its mark: rank 0's numbers, to which the others add zeros.
        mine = np.zeros(4, np.int64)
        if self._group.rank == 0:
            position = self.found()
            if position is not None:
                mine[:] = 1, *position.mark
        there, *mark = self._group.host_sum(mine).tolist()
        if not there:
            return None
        # A file system may show the file to other nodes later.
        what = "the checkpoint that rank 0 sees"
        return self._await(tuple(mark), SEEN_WITHIN, what)

    def _await(
        self,
        mark: tuple[int, ...],
        within: float,
        what: str,
    ) -> Position:
        deadline = time.monotonic() + within
        while True:
            position = self.found()
            if position is not None and position.mark == mark:
                return position
            if time.monotonic() > deadline:
                found = "another one"
                if position is None:
                    found = "none"
                raise RunError(
                    f"{what} within {within:.0f} s",
                    f"{found} at {self._folder.checkpoint}",
                    "See rank 0's log, and check that all nodes see the same folder.",
                )
            time.sleep(0.05)
