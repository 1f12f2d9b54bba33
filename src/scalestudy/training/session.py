"""The timed training loop of a run."""

import itertools
import math
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from scalestudy.config.point import Point
from scalestudy.data.samples import Indices, batches, epoch_order
from scalestudy.data.split import Split
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.group import Joined
from scalestudy.engines.interface import Engine
from scalestudy.measure.clock import PhaseClock
from scalestudy.measure.utilisation import Usage, Utilisation
from scalestudy.store.records import EpochRecord
from scalestudy.training.agreement import (
    CallbackDecisions,
    digests_of_copies,
    gather,
    scatter,
)
from scalestudy.training.epoch_counters import EpochCounters
from scalestudy.training.position import Position, fingerprint
from scalestudy.training.rates import rates_of
from scalestudy.training.reading import loaders
from scalestudy.training.set_evaluation import (
    measure,
    statistics_samples,
    sum_over_workers,
)
from scalestudy.training.step_timer import StepTimer

LONGEST_HOST = 255
"""Maximum length of a host name in characters; Linux allows 64."""


@dataclass(frozen=True)
class Moment:
    """The progress of a run: `epoch`, from 1, with `step` of its `steps`, its samples and seconds so far."""

    epoch: int
    step: int
    steps: int
    samples: int
    seconds: float


def logs_of(record: EpochRecord) -> dict[str, float]:
    """Return what callbacks read of an epoch, by the names that `fit` of Keras gives them."""
    assert record.loss is not None
    assert record.learning_rate is not None
    logs = {"loss": record.loss, "learning_rate": record.learning_rate}
    for key, value in record.validation.items():
        logs[f"val_{key}"] = value
    return logs


