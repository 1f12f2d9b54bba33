"""`scalestudy.workers()`: a user's own script on several workers.

    workers = scalestudy.workers()          # before anything computes
    workers.fit(model, x, y, ...)           # instead of model.fit(x, y, ...)
    if workers.is_chief: ...                # around work for one process only: saving, printing

Start such a script with `scalestudy launch`, srun or mpirun. Started with python, it is a single worker and
`fit` is Keras's own.

A script with its own training loop, like those in PyTorch's tutorials, is measured by three lines:

    for epoch in workers.epochs(10, model):      # instead of `for epoch in range(10)`
        for x, y in loader:
            ...
            workers.count(len(x), loss)          # after each step
        workers.quality("accuracy", right, of)   # after the evaluation

The results of the script do not change.
"""

import atexit
import contextlib
import os
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Literal

import numpy as np
import psutil

from scalestudy.config.objectives import Better
from scalestudy.features.scripts.join import (
    FOLDER,
    SEED,
    Start,
    has_own_loop,
    is_helper,
    loop_session_of,
    session_of,
    start_of,
)
from scalestudy.features.scripts.measured_study import Left, Recording, Tally
from scalestudy.hardware.cores import granted
from scalestudy.launch.failures import failure_of, first_cause
from scalestudy.launch.supervise import cause_of
from scalestudy.measure.clock import PhaseClock
from scalestudy.measure.rank_environment import rank_record
from scalestudy.measure.utilisation import peak_memory
from scalestudy.plugins.engines import engine_traits
from scalestudy.plugins.strategies import traits
from scalestudy.store.run_folder import RunFolder
from scalestudy.util.errors import ScalestudyError, UserError


