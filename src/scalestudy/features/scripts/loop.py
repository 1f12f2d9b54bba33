"""`scalestudy.workers()` in a script with a training loop of its own, which is measured in three lines.

A script as PyTorch's tutorials have it:

    for epoch in workers.epochs(10, model):      # instead of `for epoch in range(10)`
        for x, y in loader:
            ...
            workers.count(len(x), loss)          # after each step
        workers.quality("accuracy", right, of)   # after the evaluation

Nothing of what it computes changes.
"""

import atexit
import contextlib
import os
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import psutil

from scalestudy.features.scripts.detect import is_helper
from scalestudy.features.scripts.join import FOLDER, SEED, Start, loop_session_of
from scalestudy.features.scripts.recording import Left, Recording, Tally
from scalestudy.hardware.cores import granted
from scalestudy.launch.failures import failure_of, first_cause
from scalestudy.launch.supervise import cause_of
from scalestudy.measure.clock import PhaseClock
from scalestudy.measure.environment import rank_record
from scalestudy.measure.utilisation import peak_memory
from scalestudy.study.engines import engine_traits
from scalestudy.study.metrics import Better
from scalestudy.study.run_folder import RunFolder
from scalestudy.study.strategies import traits
from scalestudy.util.errors import ScalestudyError, UserError


