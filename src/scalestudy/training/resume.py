"""Keeping a session in its run folder, going on from there, and agreeing on both among all ranks."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from scalestudy.engines.group import Group
from scalestudy.measure.clock import PhaseClock
from scalestudy.study.run_folder import RunFolder
from scalestudy.training import checkpoint
from scalestudy.training.checkpoint import Position, UnusableError
from scalestudy.training.session import Session
from scalestudy.util.errors import RunError

ASK_EVERY = 5.0
"""Seconds between two questions whether to stop, where several processes must agree."""
LOOK_EVERY = 1.0
"""The same for a process alone, which only looks for a file."""
KEEP_EVERY = 60.0
"""Least seconds between two checkpoints after epochs; also from the start to the first."""
KEEP_WITHIN = 600.0
"""Seconds after which a checkpoint is also taken within an epoch."""


class Agreed(NamedTuple):
    """What all ranks do now: leave (with a checkpoint), or only take one."""

    stop: bool
    keep: bool


class CheckpointConsensus:
    """Lets all ranks do the same at the same call.

    They agree by a sum over processes, which costs time; so they also agree on the number of calls until the
    next one, from the seconds that a call takes. Of `asked`, whether to stop, rank 0's answer counts.
    """

    def __init__(
        self, asked: Callable[[], bool], group: Group, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._asked, self._group, self._now = asked, group, now
        self._kept = self._checked = now()
        self._calls, self._until = 0, 1

    def due(self) -> bool:
        """Count a call; whether it is time for `within_epoch`, the same on every rank."""
        self._calls += 1
        alone = self._group.size == 1
        return self._calls >= self._until or (alone and self._now() - self._checked >= LOOK_EVERY)

    def within_epoch(self) -> Agreed:
        """Decide between two calls. Every rank must ask when `due`."""
        pace = (self._now() - self._checked) / max(1, self._calls)
        decision, pace = self._decide(KEEP_WITHIN, pace)
        self._calls, self._until = 0, max(1, int(ASK_EVERY / max(pace, 1e-9)))
        self._checked = self._now()
        return decision

    def after_epoch(self) -> Agreed:
        """Decide between two epochs. Every rank must ask."""
        return self._decide(KEEP_EVERY, 0.0)[0]

    def _decide(self, keep_every: float, pace: float) -> tuple[Agreed, float]:
        processes = self._group.size
        # Whole nanoseconds below 2^53 add up to the same in any order, so on every rank.
        mine = np.array([0, 0, round(pace * 1e9)], np.float64)
        if self._group.rank == 0:
            mine[:2] = self._asked(), self._now() - self._kept >= keep_every
        stop, keep, paces = self._group.host_sum(mine) if processes > 1 else mine
        decision = Agreed(bool(stop), bool(stop or keep))
        if decision.keep:
            self._kept = self._now()
        return decision, float(paces) / 1e9 / processes


SEEN_WITHIN = 60.0
"""Seconds until a checkpoint that rank 0 sees must be seen on every node."""
WRITTEN_WITHIN = 600.0
"""Seconds that the other ranks wait for rank 0 to write one."""


class StoppedError(Exception):
    """The run was asked to stop: its checkpoint is written, and every rank is to leave."""


class Keeper:
    """Takes a run's checkpoints, and restores the last one."""

    def __init__(self, folder: RunFolder, session: Session, clock: PhaseClock) -> None:
        self._folder, self._session, self._clock = folder, session, clock
        self._group = session.group
        self._fingerprint = session.fingerprint()
        self._agreement: CheckpointConsensus | None = None

    def found(self) -> Position | None:
        """Where this run was kept, as this rank sees it. What is unusable is named in the log."""
        try:
            return checkpoint.read_position(self._folder.checkpoint, self._fingerprint)
        except UnusableError as error:
            print(f"scalestudy: {self._folder.checkpoint} is ignored: {error}", flush=True)
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
                f"scalestudy: continues in epoch {position.epoch + 1} after step {position.step} "
                f"(restart {self._session.restarts})", flush=True,
            )  # fmt: skip
        self._agreement = CheckpointConsensus(self._folder.stop.exists, self._group)
        return position

    def after_call(self) -> None:
        """Between two calls of an epoch, on every rank. Only for a checkpoint are devices waited for.

        Raises:
            StoppedError: If all are to leave.
        """
        assert self._agreement
        if not self._agreement.due():
            return
        self._clock.heart.enter("exchange")
        decision = self._agreement.within_epoch()
        if decision.keep:
            with self._session.pause():
                self._act(decision)

    def after_epoch(self) -> None:
        """After an epoch's record was written, on every rank.

        Raises:
            StoppedError: If all are to leave. Once training is over it is too late for that.
        """
        assert self._agreement
        with self._clock.phase("exchange"):
            decision = self._agreement.after_epoch()
        self._act(decision)

    def remove(self) -> None:
        """Remove the checkpoint of a run that is done."""
        checkpoint.remove(self._folder.checkpoint)

    def _act(self, decision: Agreed) -> None:
        if not decision.keep:
            return
        with self._clock.phase("checkpoint"):
            position, values = self._session.checkpoint()
            if self._group.rank == 0:
                self._folder.refuse_other_job()
                checkpoint.write(self._folder.checkpoint, position, values, self._fingerprint)
        if decision.stop and not self._session.over:
            # A ring's last sum may still read from a rank that has its own answer.
            self._await(position.mark, WRITTEN_WITHIN, "rank 0 to write its checkpoint")
            print(f"scalestudy: stopped on request in epoch {position.epoch + 1} after step {position.step}")
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
                    "See rank 0's log, and check that all nodes see the same folder.",
                )
            time.sleep(0.05)
        return position
