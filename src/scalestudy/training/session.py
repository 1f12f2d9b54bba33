"""The timed training loop of a run."""

import itertools
import math
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from scalestudy.config.point import Point
from scalestudy.data.loading.slices import Call, Indices, batches, epoch_order
from scalestudy.data.split import Split
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.base import DeviceMark, Engine, Trainer
from scalestudy.engines.group import Group, Joined
from scalestudy.hardware.page_locked import PageLocking
from scalestudy.measure.clock import PhaseClock
from scalestudy.measure.step_times import StepTimes
from scalestudy.measure.usage import Usage
from scalestudy.measure.utilisation import Utilisation
from scalestudy.store.records import EpochRecord
from scalestudy.training.checkpoint import (
    Position,
    digests,
    equal_on_all_ranks,
    fingerprint,
    gathered,
    scattered,
)
from scalestudy.training.evaluation import Measured, measure, statistics_samples, summed
from scalestudy.training.rates import rates_of
from scalestudy.training.reading import loaders
from scalestudy.training.timing import StepTimer


@dataclass(frozen=True)
class Moment:
    """The progress of a run: `epoch`, from 1, with `step` of its `steps`, its samples and seconds so far."""

    epoch: int
    step: int
    steps: int
    samples: int
    seconds: float


class CallInFlight(NamedTuple):
    """A call that was given to a device: its begin and end there, its steps, and the wait for its input."""

    began: DeviceMark
    ended: DeviceMark
    steps: int
    wait: float


IN_FLIGHT = 2
"""Calls that a device is given in advance. More would only hold the memory of more batches."""


class EpochCounters:
    """Counters and timer of one epoch on this process. The timer is paused between `stop` and `start`.

    Calls that return before they are computed are timed by the device. Input then counts as awaited only as
    far as the device was idle meanwhile.

    Attributes:
        step: Steps done.
        samples: Samples processed by all workers together.
        loss: Sum of the losses of this process's workers, over all calls before the last `stop`.
        waited: Part of `seconds` spent waiting for input.

    Args:
        times: Records the duration of every call.
    """

    def __init__(
        self,
        step: int = 0,
        samples: int = 0,
        loss: float = 0.0,
        spent: float = 0.0,
        waited: float = 0.0,
        times: StepTimes | None = None,
    ) -> None:
        self.step, self.samples, self.loss, self.waited = step, samples, loss, waited
        self._spent = spent
        self._pending: list[SupportsFloat] = []
        self._times = times
        self._arrived: float | None = None
        self._started: float | None = None
        self._in_flight: deque[CallInFlight] = deque()
        self._before: DeviceMark | None = None

    @property
    def seconds(self) -> float:
        """Training time so far."""
        return self._spent + (0.0 if self._started is None else time.perf_counter() - self._started)

    def start(self) -> None:
        """Start the timer. The next input is requested now."""
        self._started = self._asked = time.perf_counter()
        self._waited_before = self.waited

    def ask(self) -> None:
        """Mark the moment at which the next input is requested."""
        self._asked = now = time.perf_counter()
        self._account(now)

    def arrived(self) -> None:
        """Mark the moment at which the requested input arrives."""
        self._arrived = now = time.perf_counter()
        self._wait = now - self._asked

    def count(
        self,
        call: Call,
        losses: SupportsFloat,
        began: DeviceMark | None = None,
        ended: DeviceMark | None = None,
    ) -> None:
        """Count a call that was given to the device; `losses` is converted to a number only in `stop`.

        `began` and `ended` mark its place in the work of the device, if it may still be computing. Waits
        until at most `IN_FLIGHT` calls are.
        """
        self._pending.append(losses)
        self._steps = call[0].steps
        if began is None or ended is None:
            self.waited += self._wait
        else:
            self._arrived = None
            self._in_flight.append(CallInFlight(began, ended, self._steps, self._wait))
            while len(self._in_flight) > IN_FLIGHT:
                self._await()
        self.step += call[0].steps
        self.samples += call[0].steps * call[0].total

    def stop(self, clock: PhaseClock) -> None:
        """Wait for the device and stop the timer."""
        self._account(time.perf_counter())
        while self._in_flight:
            self._await()
        self._before = None
        for losses in self._pending:
            self.loss += float(losses)
        self._pending.clear()
        spent, waited = self.seconds - self._spent, self.waited - self._waited_before
        self._spent += spent
        self._started = None
        clock.add("input", waited)
        clock.add("steps", spent - waited)

    def _await(self) -> None:
        """Wait for the earliest call in flight and record its duration, by the device's clock."""
        call = self._in_flight.popleft()
        call.ended.wait()
        idle = math.inf if self._before is None else call.began.seconds_since(self._before)
        waited = min(call.wait, max(idle, 0.0))
        spent = call.ended.seconds_since(call.began)
        if self._before is not None:
            spent = call.ended.seconds_since(self._before) - waited
        self.waited += waited
        if self._times is not None:
            self._times.add(call.steps, spent, waited)
        self._before = call.ended

    def _account(self, now: float) -> None:
        """Record the duration of the call whose input arrived last, once."""
        if self._times is not None and self._arrived is not None:
            self._times.add(self._steps, now - self._arrived, self._wait)
        self._arrived = None