class Session:
    """One rank's part of a run: its trainer and the loop over its epochs.

    `utilisation` measures while steps are computed.

    Attributes:
        clock: Times the phases of the process.
        began: Unix time at which the run's first process of this rank started.
        hosts: Names of the nodes that the run has used.
    """

    def __init__(
        self,
        point: Point,
        engine: Engine,
        joined: Joined,
        prepared: Prepared,
        split: Split,
        clock: PhaseClock,
        utilisation: Utilisation | None = None,
    ) -> None:
        self.point = point
        self.group = joined.group
        self.prepared = prepared
        self.split = split
        self.clock = clock
        self._utilisation = utilisation
        self.began = clock.started
        host = socket.gethostname().encode()
        (names,) = self.group.gather([np.array([host], f"S{LONGEST_HOST}")])
        self.hosts = {name.decode() for name in names.tolist()}
        self.epochs = point.train.epochs
        steps = list(batches(len(split.train), point.update_batch))
        self.steps = len(steps)
        with clock.phase("build"):
            self.rates = rates_of(point, self.steps)
            self.trainer = engine.trainer(point, prepared, self.rates, joined)
            self._loader, self._evaluation_loader, self._statistics_loader = loaders(
                point,
                prepared,
                joined.replicas,
                self.steps,
                self.trainer.stage,
            )
        # A watchdog then tells a rank that stands still from those that wait for it in the exchange.
        self.trainer.computed = clock.heartbeat.exchange
        self.evaluated: Callable[[EpochRecord], None] = lambda record: None
        """Called on every rank after each evaluation, while the model still has the evaluated weights."""
        self.shapes_digest = self.initial_digest = ""
        """Digests of the model before training, on rank 0; see `digests_of_model`."""
        self.epoch = self.updates = self.restarts = 0
        self.elapsed = 0.0
        self._resumed: int | None = None
        self._counters = EpochCounters()
        self._validation: dict[str, float] | None = None
        self._evaluating = False
        self.timer: StepTimer | None = None
        """Ends a timing run; None for a training."""
        if point.timing:
            self.timer = StepTimer(joined.group, self.epochs * self.steps)

    def compile(self) -> None:
        """Run one call of each size and phase, then restore all values, so no epoch includes compilation."""
        with self.clock.phase("compile"):
            before = self.trainer.state.values()
            rows = list(batches(len(self.split.train), self.point.update_batch))
            # Of each size, the first step of the epoch; all but the last have one size.
            sizes = {stop - start: (start, stop) for start, stop in reversed(rows)}
            for first, step in itertools.product(self.trainer.phases, sizes.values()):
                self.clock.heartbeat.enter("compile")
                call = self._loader.read(self.split.train, [step], first, epoch=0)
                losses = self.trainer.train(call)
                # As a number, for which the host waits until it is computed.
                float(losses)
            self.trainer.state.assign(before)

    @property
    def metric(self) -> str:
        """Name of the metric that measures quality."""
        return self.trainer.metrics[0]

    @property
    def over(self) -> bool:
        """Whether training is complete."""
        return self.epoch == self.epochs

    def fingerprint(self) -> str:
        """Return the digest that identifies the checkpoints of this run; see `position.fingerprint`."""
        return fingerprint(self.point, self.split, self.trainer.state.variables)

    def gpu_percent(self) -> float | None:
        """Return the last measured utilisation of this rank's GPUs in per cent, or None if it is unknown."""
        if self._utilisation is None:
            return None
        return self._utilisation.gpu_percent()

    def checkpoint(self) -> tuple[Position, list[NDArray[Any]]]:
        """Return the position of the run and the values of all variables. Every rank must call this."""
        counters = self._counters
        row: list[float] = []
        if self._utilisation is not None:
            row = list(self._utilisation.usage().row())
        losses, usage = self.group.gather([np.array([counters.loss]), np.array([row])])
        usages: tuple[tuple[float, ...], ...] = ()
        if row:
            usages = tuple(map(tuple, usage.tolist()))
        position = Position(
            epoch=self.epoch,
            step=counters.step,
            updates=self.updates,
            samples=counters.samples,
            losses=tuple(losses.tolist()),
            spent=counters.seconds,
            waited=counters.waited,
            elapsed=self.elapsed,
            restarts=self.restarts,
            wall=self.clock.wall,
            phases=self.clock.phases(),
            usage=usages,
            began=self.began,
            hosts=tuple(sorted(self.hosts)),
        )
        return position, gather(self.trainer, self.group)

    def restore(self, position: Position, values: list[NDArray[Any]]) -> None:
        """Restore the state that `checkpoint` returned. Every rank must call this, after `compile`."""
        self.trainer.state.assign(scatter(values, self.trainer, self.group))
        self.epoch = position.epoch
        self.updates = position.updates
        self.elapsed = position.elapsed
        self.restarts = position.restarts + 1
        # Its time is that of two processes, so it is no steady epoch.
        self._resumed = position.epoch
        loss = position.losses[self.group.rank]
        counted = position.step, position.samples, loss, position.spent, position.waited
        self._counters = EpochCounters(*counted)
        self.clock.resume(position.phases, position.wall)
        self.began = position.began
        # A run may continue on other nodes.
        self.hosts |= set(position.hosts)
        if self._utilisation:
            usage: tuple[float, ...] = ()
            if position.usage:
                usage = position.usage[self.group.rank]
            self._utilisation.resume(usage)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Pause the training timer inside the block, which must lie between two calls of an epoch."""
        self._counters.stop(self.clock)
        yield
        self._counters.start()

    def epoch_records(
        self, watch: Callable[[Moment], None] = lambda _: None
    ) -> Iterator[EpochRecord]:
        """Train the remaining epochs and yield a record after each, until a callback requests a stop.

        `watch` is called on every rank after each call of the compiled function.
        """
        if self.over:
            return
        callbacks = CallbackDecisions(
            self.trainer,
            self.group,
            epochs=self.epochs,
            steps=self.steps,
        )
        self.trainer.enter(self.updates)
        with self.clock.phase("callbacks"):
            callbacks.begin()
        logs: dict[str, float] = {}
        for epoch in range(self.epoch, self.epochs):
            self.trainer.enter(self.updates)
            with self.clock.phase("callbacks"):
                callbacks.epoch_begin(epoch)
            record = self._epoch(epoch, watch, callbacks)
            if self.timer and self.timer.over:
                self.epoch = self.epochs
                return
            with self.clock.phase("callbacks"):
                logs = logs_of(record)
                stop = callbacks.epoch_end(epoch, logs)
            if not stop:
                self.epoch = epoch + 1
                yield record
                continue
            self.epoch = self.epochs
            # A result needs the quality of the last epoch, also where only some epochs are evaluated.
            if not record.validation:
                record = self._validated(record)
            yield record
            break
        with self.clock.phase("callbacks"):
            callbacks.end(logs)

    def validation(self) -> dict[str, float]:
        """Return loss and metrics on the validation set after training. Every rank must call this.

        The results of the last epoch are reused, unless callbacks may have changed the weights since.
        """
        if self._validation and not self.trainer.has_callbacks:
            return self._validation
        return self.measure(self.split.validation)

    def measure(self, samples: Indices) -> dict[str, float]:
        """Return loss and metrics over `samples`, counted once; the same on every rank."""
        with self.evaluating(), self.clock.phase("evaluation"):
            heartbeat = self.clock.heartbeat
            return measure(
                self.trainer,
                self.group,
                self._evaluation_loader,
                samples,
                heartbeat,
            )

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Let the model be evaluated and saved in the block, with the statistics of `train.batch_norm`.

        Every rank must enter it. Training goes on with the moving statistics, averaged over workers.
        """
        # Within the block of an outer call, the model has its statistics already.
        if self._evaluating:
            yield
            return
        trainer = self.trainer
        fresh = self.point.train.batch_norm == "fresh"
        # Without moving statistics there is nothing to compute afresh.
        if fresh and trainer.state.momentum is None:
            fresh = False
        with ExitStack() as stack:
            with self.clock.phase("evaluation"):
                # Until now each worker has moved statistics of its own.
                trainer.state.average()
                if fresh:
                    # The phase whose layers were trained last.
                    trainer.enter(max(0, self.updates - 1))
                    samples = statistics_samples(self.split.train, self.point.seed)
                    sums = sum_over_workers(
                        trainer,
                        trainer.statistics,
                        self.group,
                        self._statistics_loader,
                        samples,
                        self.clock.heartbeat,
                    )
                    stack.enter_context(trainer.state.with_statistics(sums))
            self._evaluating = True
            stack.callback(self._evaluated)
            yield

    @property
    def initial_statistics(self) -> float | None:
        """Share of their initial values that moving statistics hold, if the model is evaluated with them."""
        momentum = self.trainer.state.momentum
        if momentum is None or self.point.train.batch_norm == "fresh":
            return None
        return float(momentum**self.updates)

    def _evaluated(self) -> None:
        self._evaluating = False

    def usages(self) -> list[Usage]:
        """Return the resources used by the process of each rank. Every rank must call this."""
        assert self._utilisation
        (rows,) = self.group.gather([np.array([self._utilisation.usage().row()])])
        return [Usage.of(row) for row in rows]

    @property
    def usage_of(self) -> Literal["run", "last process"]:
        """Whether usages include those of the processes before a restart."""
        if self._utilisation and self._utilisation.whole:
            return "run"
        return "last process"

    def digests(self) -> list[str]:
        """Return a digest of the weights for each copy of the model; all are equal if the workers agree."""
        with self.evaluating():
            return digests_of_copies(self.trainer, self.group)

    def _epoch(
        self,
        epoch: int,
        watch: Callable[[Moment], None],
        callbacks: CallbackDecisions,
    ) -> EpochRecord:
        # One permutation for all strategies, engines and numbers of workers.
        order = epoch_order(self.split.train, self.point.seed, epoch)
        counters = self._counters
        heartbeat = self.clock.heartbeat
        heartbeat.step(epoch + 1, counters.step, "input")
        calls = self._loader.epoch(
            order,
            counters.step,
            self.updates - counters.step,
            epoch=epoch,
        )
        # Closing ends the threads that read ahead, also after an error.
        with self._utilisation or nullcontext(), closing(calls):
            counters.start()
            for call in calls:
                counters.arrived()
                heartbeat.enter("step")
                # Marks stand around the call in the device's queue, so that its own clock times it.
                began = self.trainer.mark()
                losses = self.trainer.train(call)
                counters.count(call, losses, began, self.trainer.mark())
                self.updates += call[0].steps
                heartbeat.step(epoch + 1, counters.step, "callbacks")
                callbacks.batch_end(counters.step - 1)
                moment = Moment(
                    epoch + 1,
                    counters.step,
                    self.steps,
                    counters.samples,
                    counters.seconds,
                )
                watch(moment)
                if self.timer and self.timer.ends(
                    call,
                    losses,
                    self.pause,
                    self._spent,
                ):
                    break
                heartbeat.enter("input")
                counters.ask()
            # Only here the host waits for all calls; within the epoch, some are always given in advance.
            heartbeat.enter("device")
            counters.stop(self.clock)
        self.elapsed += counters.seconds
        with self.clock.phase("exchange"):
            (loss,) = self.group.host_sum(np.array([counters.loss])).tolist()
        mean = loss / counters.samples
        not_finite = None
        # Looked for only then: it reads all weights from the device.
        if not math.isfinite(mean) and self.group.rank == 0:
            not_finite = self.trainer.state.not_finite()
        record = EpochRecord(
            epoch=epoch + 1,
            steps=counters.step,
            samples=counters.samples,
            loss=mean,
            not_finite=not_finite,
            learning_rate=self._rate(),
            train_seconds=counters.seconds,
            input_seconds=counters.waited,
            elapsed_training_seconds=self.elapsed,
            resumed=self._resumed == epoch,
        )
        self._counters = EpochCounters()
        # A timing run evaluates after its training, where that takes no time of it.
        if self.timer is None and self.is_due(epoch):
            return self._validated(record)
        return record

    def is_due(self, epoch: int) -> bool:
        """Whether the validation set is evaluated after this epoch, counted from 0."""
        done = epoch + 1
        return done % self.point.train.evaluate_every == 0 or done == self.epochs

    def _spent(self) -> float:
        return self.elapsed + self._counters.seconds

    def _validated(self, record: EpochRecord) -> EpochRecord:
        start = time.perf_counter()
        with self.evaluating():
            self._validation = results = self.measure(self.split.validation)
            spent = time.perf_counter() - start
            evaluated = record.model_copy(
                update={"validation": results, "evaluation_seconds": spent}
            )
            self.evaluated(evaluated)
        return evaluated

    def _rate(self) -> float:
        # None where the rate follows the table.
        rate = self.trainer.rate
        if rate is not None:
            return rate
        last = min(self.updates, len(self.rates)) - 1
        return float(self.rates[last])