class LoopWorkers:
    """The workers of a script with a loop of its own, as this process sees them.

    Each epoch's training is timed from its begin to its last `count`, once the device has done what it was
    given until then; what follows, the evaluation, is outside. The slowest worker's time counts.

    Attributes:
        rank: Of this process, from 0.
        size: Workers.
        local_rank: Of this process among those of its node.
        is_chief: Whether this is rank 0.
        strategy: How the workers combine their gradients, which is the script's own part.
        device: What this process computes on: "cpu", "cuda:1".
        seed: Of this run, for the script to set; 0 where `scalestudy launch` has not said.
    """

    def __init__(self, start: Start) -> None:
        placement = start.placement
        self.rank, self.local_rank, self.size = placement.rank, placement.local_rank, placement.size
        self.is_chief, self.strategy = placement.rank == 0, start.strategy
        self.seed = int(os.environ.get(SEED) or 0)
        self._clock = PhaseClock(psutil.Process().create_time())
        self._helper = is_helper()
        self._session = loop_session_of(start, alone=self._helper)
        self.device: str = self._session.device
        self._start = start
        self._recording: Recording | None = None
        self._model: Any = None
        self._tally: Tally | None = None
        self._last: dict[str, tuple[float, float]] = {}
        self._timed = self._finished = self._failed = False
        self._folder: RunFolder | None = None
        self._communication: str | None = None
        self._cores_used: list[tuple[float, float]] = []
        if not os.environ.get(FOLDER):  # nobody watches this process, who would call finish
            sys.excepthook = self._on_error
            atexit.register(self._at_exit)

    def __repr__(self) -> str:
        return f"<worker {self.rank} of {self.size} ({self.strategy})>"

    def epochs(self, count: int, model: Any = None, *, start: int = 0) -> Iterator[int]:
        """The numbers of so many epochs, each of which is measured; breaking off is fine.

        Args:
            count: Epochs in all.
            model: Whose parameters are counted, and compared over the workers at the end.
            start: The first, of a script that goes on from a checkpoint.
        """
        self.begin(count - start, model)
        for epoch in range(start, count):
            self.begin_epoch()
            yield epoch
            self.end_epoch()

    def count(self, samples: int, loss: Any = None) -> None:
        """A step is done: this worker has processed so many samples, with this mean loss.

        Call it after the optimizer's step; what the device still computes is waited for once an epoch.
        """
        tally = self._open_tally("count")
        tally.samples += int(samples)
        tally.steps += 1
        tally.most = max(tally.most, int(samples))
        if loss is not None:
            tally.loss = (tally.loss or 0.0) + self._session.scalar(loss) * int(samples)
        self._session.mark()
        if self._recording:
            self._recording.step(tally.samples * self.size, tally.steps)

    def quality(self, name: str, value: Any, total: Any = None, *, better: Better | None = None) -> None:
        """What the script has evaluated, on this worker; the first name is that of the quality.

        Args:
            name: Of the metric: "accuracy".
            value: With `total`, the numerator on this worker, as how many were right; without, the metric.
            total: The denominator: both are summed over the workers that give them. Without it, the mean
                over these workers is taken.
            better: "higher" or "lower", where the name does not say.
        """
        if better not in (None, "higher", "lower"):
            raise UserError('better="higher" or better="lower"', repr(better), "Use one of these.")
        pair = float(value), 1.0 if total is None else float(total)
        if self._recording:
            self._recording.sense(name, better)
        (self._last if self._tally is None else self._tally.qualities)[name] = pair

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        """Within, nothing is timed: for an evaluation in the middle of an epoch."""
        self.pause()
        try:
            yield
        finally:
            self.go_on()

    def lightning_callback(self, quality: str, *, better: Better | None = None) -> Any:
        """A callback for Lightning's Trainer, whose epochs are measured.

        Args:
            quality: A metric that its validation logs.
            better: As in `quality`.
        """
        return self._session.lightning_callback(self, quality, better)

    def broadcast(self, value: Any) -> Any:
        """What rank 0 has, on every process: anything that can be pickled. All must ask."""
        return self._session.group.share_object(value)

    def barrier(self) -> None:
        """Wait until all processes have come so far. All must ask."""
        self._session.group.host_sum(np.zeros(1))

    def begin(self, count: int, model: Any = None) -> None:
        """Training begins, of so many epochs: `epochs` calls it, with the four that follow."""
        if self._helper:
            raise UserError(
                "epochs() in a process started by torchrun or `scalestudy launch`",
                "a process started by the script itself",
                "Write the script for torchrun: remove multiprocessing.spawn, and use RANK.",
            )
        group = self._session.group
        self._model = model
        if self.is_chief and self._folder is None:
            self._recording = Recording(self._start, self.seed, count, self._clock)
        path = group.share_object(str(self._recording.run.path) if self._recording else None)
        self._folder = RunFolder(path)
        record = rank_record(
            self._start.placement, engine_traits(traits(self.strategy).engine),
            threads=self._session.threads, devices=self._session.devices(),
            build=self._session.build_record(),
        )  # fmt: skip
        self._folder.write_rank(record)

    def begin_epoch(self) -> None:
        """An epoch begins, and with it its training; one that was under way is over."""
        self.end_epoch()
        self._tally, self._epoch_began = Tally(), time.perf_counter()
        self.go_on()

    def pause(self) -> None:
        """Training stands still until `go_on`."""
        if self._timed and self._tally is not None:
            seconds, cpu_seconds = self._session.seconds()
            self._tally.seconds += seconds
            self._tally.cpu_seconds += cpu_seconds
            self._timed = False

    def go_on(self) -> None:
        """Training goes on."""
        self._timed = True
        self._session.begin()

    def end_epoch(self) -> None:
        """The epoch is over, its evaluation too; the next has not begun."""
        if self._tally is None:
            return
        self.pause()
        tally, self._tally = self._tally, None
        tally.wall = time.perf_counter() - self._epoch_began
        tally.loss = None if tally.loss is None else float(tally.loss)
        self._communication = self._session.communication()
        self._cores_used.append((tally.cpu_seconds, tally.seconds))
        tallies = self._session.group.to_first(asdict(tally))
        if self._recording and tallies is not None:
            self._recording.epoch([Tally(**values) for values in tallies])

    def finish(self) -> None:
        """The script is over: rank 0 writes the result.

        Raises:
            RunError: If the workers' models differ.
        """
        if self._folder is None or self._finished:
            return
        self._finished = True
        self.end_epoch()
        used, seconds = (sum(pair[place] for pair in self._cores_used) for place in (0, 1))
        session = self._session
        left = Left(
            host=socket.gethostname(), qualities=self._last, peak_memory=peak_memory(),
            cpu_percent=100 * used / seconds / len(granted()) if seconds else 0.0,
            digest=session.digest(self._model) if self._model is not None else "",
            parameters=session.parameters(self._model) if self._model is not None else None,
            communication=self._communication,
        )  # fmt: skip
        everyone = session.group.to_first(asdict(left))
        if self._recording and everyone is not None:
            self._recording.result([Left(**values) for values in everyone])

    def _open_tally(self, name: str) -> Tally:
        if self._tally is None:
            raise UserError(
                f"workers.{name} within an epoch",
                "no epoch in progress",
                "Write `for epoch in workers.epochs(10):` around the steps.",
            )
        return self._tally

    def _at_exit(self) -> None:
        """At the end of a script that Python runs by itself: no error, no `os._exit`, as far as it tells."""
        if self._failed:
            return
        try:
            self.finish()
        except ScalestudyError as error:
            print(f"scalestudy: {error}", file=sys.stderr, flush=True)
            os._exit(error.exit_code)

    def _on_error(self, kind: Any, error: BaseException, trace: Any) -> None:
        """The script has raised; every rank that does says so, and so the last knows the first cause."""
        self._failed = True
        sys.__excepthook__(kind, error, trace)
        if self._folder is not None:
            with contextlib.suppress(OSError):
                self._folder.write_cause(cause_of(self.rank, error))
                if first := first_cause(self._folder.causes()):
                    several = len(set(self._start.placement.hosts)) > 1
                    self._folder.write_failure(failure_of(self._folder, first, hosts=several))