class CallbackDecisions:
    """Runs a task's callbacks on rank 0 only, so that no file is written twice, and shares their decisions.

    After each epoch all ranks receive from rank 0 whether to stop, the learning rate if a callback may set
    it, and the weights, which a callback such as early stopping may have changed. They also receive the
    rate before each epoch, where schedules set it, and the weights before the first epoch, where callbacks
    restore them.
    """

    def __init__(self, trainer: Trainer, group: Group, *, epochs: int, steps: int) -> None:
        self._trainer, self._group = trainer, group
        self._active = trainer.has_callbacks
        called = self._active and group.rank == 0
        self._callbacks = trainer.callbacks(epochs=epochs, steps=steps) if called else None

    def begin(self) -> None:
        """Call `begin` of the callbacks, before training."""
        if self._callbacks:
            self._callbacks.begin()
        if self._active:
            self._agree(stop=False)
            self._share_weights()

    def epoch_begin(self, epoch: int) -> None:
        """Call `epoch_begin` of the callbacks for `epoch`, counted from 0."""
        if self._callbacks:
            self._callbacks.epoch_begin(epoch)
        if self._active:
            self._agree(stop=False)

    def batch_end(self, step: int) -> None:
        """Call `batch_end` of the callbacks, after the call that ends with step `step` of the epoch."""
        if self._callbacks:
            self._callbacks.batch_end(step)

    def epoch_end(self, epoch: int, logs: dict[str, float]) -> bool:
        """Call `epoch_end` of the callbacks. Return whether all ranks must stop."""
        if self._active:
            self._trainer.average()  # callbacks read and may store the weights of all workers
        stop = self._callbacks.epoch_end(epoch, logs) if self._callbacks else False
        if self._active:
            stop = self._agree(stop)
            self._share_weights()
        return stop

    def end(self, logs: dict[str, float]) -> None:
        """Call `end` of the callbacks, after training."""
        if self._callbacks:
            self._callbacks.end(logs)
        if self._active:
            self._share_weights()

    def _agree(self, stop: bool) -> bool:
        rate = self._trainer.rate
        mine = np.zeros(2, np.float64)
        if self._group.rank == 0:
            mine[:] = stop, rate or 0.0
        asked, agreed = self._group.host_sum(mine)
        if rate is not None and self._group.rank != 0:
            self._trainer.set_rate(float(agreed))
        return bool(asked)

    def _share_weights(self) -> None:
        """Give every rank the values of rank 0 if a callback has changed any; most callbacks change none."""
        if self._group.size > 1 and not equal_on_all_ranks(self._trainer, self._group):
            self._trainer.share()


LONGEST_HOST = 255
"""Maximum length of a host name in characters; Linux allows 64."""


