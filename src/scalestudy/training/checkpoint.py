"""Checkpoints: the file from which a run continues, written and restored in agreement among all ranks."""

import json
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scalestudy.engines.group import Group
from scalestudy.store.records import Stopped
from scalestudy.store.run_folder import RunFolder
from scalestudy.training.session import Position, Session
from scalestudy.util.errors import RunError
from scalestudy.util.files import replacing

ASK_EVERY = 5.0
"""Seconds between two checks for a stop request, if several processes must agree."""
LOOK_EVERY = 1.0
"""The same for a single process, which only checks whether a file exists."""
KEEP_EVERY = 60.0
"""Minimum seconds between two checkpoints after epochs, and from the start to the first."""
KEEP_WITHIN = 600.0
"""Seconds after which a checkpoint is also written within an epoch."""
SEEN_WITHIN = 60.0
"""Seconds within which every node must see the checkpoint that rank 0 sees."""
WRITTEN_WITHIN = 600.0
"""Seconds that the other ranks wait for rank 0 to write a checkpoint."""


class UnusableError(Exception):
    """The file is not a usable checkpoint of this run. The message gives the reason."""


def write_checkpoint(
    path: Path, position: Position, values: Sequence[NDArray[Any]], fingerprint: str
) -> None:
    """Replace the checkpoint at `path` atomically: it stays complete even if this process is killed."""
    arrays = {f"value_{index}": value for index, value in enumerate(values)}
    # A job may be killed at any moment, also within this write.
    with replacing(path, _temporary(path)) as file:
        place = json.dumps(asdict(position))
        np.savez(file, place=place, fingerprint=fingerprint, **arrays)  # type: ignore[arg-type]


def read_position(path: Path, fingerprint: str) -> Position | None:
    """Return the position in the checkpoint at `path`, or None if there is no file.

    Raises:
        UnusableError: If its fingerprint differs, or if the file cannot be read.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            if str(file["fingerprint"]) != fingerprint:
                raise UnusableError(
                    "it was made by another point, other data or another model"
                )
            known = json.loads(str(file["place"]))
            usage = tuple(map(tuple, known.get("usage", ())))
            tuples = {key: tuple(known[key]) for key in ("losses", "hosts")}
            return Position(**{**known, **tuples, "usage": usage})
    except FileNotFoundError:
        return None
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        EOFError,
        zipfile.BadZipFile,
    ) as error:
        raise UnusableError(f"it cannot be read: {error}") from error


def read_values(path: Path) -> list[NDArray[Any]]:
    """Return the values of all variables, as passed to `write_checkpoint`."""
    with np.load(path, allow_pickle=False) as file:
        return [file[f"value_{index}"] for index in range(len(file.files) - 2)]


def remove_checkpoint(path: Path) -> None:
    """Remove the checkpoint and the temporary file of an interrupted write."""
    path.unlink(missing_ok=True)
    _temporary(path).unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.half")


class Agreed(NamedTuple):
    """The decision of all ranks: `stop` (after a checkpoint), or only `keep` a checkpoint."""

    stop: bool
    keep: bool


class CheckpointConsensus:
    """Makes all ranks stop or write a checkpoint after the same call.

    Ranks agree by a sum over processes. Since this sum takes time, they also agree on the number of calls
    until the next one, from the measured seconds per call. `asked` returns whether to stop; only rank 0's
    answer counts.
    """

    def __init__(
        self,
        asked: Callable[[], bool],
        group: Group,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._asked = asked
        self._group = group
        self._now = now
        self._kept = self._checked = now()
        self._calls = 0
        self._until = 1

    def due(self) -> bool:
        """Count a call. Return whether `within_epoch` must be called now; the same on every rank."""
        self._calls += 1
        if self._calls >= self._until:
            return True
        # Several ranks must not decide by their own clocks.
        alone = self._group.size == 1
        return alone and self._now() - self._checked >= LOOK_EVERY

    def within_epoch(self) -> Agreed:
        """Decide between two calls. Every rank must call this when `due` returns True."""
        pace = (self._now() - self._checked) / max(1, self._calls)
        decision, pace = self._decide(KEEP_WITHIN, pace)
        self._calls = 0
        self._until = max(1, int(ASK_EVERY / max(pace, 1e-9)))
        self._checked = self._now()
        return decision

    def after_epoch(self) -> Agreed:
        """Decide between two epochs. Every rank must call this."""
        return self._decide(KEEP_EVERY, 0.0)[0]

    def _decide(self, keep_every: float, pace: float) -> tuple[Agreed, float]:
        processes = self._group.size
        # Whole nanoseconds below 2^53 are summed exactly, so every rank gets the same sum in any order.
        mine = np.array([0, 0, round(pace * 1e9)], np.float64)
        if self._group.rank == 0:
            mine[:2] = self._asked(), self._now() - self._kept >= keep_every
        if processes > 1:
            mine = self._group.host_sum(mine)
        stop, keep, paces = mine
        decision = Agreed(bool(stop), bool(stop or keep))
        if decision.keep:
            self._kept = self._now()
        return decision, float(paces) / 1e9 / processes


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
                f"scalestudy: {self._folder.checkpoint} is ignored: {error}", flush=True
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
                    self._folder.checkpoint, position, values, self._fingerprint
                )
                # After the checkpoint, so that it never promises one that is not there.
                if decision.stop:
                    self._folder.write_stopped(
                        Stopped(epoch=position.epoch + 1, step=position.step)
                    )
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

    def _await(self, mark: tuple[int, ...], within: float, what: str) -> Position:
        deadline = time.monotonic() + within
        while True:
            position = self.found()
            if position is not None and position.mark == mark:
                return position
            if time.monotonic() > deadline:
                found = "none" if position is None else "another one"
                raise RunError(
                    f"{what} within {within:.0f} s",
                    f"{found} at {self._folder.checkpoint}",
                    "See rank 0's log, and check that all nodes see the same folder.",
                )
            time.sleep(0.05)
