"""A run, from the first step to the last: the loop over epochs, timed."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from scalestudy.data.loader import Call, Loader
from scalestudy.data.order import Indices, batches, epoch_order
from scalestudy.data.prepared import Prepared
from scalestudy.data.split import Split
from scalestudy.engines.keras.optimizers import make_optimizer
from scalestudy.engines.tensorflow.adapt import adapt
from scalestudy.engines.tensorflow.precision import LossScale
from scalestudy.engines.tensorflow.step import make_train_call, parts_of
from scalestudy.measure.clock import PhaseClock
from scalestudy.measure.utilisation import Utilisation
from scalestudy.strategies.base import Strategy
from scalestudy.study.point import Point
from scalestudy.study.records import EpochRecord
from scalestudy.tasks.base import DataInfo, Task
from scalestudy.tasks.load import load_task
from scalestudy.training import weights
from scalestudy.training.callbacks import Callbacks
from scalestudy.training.checkpoint import Place, fingerprint
from scalestudy.training.evaluate import Evaluator
from scalestudy.training.rates import rate_table, warmup_length
from scalestudy.training.tally import Tally

SMALL_STEP = 2**20
"""Bytes of input below which several steps are computed in one call."""
STEPS_PER_CALL = 8


@dataclass(frozen=True)
class Moment:
    """Where a run is, for those who watch it."""

    epoch: int
    step: int
    steps: int
    samples: int
    seconds: float


def data_info(prepared: Prepared) -> DataInfo:
    """What a task may know of a prepared data set."""
    return DataInfo(prepared.kind, prepared.input_shape, prepared.classes, prepared.ignore)


class Session:
    """Model, optimizer and compiled functions of one rank, and the loop over its epochs.

    Args:
        point: What is run.
        strategy: How the workers combine.
        prepared: The data set.
        split: Which of its rows train, validate and test.
        clock: Where time is counted.
        utilisation: Switched on while training.
    """

    def __init__(
        self,
        point: Point,
        strategy: Strategy,
        prepared: Prepared,
        split: Split,
        clock: PhaseClock,
        utilisation: Utilisation | None = None,
    ) -> None:
        self.point, self.strategy, self.split = point, strategy, split
        self._prepared, self._clock, self._utilisation = prepared, clock, utilisation
        self._inputs, self._targets = prepared.inputs, prepared.targets  # mapped once
        self.epochs = point.train.epochs
        self.steps = len(list(batches(len(split.train), point.global_batch)))
        with clock.phase("build"):
            self._build()
        self.epoch = self.updates = self.restarts = 0
        self.elapsed = 0.0
        self._resumed: int | None = None
        self._tally = Tally()

    def _build(self) -> None:
        point, train, strategy = self.point, self.point.train, self.strategy
        kappa = point.batch_ratio
        self.table = rate_table(
            base=train.learning_rate, kappa=kappa, scaling=train.learning_rate_scaling,
            schedule=train.schedule,
            steps=self.epochs * self.steps,
            warmup=warmup_length(
                warmup_steps=train.warmup_steps, warmup_epochs=train.warmup_epochs,
                steps_per_epoch=self.steps, steps=self.epochs * self.steps,
            ),
        )  # fmt: skip
        with strategy.scope():
            task = load_task(point.task, data_info(self._prepared))
            model = adapt(task.model, seed=point.seed, sync_batch_norm=train.sync_batch_norm)
            self.task = Task(model, task.loss, task.metrics, task.callbacks)
            self.optimizer = make_optimizer(
                train.optimizer, self.table, kappa=kappa, scaling=train.learning_rate_scaling
            )
            self.optimizer.build(model.trainable_variables)
            self.loss_scale = LossScale(train.precision == "mixed_float16")
        model.optimizer = self.optimizer
        self._variables = [variable.value for variable in (*model.variables, *self.optimizer.variables)]
        self._variables += self.loss_scale.variables()
        self._own = weights.per_worker(model)
        self._state = weights.State(self._variables, self._own, strategy)
        strategy.sync_batch_norm = train.sync_batch_norm and bool(self._own)
        strategy.broadcast(self._variables)
        scale = self._prepared.scale
        self._train_call = make_train_call(
            self.task, strategy, self.optimizer, scale=scale, xla=train.xla, loss_scale=self.loss_scale
        )
        self._evaluate = Evaluator(self.task, strategy, scale=scale)
        self._loader = self._make_loader(point.global_batch, self._steps_per_call())
        self._evaluation_loader = self._make_loader(point.per_worker_batch * strategy.replicas, 1)

    def _steps_per_call(self) -> int:
        if self.point.train.steps_per_call is not None:
            return min(self.point.train.steps_per_call, self.steps)
        step = self._inputs[0].nbytes * self.point.global_batch
        return 1 if step > SMALL_STEP else min(STEPS_PER_CALL, self.steps)

    def _make_loader(self, global_batch: int, steps_per_call: int) -> Loader:
        return Loader(
            self._inputs, self._targets,
            slices=self.strategy.slices(), workers=self.strategy.workers,
            global_batch=global_batch, steps_per_call=steps_per_call,
        )  # fmt: skip

    def compile(self) -> None:
        """Compute a call of each size and take it back, so that no epoch is timed with compilation in it."""
        with self._clock.phase("compile"):
            before = weights.snapshot(self._variables)
            rows = list(batches(len(self.split.train), self.point.global_batch))
            sizes = {stop - start: (start, stop) for start, stop in reversed(rows)}
            for step in sizes.values():
                self._run_call(self._loader.read(self.split.train, [step]), 0).numpy()
            weights.restore(self._variables, before)

    @property
    def over(self) -> bool:
        """Whether there is nothing left to train."""
        return self.epoch == self.epochs

    def fingerprint(self) -> str:
        """What tells the checkpoints of this run from those of others."""
        return fingerprint(self.point, self.split, self._variables)

    def checkpoint(self) -> tuple[Place, list[NDArray[Any]]]:
        """Where the run is, and all that it needs to go on; every rank must ask for it."""
        tally, losses = self._tally, np.zeros(self.strategy.processes)
        losses[self.strategy.rank] = tally.loss
        place = Place(
            epoch=self.epoch, step=tally.step, updates=self.updates, samples=tally.samples,
            losses=tuple(self.strategy.host_sum(losses).tolist()), spent=tally.seconds,
            waited=tally.waited, elapsed=self.elapsed, restarts=self.restarts,
            wall=self._clock.wall, phases=self._clock.phases(),
        )  # fmt: skip
        return place, self._state.values()

    def go_on(self, place: Place, values: list[NDArray[Any]]) -> None:
        """Take up what `checkpoint` gave; on every rank, after `compile`."""
        self._state.assign(values)
        self.epoch, self.updates, self.elapsed = place.epoch, place.updates, place.elapsed
        self.restarts, self._resumed = place.restarts + 1, place.epoch
        loss = place.losses[self.strategy.rank]
        self._tally = Tally(place.step, place.samples, loss, place.spent, place.waited)
        self._clock.resume(place.phases, place.wall)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Within, between two calls of an epoch, the training time stands still."""
        self._tally.stop(self._clock)
        yield
        self._tally.start()

    def epoch_records(self, watch: Callable[[Moment], None] = lambda _: None) -> Iterator[EpochRecord]:
        """Train what is left, one record after each epoch; ends early when a callback says so.

        Args:
            watch: Called after each call of the compiled function, on every rank.
        """
        if self.over:
            return
        callbacks = Callbacks(
            self.task.callbacks, self.task.model, self.strategy, epochs=self.epochs, steps=self.steps
        )
        with self._clock.phase("callbacks"):
            callbacks.begin()
        logs: dict[str, float] = {}
        for epoch in range(self.epoch, self.epochs):
            with self._clock.phase("callbacks"):
                callbacks.epoch_begin(epoch)
            record = self._epoch(epoch, watch, callbacks)
            with self._clock.phase("callbacks"):
                validation = {f"val_{key}": value for key, value in record.validation.items()}
                logs = {"loss": record.loss, "learning_rate": record.learning_rate, **validation}
                stop = callbacks.epoch_end(epoch, logs)
                self._share_weights()
            self.epoch = self.epochs if stop else epoch + 1
            yield self._validated(record) if stop and not record.validation else record
            if stop:
                break
        with self._clock.phase("callbacks"):
            callbacks.end(logs)
            self._share_weights()

    def _share_weights(self) -> None:
        """Give all ranks the weights of rank 0, which a callback (early stopping) may have changed."""
        if self.task.callbacks and self.strategy.processes > 1:
            weights.share(self._variables, self.strategy)

    def evaluate(self, samples: Indices) -> dict[str, float]:
        """Loss and metrics over `samples`, each once, the same on every rank."""
        with self._clock.phase("evaluation"):
            self.strategy.average(self._own)
            return self._evaluate(self._evaluation_loader, samples)

    def digests(self) -> list[str]:
        """A digest of the weights for each copy of the model; equal if the workers agree."""
        self.strategy.average(self._own)
        return weights.digests(self.task.model, self.strategy)

    def save(self, path: str) -> None:
        """Save the model as a plain Keras model, free of this package's layers."""
        with self._clock.phase("saving"):
            plain: keras.Model = load_task(self.point.task, data_info(self._prepared)).model
            plain.set_weights([self.strategy.copies(weight.value)[0] for weight in self.task.model.weights])
            plain.save(path)

    def _epoch(self, epoch: int, watch: Callable[[Moment], None], callbacks: Callbacks) -> EpochRecord:
        order, tally = epoch_order(self.split.train, self.point.seed, epoch), self._tally
        calls = self._loader.epoch(order, tally.step)
        with self._utilisation or nullcontext():
            tally.start()
            for call in calls:
                tally.arrived()
                tally.count(call, self._run_call(call, self.updates))
                self.updates += call.steps
                callbacks.batch_end(tally.step - 1)
                watch(Moment(epoch + 1, tally.step, self.steps, tally.samples, tally.seconds))
                tally.ask()
            tally.stop(self._clock)
        self.elapsed += tally.seconds
        with self._clock.phase("exchange"):
            mean = float(self.strategy.host_sum(np.array([tally.loss]))[0]) / tally.samples
        record = EpochRecord(
            epoch=epoch + 1, steps=tally.step, samples=tally.samples, loss=mean,
            learning_rate=float(self._rate()), train_seconds=tally.seconds, input_seconds=tally.waited,
            elapsed_training_seconds=self.elapsed, resumed=self._resumed == epoch,
        )  # fmt: skip
        self._tally = Tally()
        due = (epoch + 1) % self.point.train.evaluate_every == 0 or epoch + 1 == self.epochs
        return self._validated(record) if due else record

    def _validated(self, record: EpochRecord) -> EpochRecord:
        start = time.perf_counter()
        results = self.evaluate(self.split.validation)
        spent = time.perf_counter() - start
        return record.model_copy(update={"validation": results, "evaluation_seconds": spent})

    def _run_call(self, call: Call, first: int) -> Any:
        return self._train_call(parts_of(call), tf.constant(call.steps), tf.constant(first, tf.int64))

    def _rate(self) -> float:
        schedule = self.optimizer._learning_rate
        if isinstance(schedule, keras.optimizers.schedules.LearningRateSchedule):
            return float(self.table[min(self.updates, len(self.table)) - 1])
        return float(schedule.value.numpy())