class Session:
    """One rank's part of a run: its trainer and the loop over its epochs.

    `utilisation` measures while steps are computed. On GPUs `locking` page-locks the memory of batches.

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
        locking: PageLocking | None = None,
    ) -> None:
        self.point, self.group, self.prepared, self.split = point, joined.group, prepared, split
        self.clock, self._utilisation = clock, utilisation
        self.began = clock.started
        (names,) = self.group.gather([np.array([socket.gethostname().encode()], f"S{LONGEST_HOST}")])
        self.hosts = {name.decode() for name in names.tolist()}
        self.epochs = point.train.epochs
        self.steps = len(list(batches(len(split.train), point.update_batch)))
        with clock.phase("build"):
            self.rates = rates_of(point, self.steps)
            self.trainer = engine.trainer(point, prepared, self.rates, joined)
            self._loader, self._evaluation_loader, self._statistics_loader = loaders(
                point, prepared, joined.replicas, self.steps, self.trainer.stage, locking
            )
        self.evaluated: Callable[[EpochRecord], None] = lambda record: None
        """Called on every rank after each evaluation, while the model still has the evaluated weights."""
        self.epoch = self.updates = self.restarts = 0
        self.elapsed = 0.0
        self._resumed: int | None = None
        self.step_times = StepTimes(joined.group.rank)
        self._tally = EpochCounters(times=self.step_times)
        self._validation: Measured | None = None
        self._evaluating = False
        self.timer = StepTimer(joined.group, self.epochs * self.steps) if point.timing else None
        """Ends a timing run; None for a training."""

    def compile(self) -> None:
        """Run one call of each size and phase, then restore all values, so no epoch includes compilation."""
        with self.clock.phase("compile"):
            before = self.trainer.values()
            rows = list(batches(len(self.split.train), self.point.update_batch))
            sizes = {stop - start: (start, stop) for start, stop in reversed(rows)}
            for first, step in itertools.product(self.trainer.phases, sizes.values()):
                self.clock.heart.enter("compile")
                float(self.trainer.train(self._loader.read(self.split.train, [step], first, epoch=0)))
            self.trainer.assign(before)

    @property
    def metric(self) -> str:
        """Name of the metric that measures quality."""
        return self.trainer.metrics[0]

    @property
    def over(self) -> bool:
        """Whether training is complete."""
        return self.epoch == self.epochs

    def fingerprint(self) -> str:
        """Return the digest that identifies the checkpoints of this run; see `checkpoint.fingerprint`."""
        return fingerprint(self.point, self.split, self.trainer.variables)

    def gpu_percent(self) -> float | None:
        """Return the last measured utilisation of this rank's GPUs in per cent, or None if it is unknown."""
        return self._utilisation.gpu_percent() if self._utilisation else None

    def checkpoint(self) -> tuple[Position, list[NDArray[Any]]]:
        """Return the position of the run and the values of all variables. Every rank must call this."""
        tally = self._tally
        row = self._utilisation.usage().row() if self._utilisation else []
        losses, usage = self.group.gather([np.array([tally.loss]), np.array([row])])
        position = Position(
            epoch=self.epoch,
            step=tally.step,
            updates=self.updates,
            samples=tally.samples,
            losses=tuple(losses.tolist()),
            spent=tally.seconds,
            waited=tally.waited,
            elapsed=self.elapsed,
            restarts=self.restarts,
            wall=self.clock.wall,
            phases=self.clock.phases(),
            usage=tuple(map(tuple, usage.tolist())) if row else (),
            began=self.began,
            hosts=tuple(sorted(self.hosts)),
        )
        return position, gathered(self.trainer, self.group)

    def go_on(self, position: Position, values: list[NDArray[Any]]) -> None:
        """Restore the state that `checkpoint` returned. Every rank must call this, after `compile`."""
        self.trainer.assign(scattered(values, self.trainer, self.group))
        self.epoch, self.updates, self.elapsed = position.epoch, position.updates, position.elapsed
        self.restarts, self._resumed = position.restarts + 1, position.epoch
        loss = position.losses[self.group.rank]
        counted = position.step, position.samples, loss, position.spent, position.waited
        self._tally = EpochCounters(*counted, times=self.step_times)
        self.clock.resume(position.phases, position.wall)
        self.began = position.began
        self.hosts |= set(position.hosts)
        if self._utilisation:
            self._utilisation.resume(position.usage[self.group.rank] if position.usage else ())

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Pause the training timer inside the block, which must lie between two calls of an epoch."""
        self._tally.stop(self.clock)
        yield
        self._tally.start()

    def epoch_records(self, watch: Callable[[Moment], None] = lambda _: None) -> Iterator[EpochRecord]:
        """Train the remaining epochs and yield a record after each, until a callback requests a stop.

        `watch` is called on every rank after each call of the compiled function.
        """
        if self.over:
            return
        callbacks = CallbackDecisions(self.trainer, self.group, epochs=self.epochs, steps=self.steps)
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
                validation = {f"val_{key}": value for key, value in record.validation.items()}
                assert record.loss is not None
                assert record.learning_rate is not None
                logs = {"loss": record.loss, "learning_rate": record.learning_rate, **validation}
                stop = callbacks.epoch_end(epoch, logs)
            self.epoch = self.epochs if stop else epoch + 1
            yield self._validated(record) if stop and not record.validation else record
            if stop:
                break
        with self.clock.phase("callbacks"):
            callbacks.end(logs)

    def validation(self) -> Measured:
        """Return loss and metrics on the validation set after training. Every rank must call this.

        The results of the last epoch are reused, unless callbacks may have changed the weights since.
        """
        known = None if self.trainer.has_callbacks else self._validation
        return known or self.measure(self.split.validation)

    def measure(self, samples: Indices) -> Measured:
        """Return loss, metrics and confusion matrices over `samples`, counted once; same on every rank."""
        with self.evaluating(), self.clock.phase("evaluation"):
            heart = self.clock.heart
            return measure(self.trainer, self.group, self._evaluation_loader, samples, heart)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Let the model be evaluated and saved in the block, with the statistics of `train.batch_norm`.

        Every rank must enter it. Training goes on with the moving statistics, averaged over workers.
        """
        if self._evaluating:
            yield
            return
        trainer = self.trainer
        with ExitStack() as stack:
            with self.clock.phase("evaluation"):
                trainer.average()
                if self.point.train.batch_norm == "fresh" and trainer.momentum is not None:
                    trainer.enter(max(0, self.updates - 1))  # the phase whose layers were trained last
                    samples = statistics_samples(self.split.train, self.point.seed)
                    sums = summed(
                        trainer,
                        trainer.statistics,
                        self.group,
                        self._statistics_loader,
                        samples,
                        self.clock.heart,
                    )
                    stack.enter_context(trainer.with_statistics(sums))
            self._evaluating = True
            stack.callback(self._evaluated)
            yield

    @property
    def initial_statistics(self) -> float | None:
        """Share of their initial values that moving statistics hold, if the model is evaluated with them."""
        momentum = self.trainer.momentum
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
        return "run" if self._utilisation and self._utilisation.whole else "last process"

    def digests(self) -> list[str]:
        """Return a digest of the weights for each copy of the model; all are equal if the workers agree."""
        with self.evaluating():
            return digests(self.trainer, self.group)

    def _epoch(
        self, epoch: int, watch: Callable[[Moment], None], callbacks: CallbackDecisions
    ) -> EpochRecord:
        order, tally = epoch_order(self.split.train, self.point.seed, epoch), self._tally
        heart = self.clock.heart
        heart.step(epoch + 1, tally.step, "input")
        calls = self._loader.epoch(order, tally.step, self.updates - tally.step, epoch=epoch)
        with self._utilisation or nullcontext(), closing(calls):
            tally.start()
            for call in calls:
                tally.arrived()
                heart.enter("step")
                began = self.trainer.mark()
                losses = self.trainer.train(call)
                tally.count(call, losses, began, self.trainer.mark())
                self.updates += call[0].steps
                heart.step(epoch + 1, tally.step, "callbacks")
                callbacks.batch_end(tally.step - 1)
                watch(Moment(epoch + 1, tally.step, self.steps, tally.samples, tally.seconds))
                if self.timer and self.timer.ends(call, losses, self.pause, self._spent):
                    break
                heart.enter("input")
                tally.ask()
            heart.enter("device")
            tally.stop(self.clock)
        self.elapsed += tally.seconds
        with self.clock.phase("exchange"):
            mean = float(self.group.host_sum(np.array([tally.loss]))[0]) / tally.samples
        record = EpochRecord(
            epoch=epoch + 1,
            steps=tally.step,
            samples=tally.samples,
            loss=mean,
            learning_rate=self._rate(),
            train_seconds=tally.seconds,
            input_seconds=tally.waited,
            elapsed_training_seconds=self.elapsed,
            resumed=self._resumed == epoch,
        )
        self.step_times.epoch_end(epoch + 1)
        self._tally = EpochCounters(times=self.step_times)
        return self._validated(record) if self.timer is None and self.is_due(epoch) else record

    def is_due(self, epoch: int) -> bool:
        """Whether the validation set is evaluated after this epoch, counted from 0."""
        return (epoch + 1) % self.point.train.evaluate_every == 0 or epoch + 1 == self.epochs

    def _spent(self) -> float:
        return self.elapsed + self._tally.seconds

    def _validated(self, record: EpochRecord) -> EpochRecord:
        start = time.perf_counter()
        with self.evaluating():
            self._validation = results = self.measure(self.split.validation)
            spent = time.perf_counter() - start
            evaluated = record.model_copy(update={"validation": results.values, "evaluation_seconds": spent})
            self.evaluated(evaluated)
        return evaluated

    def _rate(self) -> float:
        rate = self.trainer.rate
        return float(self.rates[min(self.updates, len(self.rates)) - 1]) if rate is None else rate
