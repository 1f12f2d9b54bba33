"""`scalestudy.workers()`: a user's own script on several workers, measured by a few lines.

    workers = scalestudy.workers()
    for epoch in workers.epochs(10, model):      # instead of `for epoch in range(10)`
        for x, y in loader:
            ...
            workers.count(len(x), loss)          # after each step
        workers.quality("accuracy", right, of)   # after the evaluation

Start it with `scalestudy launch`, torchrun or srun; started with python, it is a single worker. The results
of the script do not change. A Keras script has one line more, in `fit`, and is measured only by `scalestudy
launch`:

    model.fit(..., callbacks=[scalestudy.workers().keras_callback("val_accuracy")])
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

import psutil

from scalestudy.config.metric_senses import Better
from scalestudy.features.launch.join import (
    FOLDER,
    SEED,
    Start,
    is_helper,
    session_of,
    start_of,
)
from scalestudy.features.launch.recording import EpochCounts, Left, Recording
from scalestudy.hardware.cores import granted
from scalestudy.launch.failures import failure_of, first_cause
from scalestudy.launch.supervise import cause_of
from scalestudy.measure.clock import PhaseClock
from scalestudy.measure.rank_environment import rank_record
from scalestudy.measure.utilisation import peak_memory
from scalestudy.plugins.engines import engine_traits
from scalestudy.plugins.strategies import SCRIPT_STRATEGY, traits
from scalestudy.store.run_folder import RunFolder
from scalestudy.util.errors import ScalestudyError, UserError


class Workers:
    """The workers of a script; returned by `workers`.

    The training time of an epoch lasts from its start to its last `count`, including the work that the device
    still has to finish then, but not the evaluation that follows. The time of the slowest worker counts.

    Attributes:
        rank: Rank of this process, from 0.
        size: Number of workers; a process of `mirrored` has all of them.
        processes: Number of processes of the run.
        local_rank: Rank of this process among those of its node.
        is_chief: Whether this is rank 0.
        strategy: Name of the strategy; the script itself combines the gradients.
        device: Device of this process: "cpu", "cuda:1".
        seed: Seed of this run, for the script to use; 0 unless `scalestudy launch` sets it.
        measured: Whether this run is recorded.
    """

    def __init__(self, start: Start) -> None:
        placement = start.placement
        self.rank = placement.rank
        self.local_rank = placement.local_rank
        self.size = start.workers
        self.processes = placement.size
        self.is_chief = placement.rank == 0
        self.strategy = start.strategy
        self.measured = start.launched or start.strategy == SCRIPT_STRATEGY
        self.seed = int(os.environ.get(SEED) or 0)
        self._start = start
        # From the start of the process: the imports of a script are part of its wall time.
        self._clock = PhaseClock(psutil.Process().create_time())
        # A process that loads data imports the script again, and must not wait for other workers to join it.
        self._helper = is_helper()
        self._session = session_of(start, alone=self._helper)
        self.device: str = self._session.device
        self._recording: Recording | None = None
        self._model: Any = None
        self._counts: EpochCounts | None = None
        self._last: dict[str, tuple[float, float]] = {}
        self._timed = False
        self._finished = False
        self._failed = False
        self._folder: RunFolder | None = None
        self._communication: str | None = None
        self._cores_used: list[tuple[float, float]] = []
        # No supervising process calls `finish` under torchrun or srun, nor where Python runs the script itself.
        if not os.environ.get(FOLDER):
            sys.excepthook = self._on_error
            atexit.register(self._at_exit)

    def __repr__(self) -> str:
        return f"<worker {self.rank} of {self.size} ({self.strategy})>"

    def epochs(
        self,
        count: int,
        model: Any = None,
        *,
        start: int = 0,
    ) -> Iterator[int]:
        """Iterate over the indices of epochs, and measure each. The loop may end early.

        Args:
            count: Total number of epochs.
            model: Model whose parameters are counted, and compared between workers at the end.
            start: First epoch, for a script that continues from a checkpoint.
        """
        self.begin(count - start, model)
        for epoch in range(start, count):
            self.begin_epoch()
            yield epoch
            # A loop that is left early does not come here: `finish` ends its epoch.
            self.end_epoch()

    def count(self, samples: int, loss: Any = None) -> None:
        """Record a step: the number of samples of this worker, and their mean loss.

        Call it after the optimizer's step. It does not wait for the device, except once at the end of an
        epoch.
        """
        counts = self._counts
        if counts is None:
            raise UserError(
                "workers.count within an epoch",
                "no epoch in progress",
                "Write `for epoch in workers.epochs(10):` around the steps.",
            )
        rows = int(samples)
        if rows < 0:
            raise UserError(
                "the number of samples of a step, 0 or more",
                f"workers.count({samples!r})",
                "Count the rows of the batch, as in workers.count(len(inputs)).",
            )
        counts.samples += rows
        counts.steps += 1
        counts.most = max(counts.most, rows)
        if loss is not None:
            # As a sum over samples: the mean of batches would count those of a smaller last batch more.
            counts.loss = (counts.loss or 0.0) + self._session.scalar(loss) * rows
        self._session.mark()
        self.progress(counts.samples, counts.steps)

    def count_steps(
        self,
        samples: int,
        steps: int,
        *,
        largest: int,
        loss: float | None,
        shared: bool = False,
    ) -> None:
        """Record all steps of an epoch at once, for a callback: samples, the largest step, the mean loss.

        If `shared`, these are of all processes, whose strategy does not tell them apart.
        """
        counts = self._counts
        assert counts is not None
        counts.samples = samples
        counts.most = largest
        if shared:
            # Each process takes its part, so that the sum over all is again the number of samples.
            first = self.rank * samples // self.processes
            last = (self.rank + 1) * samples // self.processes
            counts.samples = last - first
            counts.most = -(-largest // self.processes)
        counts.steps = steps
        counts.shared = shared
        counts.loss = None
        if loss is not None:
            counts.loss = loss * counts.samples
        self._session.mark()

    def progress(self, samples: int, steps: int) -> None:
        """Show the progress of an epoch: this process's samples and steps so far."""
        if self._recording:
            self._recording.step(samples * self.processes, steps)

    def quality(
        self,
        name: str,
        value: Any,
        total: Any = None,
        *,
        better: Better | None = None,
    ) -> None:
        """Record a metric of this worker's evaluation. The first metric is the quality.

        Args:
            name: Name of the metric, such as "accuracy".
            value: Numerator on this worker, such as the number of correct samples; without `total`, the
                metric itself.
            total: Denominator on this worker. Both are summed over the workers that record them. If None,
                the mean over these workers is taken.
            better: "higher" or "lower", if the name does not imply it.
        """
        if better not in (None, "higher", "lower"):
            raise UserError(
                'better="higher" or better="lower"',
                repr(better),
                "Use one of these.",
            )
        numerator = float(value)
        denominator = 1.0
        if total is not None:
            denominator = float(total)
        if self._recording:
            self._recording.sense(name, better)
        # After the loop over epochs there is none in progress: the value is that of the final model.
        qualities = self._last
        if self._counts is not None:
            qualities = self._counts.qualities
        qualities[name] = (numerator, denominator)

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        """Pause the timing, for an evaluation in the middle of an epoch."""
        self.pause()
        try:
            yield
        finally:
            self.resume_timing()

    def lightning_callback(self, quality: str, *, better: Better | None = None) -> Any:
        """Return a callback for Lightning's Trainer that measures its epochs.

        Args:
            quality: Name of a metric that the validation logs.
            better: "higher" or "lower", as in `quality`.
        """
        callback = self._callback("lightning_callback", "PyTorch")
        return callback(self, quality, better)

    def keras_callback(
        self,
        quality: str,
        *,
        better: Better | None = None,
        batch_size: int | None = None,
    ) -> Any:
        """Return a `keras.callbacks.Callback` for `model.fit` that measures its epochs.

        A script that `scalestudy launch` has not started runs as without it.

        Args:
            quality: Name of a metric that `fit` logs, such as "val_accuracy".
            better: "higher" or "lower", as in `quality`.
            batch_size: Samples of a step of this process. Keras counts them, unless the model has its own
                `train_step`.
        """
        callback = self._callback("keras_callback", "Keras")
        return callback(self, quality, better, batch_size)

    def _callback(self, name: str, framework: str) -> Any:
        # The session of an engine has the callbacks of its own frameworks.
        made = getattr(self._session, name, None)
        if made is None:
            raise UserError(
                f"a script of {framework} for {name}",
                f"one that was started under the strategy {self.strategy}",
                "Call the callback of its own framework, or name its strategy with --strategy.",
            )
        return made

    def begin(self, count: int, model: Any = None) -> None:
        """Begin a training of `count` epochs. `epochs` calls this and the next four methods."""
        if not self.measured:
            return
        if self._helper:
            raise UserError(
                "epochs() in a process started by torchrun or `scalestudy launch`",
                "a process started by the script itself",
                "Write the script for torchrun: remove multiprocessing.spawn, and use RANK.",
            )
        group = self._session.group
        self._model = model
        if self.is_chief and self._folder is None:
            self._recording = Recording.begin(
                self._start,
                self.seed,
                count,
                self._clock,
            )
        own_path = None
        if self._recording:
            own_path = str(self._recording.run.path)
        # Only rank 0 has made the folder, whose name has a number that the others cannot know.
        path = group.share_object(own_path)
        self._folder = RunFolder(path)
        record = rank_record(
            self._start.placement,
            engine_traits(traits(self.strategy).engine),
            threads=self._session.threads,
            devices=self._session.devices(),
            build=self._session.build_record(),
        )
        self._folder.write_rank(record)

    def begin_epoch(self) -> None:
        """Begin an epoch and its timing, and end the previous one."""
        self.end_epoch()
        self._counts = EpochCounts()
        self._epoch_began = time.perf_counter()
        self.resume_timing()

    def pause(self) -> None:
        """Pause the timing until `resume_timing`."""
        if self._timed and self._counts is not None:
            seconds, cpu_seconds = self._session.seconds()
            self._counts.seconds += seconds
            self._counts.cpu_seconds += cpu_seconds
            self._timed = False

    def resume_timing(self) -> None:
        """Resume the timing."""
        self._timed = True
        self._session.begin()

    def end_epoch(self) -> None:
        """End the epoch, after its evaluation."""
        if self._counts is None:
            return
        self.pause()
        counts = self._counts
        self._counts = None
        counts.wall = time.perf_counter() - self._epoch_began
        # A loss may be a tensor on the device until here, so that no step waits for it.
        if counts.loss is not None:
            counts.loss = float(counts.loss)
        # By these, rank 0 judges the first epoch alone.
        if not self._cores_used:
            counts.joined = self._session.joined(self._model)
            if self._model is not None:
                counts.digest = self._session.digest(self._model)
        self._communication = self._session.communication()
        self._cores_used.append((counts.cpu_seconds, counts.seconds))
        by_rank = self._session.group.to_first(asdict(counts))
        if self._recording and by_rank is not None:
            self._recording.epoch([EpochCounts(**values) for values in by_rank])

    def finish(self) -> None:
        """Write the result, on rank 0, at the end of the script.

        Raises:
            RunError: The models of the workers differ.
        """
        # Without any epoch, nothing was measured.
        if self._folder is None or self._finished:
            return
        self._finished = True
        self.end_epoch()
        used = 0.0
        seconds = 0.0
        for cpu_seconds, training_seconds in self._cores_used:
            used += cpu_seconds
            seconds += training_seconds
        cpu_percent = 0.0
        if seconds:
            cpu_percent = 100 * used / seconds / len(granted())
        session = self._session
        left = Left(
            host=socket.gethostname(),
            qualities=self._last,
            peak_memory=peak_memory(),
            cpu_percent=cpu_percent,
            digest="",
            parameters=None,
            communication=self._communication,
        )
        if self._model is not None:
            left.digest = session.digest(self._model)
            left.parameters = session.parameters(self._model)
        everyone = session.group.to_first(asdict(left))
        if self._recording and everyone is not None:
            self._recording.result([Left(**values) for values in everyone])

    def _at_exit(self) -> None:
        """Finish a script that Python has started directly and that has ended without an error."""
        if self._failed:
            return
        try:
            self.finish()
        except ScalestudyError as error:
            print(f"scalestudy: {error}", file=sys.stderr, flush=True)
            # `sys.exit` would have no effect here: Python has already chosen its exit code.
            os._exit(error.exit_code)

    def _on_error(
        self,
        kind: Any,
        error: BaseException,
        trace: Any,
    ) -> None:
        """Record an error of the script. Every rank does so; thus the last one knows the first cause."""
        self._failed = True
        sys.__excepthook__(kind, error, trace)
        if self._folder is None:
            return
        # The error has been printed: that it cannot be recorded, on a full disk, must not add another.
        with contextlib.suppress(OSError):
            self._folder.write_cause(cause_of(self.rank, error))
            first = first_cause(self._folder.causes())
            if first:
                several = len(set(self._start.placement.hosts)) > 1
                failure = failure_of(self._folder, first, hosts=several)
                self._folder.write_failure(failure)


_made: list[Workers] = []
"""The workers of this process, once they have been asked for."""


def workers() -> Workers:
    """Join the workers of this script. A further call returns the same object.

    Under `scalestudy launch`, torchrun or srun, the processes find each other here. A script that is started
    with python is a single worker.

    Raises:
        UserError: The script trains with no framework that can be measured.
        RunError: The processes do not find each other.
    """
    if not _made:
        _made.append(Workers(start_of(os.environ, sys.modules)))
    return _made[0]


def finish() -> None:
    """Write the result of a measured script, at its end."""
    for made in _made:
        made.finish()