class LoopWorkers:
    """The workers of a script with its own training loop; returned by `workers`.

    The training time of an epoch lasts from its start to its last `count`, including the work that the device
    still has to finish then, but not the evaluation that follows. The time of the slowest worker counts.

    Attributes:
        rank: Rank of this process, from 0.
        size: Number of workers.
        local_rank: Rank of this process among those of its node.
        is_chief: Whether this is rank 0.
        strategy: Name of the strategy; the script itself combines the gradients.
        device: Device of this process: "cpu", "cuda:1".
        seed: Seed of this run, for the script to use; 0 unless `scalestudy launch` sets it.
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
        if not os.environ.get(FOLDER):  # no supervising process calls finish
            sys.excepthook = self._on_error
            atexit.register(self._at_exit)

    def __repr__(self) -> str:
        return f"<worker {self.rank} of {self.size} ({self.strategy})>"

    def epochs(self, count: int, model: Any = None, *, start: int = 0) -> Iterator[int]:
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
            self.end_epoch()

    def count(self, samples: int, loss: Any = None) -> None:
        """Record a step: the number of samples of this worker, and their mean loss.

        Call it after the optimizer's step. It does not wait for the device, except once at the end of an
        epoch.
        """
        tally = self._tally
        if tally is None:
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
        tally.samples += rows
        tally.steps += 1
        tally.most = max(tally.most, rows)
        if loss is not None:
            tally.loss = (tally.loss or 0.0) + self._session.scalar(loss) * rows
        self._session.mark()
        if self._recording:
            self._recording.step(tally.samples * self.size, tally.steps)

    def quality(self, name: str, value: Any, total: Any = None, *, better: Better | None = None) -> None:
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
            raise UserError('better="higher" or better="lower"', repr(better), "Use one of these.")
        pair = float(value), 1.0 if total is None else float(total)
        if self._recording:
            self._recording.sense(name, better)
        (self._last if self._tally is None else self._tally.qualities)[name] = pair

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        """Pause the timing, for an evaluation in the middle of an epoch."""
        self.pause()
        try:
            yield
        finally:
            self.go_on()

    def lightning_callback(self, quality: str, *, better: Better | None = None) -> Any:
        """Return a callback for Lightning's Trainer that measures its epochs.

        Args:
            quality: Name of a metric that the validation logs.
            better: "higher" or "lower", as in `quality`.
        """
        return self._session.lightning_callback(self, quality, better)

    def transformers_callback(self, quality: str, *, better: Better | None = None) -> Any:
        """Return a callback for the Trainer of transformers that measures its epochs.

        Args:
            quality: Name of a metric of the evaluation, such as "eval_accuracy" or "eval_loss".
            better: "higher" or "lower", as in `quality`.
        """
        return self._session.transformers_callback(self, quality, better)

    def broadcast(self, value: Any) -> Any:
        """Return rank 0's value, of numbers, text, lists and dicts, on every process.

        All processes must call this.
        """
        return self._session.group.share_object(value)

    def barrier(self) -> None:
        """Wait until all processes have called this."""
        self._session.group.host_sum(np.zeros(1))

    def begin(self, count: int, model: Any = None) -> None:
        """Begin a training of `count` epochs. `epochs` calls this and the next four methods."""
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
        self._tally, self._epoch_began = Tally(), time.perf_counter()
        self.go_on()

    def pause(self) -> None:
        """Pause the timing until `go_on`."""
        if self._timed and self._tally is not None:
            seconds, cpu_seconds = self._session.seconds()
            self._tally.seconds += seconds
            self._tally.cpu_seconds += cpu_seconds
            self._timed = False

    def go_on(self) -> None:
        """Resume the timing."""
        self._timed = True
        self._session.begin()

    def end_epoch(self) -> None:
        """End the epoch, after its evaluation."""
        if self._tally is None:
            return
        self.pause()
        tally, self._tally = self._tally, None
        tally.wall = time.perf_counter() - self._epoch_began
        tally.loss = None if tally.loss is None else float(tally.loss)
        if not self._cores_used and self._model is not None:
            tally.digest = self._session.digest(self._model)
        self._communication = self._session.communication()
        self._cores_used.append((tally.cpu_seconds, tally.seconds))
        tallies = self._session.group.to_first(asdict(tally))
        if self._recording and tallies is not None:
            self._recording.epoch([Tally(**values) for values in tallies])

    def finish(self) -> None:
        """Write the result, on rank 0, at the end of the script.

        Raises:
            RunError: The models of the workers differ.
        """
        if self._folder is None or self._finished:
            return
        self._finished = True
        self.end_epoch()
        used, seconds = (sum(pair[place] for pair in self._cores_used) for place in (0, 1))
        session = self._session
        left = Left(
            host=socket.gethostname(),
            qualities=self._last,
            peak_memory=peak_memory(),
            cpu_percent=100 * used / seconds / len(granted()) if seconds else 0.0,
            digest=session.digest(self._model) if self._model is not None else "",
            parameters=session.parameters(self._model) if self._model is not None else None,
            communication=self._communication,
            initial_statistics=None if self._model is None else session.initial_statistics(self._model),
        )
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
            os._exit(error.exit_code)

    def _on_error(self, kind: Any, error: BaseException, trace: Any) -> None:
        """Record an error of the script. Every rank does so; thus the last one knows the first cause."""
        self._failed = True
        sys.__excepthook__(kind, error, trace)
        if self._folder is not None:
            with contextlib.suppress(OSError):
                self._folder.write_cause(cause_of(self.rank, error))
                if first := first_cause(self._folder.causes()):
                    several = len(set(self._start.placement.hosts)) > 1
                    self._folder.write_failure(failure_of(self._folder, first, hosts=several))


Batch = Literal["global", "per-worker"]
RULES = ("none", "linear", "sqrt")


class Workers:
    """The workers of a script that trains with Keras; returned by `workers`.

    Attributes:
        rank: Rank of this process, from 0.
        size: Number of workers. Each computes its rows of every batch.
        local_rank: Rank of this process among those of its node.
        is_chief: Whether this is rank 0, which calls callbacks, prints and saves.
        strategy: Name of the strategy.
    """

    def __init__(self, start: Start) -> None:
        placement = start.placement
        self.rank, self.local_rank, self.size = placement.rank, placement.local_rank, start.workers
        self.is_chief, self.strategy = placement.rank == 0, start.strategy
        self._session = session_of(start) if self.size > 1 else None

    def __repr__(self) -> str:
        return f"<worker {self.rank} of {self.size} ({self.strategy})>"

    def fit(self, model: Any, *data: Any, batch: Batch = "global", **arguments: Any) -> Any:
        """Train like `model.fit(*data, **arguments)`, with the same callbacks, history and results.

        Every worker passes the same arguments and computes its rows of every batch; uneven batches are exact.
        Callbacks run on rank 0, and all workers follow their decisions. Every process returns the history and
        has the trained weights in `model`.

        Args:
            model: Compiled Keras model.
            data: x, y, as in Keras.
            batch: Whether a batch is "global", that of all workers together, so that any number of workers
                computes the same as one; or "per-worker", so that n workers take n times fewer and n times
                larger steps.
            arguments: Other arguments of `model.fit`.

        Raises:
            UserError: The model has its own training step, or the data cannot be divided between workers.
            RunError: The workers read different batches.
        """
        per_worker = _is_per_worker(batch)
        if self._session is None:
            return model.fit(*data, **arguments)
        return self._session.fit(model, *data, per_worker=per_worker, **arguments)

    def evaluate(self, model: Any, *data: Any, batch: Batch = "global", **arguments: Any) -> Any:
        """Evaluate like `model.evaluate(*data, **arguments)`, each sample once; all processes get the result.

        Args:
            model: Compiled Keras model.
            data: x, y, as in Keras.
            batch: As in `fit`.
            arguments: Other arguments of `model.evaluate`.
        """
        per_worker = _is_per_worker(batch)
        if self._session is None:
            return model.evaluate(*data, **arguments)
        return self._session.evaluate(model, *data, per_worker=per_worker, **arguments)

    def predict(self, model: Any, x: Any, **arguments: Any) -> Any:
        """Return the outputs of `model.predict(x, **arguments)` for all samples, on every process."""
        if self._session is None:
            return model.predict(x, **arguments)
        return self._session.predict(model, x, **arguments)

    def scaled(self, rate: float, rule: str = "linear") -> float:
        """Scale the learning rate of one worker's batch to the batch of all workers.

        Use it with `batch="per-worker"`; with a global batch the learning rate stays the same.

        Args:
            rate: Learning rate for one worker.
            rule: "linear" multiplies by the number of workers (Goyal et al. 2017, arXiv:1706.02677; add a
                warm-up), "sqrt" by its square root (Krizhevsky 2014, arXiv:1404.5997), "none" by 1.
        """
        from scalestudy.training.rates import peak_rate

        if rule not in RULES:
            raise UserError(f"one of the rules {', '.join(RULES)}", repr(rule), "Use one of these.")
        return peak_rate(rate, self.size, rule)

    def broadcast(self, value: Any) -> Any:
        """Return rank 0's value, of numbers, text, lists and dicts, on every process.

        All processes must call this.
        """
        return value if self._session is None else self._session.group.share_object(value)

    def barrier(self) -> None:
        """Wait until all processes have called this."""
        if self._session is not None:
            self._session.group.host_sum(np.zeros(1))


_made: list[Workers | LoopWorkers] = []


def workers(strategy: str | None = None) -> Any:
    """Join the workers of this script. Call it once, before TensorFlow computes anything.

    Under `scalestudy launch`, srun or mpirun, the processes find each other here. A script that is started
    with python is a single worker.

    Args:
        strategy: "horovod" or "multiworker", unless `scalestudy launch` sets it. If None, "multiworker", or
            the strategy of the framework whose training loop the script has.

    Returns:
        `LoopWorkers` if the script has its own training loop, like PyTorch scripts, else `Workers`.

    Raises:
        UserError: The strategy cannot be used, or TensorFlow has already computed something.
        RunError: The processes do not find each other.
    """
    if not _made:
        start = start_of(os.environ, strategy, sys.modules)
        _made.append(LoopWorkers(start) if has_own_loop(traits(start.strategy)) else Workers(start))
    return _made[0]


def joined_already() -> bool:
    """Whether the script has called `workers`."""
    return bool(_made)


def finish() -> None:
    """Write the result of a measured script, at its end."""
    for made in _made:
        if isinstance(made, LoopWorkers):
            made.finish()


def _is_per_worker(batch: str) -> bool:
    if batch not in ("global", "per-worker"):
        raise UserError('batch="global" or batch="per-worker"', f"batch={batch!r}", "Write one of them.")
    return batch == "per-worker"
