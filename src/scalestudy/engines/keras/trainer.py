"""The base of trainers of Keras models, for every backend of Keras, and a task's callbacks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.config.metric_senses import Sense
from scalestudy.config.point import Point
from scalestudy.data.samples import Call
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.group import Group
from scalestudy.engines.interface import DeviceMark, Flops, Values, Variable
from scalestudy.engines.keras.inference import Evaluation, KerasInference
from scalestudy.engines.keras.layer_context import momentum_of, statistics_of
from scalestudy.engines.keras.model_files import load_weights
from scalestudy.engines.keras.phases import (
    MakeOptimizer,
    bucket_gradients,
    flops_of,
    phases_of,
)
from scalestudy.engines.keras.private import all_layers, settable_rate
from scalestudy.tasks.load import load_task
from scalestudy.tasks.task import DataInfo, Task
from scalestudy.tasks.trial import prove_savable

WATCHING = (
    keras.callbacks.EarlyStopping,
    keras.callbacks.ModelCheckpoint,
    keras.callbacks.ReduceLROnPlateau,
)
"""Keras's callbacks that watch a metric."""


class KerasTrainer:
    """Model and optimizers of one process; see `Trainer`.

    Attributes:
        task: The task, with layers adapted to several workers.
        norms: Its layers of batch normalisation.
        local: Moving statistics, of which each worker has its own values until `average`.

    Args:
        point: The point of the run.
        prepared: The data set.
        rates: Learning rate of each step of the run, shape [steps].
        group: The processes.
        adapt: (model, seed, sync_batch_norm) -> names. Replaces layers whose behaviour would depend on the
            number of workers, and returns the names of layers whose noise still does.
        make: Makes the optimizer of each phase.
        scope: Context in which model and optimizers are created.
        extra: Creates further variables that training changes, in that scope.
        halves: Whether to exchange gradients in two buckets of equal work.
    """

    _evaluation: Evaluation
    _copies: Callable[[Sequence[Any]], list[NDArray[Any]]]
    """The values of variables, each of shape [copies in this process, ...]."""
    _assign_copies: Callable[[Sequence[Any], Sequence[NDArray[Any]]], None]
    _within: Callable[[Any], Any] = staticmethod(lambda call: call)
    """The argument `within` of `KerasInference`."""

    def __init__(
        self,
        point: Point,
        prepared: Prepared,
        rates: NDArray[np.float64],
        group: Group,
        *,
        adapt: Callable[..., list[str]],
        make: Callable[[Task], MakeOptimizer],
        scope: AbstractContextManager[Any] | None = None,
        extra: Callable[[], Sequence[keras.Variable]] = tuple,
        halves: bool = False,
    ) -> None:
        self._group = group
        train = point.train
        self._load = partial(
            load_task, point.task, DataInfo.of(prepared, point.class_weights), train
        )
        self._named = point.task, prepared.input_shape
        # The task as the user's file makes it, for saving: built when it is first needed.
        self._plain: Task | None = None
        with scope or nullcontext():
            self.task = task = self._load()
            apart = adapt(
                task.model, seed=point.seed, sync_batch_norm=train.sync_batch_norm
            )
            others = list(extra())
            self._phases = phases_of(task, rates, point, make(task))
        if apart and point.workers > 1 and group.rank == 0:
            print(
                f"scalestudy: what these draw depends on the number of workers: {', '.join(apart)}"
            )
        self._phase = 0
        task.model.optimizer = self.optimizer
        self._all: list[Any] = list(task.model.variables)
        for phase in self._phases:
            self._all += phase.optimizer.variables
        self._all += others
        self.norms: list[Any] = []
        self.local: list[Any] = []
        for layer in all_layers(task.model):
            if getattr(layer, "keeps_statistics", False):
                self.norms.append(layer)
                self.local += [layer.moving_mean, layer.moving_variance]
        # By identity: variables of Keras compare by value.
        own = {id(variable) for variable in self.local}
        self._common: list[Any] = []
        described = []
        for variable in self._all:
            is_own = id(variable) in own
            described.append(Variable(variable.dtype, tuple(variable.shape), is_own))
            if not is_own:
                self._common.append(variable)
        self.variables: Sequence[Variable] = described
        self.model_suffix = ".pt"
        if isinstance(task.model, keras.Model):
            self.model_suffix = ".keras"
        # The session sets it; a trainer also works without one.
        self.computed: Callable[[], None] = lambda: None
        self.metrics: Sequence[str] = list(task.metrics)
        self.sense = task.sense
        self.parameters: int = task.model.count_params()
        limit = point.launch.bucket_bytes
        self._cuts = [
            bucket_gradients(task.model, phase.variables, limit, halves=halves)
            for phase in self._phases
        ]

    @property
    def phases(self) -> list[int]:
        return [phase.first for phase in self._phases]

    @property
    def optimizer(self) -> Any:
        """The optimizer of the current phase."""
        return self._phases[self._phase].optimizer

    @property
    def has_callbacks(self) -> bool:
        return bool(self.task.callbacks)

    @property
    def rate(self) -> float | None:
        settable = settable_rate(self.optimizer)
        if settable is None:
            return None
        return float(keras.ops.convert_to_numpy(settable.value))

    def enter(self, step: int) -> None:
        for index, phase in enumerate(self._phases):
            if phase.first <= step:
                self._phase = index
        self.task.model.optimizer = self.optimizer

    def set_rate(self, rate: float) -> None:
        self.optimizer.learning_rate = rate

    def mark(self) -> DeviceMark | None:
        return None

    def evaluate(self, call: Call) -> list[Any]:
        return self._evaluation.sums(call)

    def arrays(self, sums: Sequence[Any]) -> list[NDArray[np.float64]]:
        return list(sums)

    def results(self, sums: Sequence[NDArray[np.float64]]) -> dict[str, float]:
        return self._evaluation.results(sums)

    def constant(
        self, targets: Iterable[NDArray[Any]], answer: NDArray[np.float64]
    ) -> float | None:
        return self._evaluation.constant(targets, answer)

    @property
    def momentum(self) -> float | None:
        return max(map(momentum_of, self.norms), default=None)

    @contextmanager
    def with_statistics(self, sums: Sequence[NDArray[np.float64]]) -> Iterator[None]:
        before = self._copies(self.local)
        fresh = []
        for value, copies in zip(statistics_of(sums), before, strict=True):
            if (
                value is None
            ):  # of a layer that is frozen, or that evaluation does not use
                fresh.append(copies)
            else:
                fresh.append(np.broadcast_to(value, copies.shape).astype(copies.dtype))
        self._assign_copies(self.local, fresh)
        try:
            yield
        finally:
            self._assign_copies(self.local, before)

    def weights(self) -> list[list[NDArray[Any]]]:
        """Return the weights of the model, for each copy of it in this process."""
        return [[array_of(weight) for weight in self.task.model.weights]]

    def not_finite(self) -> str | None:
        weights = self.task.model.weights
        for weight, value in zip(weights, self.weights()[0], strict=True):
            if not np.isfinite(np.asarray(value, np.float64)).all():
                return str(weight.path)
        return None

    def values(self) -> Values:
        return Values(
            [array_of(variable) for variable in self._common], self._copies(self.local)
        )

    def assign(self, values: Values) -> None:
        for variable, value in zip(self._common, values.common, strict=True):
            variable.assign(cast(value, variable.dtype))
        self._assign_copies(self.local, values.own)

    def begin_with(self, weights: Sequence[NDArray[Any]]) -> None:
        for variable, value in zip(self.task.model.weights, weights, strict=True):
            variable.assign(cast(value, variable.dtype))

    def share(self) -> None:
        share_values(self._group, self._all)

    def callbacks(self, *, epochs: int, steps: int) -> keras.callbacks.CallbackList:
        """See `Trainer.callbacks`.

        Callbacks that monitor a metric with `mode="auto"` get the better direction from the task. Keras would
        look for it in a compiled model, and fail.
        """
        task = self.task
        modes = {"higher": "max", "lower": "min", None: "auto"}
        for callback in task.callbacks:
            if isinstance(callback, WATCHING) and callback.mode == "auto":
                metric = callback.monitor.removeprefix("val_")
                callback.mode = modes[task.senses.get(metric, Sense(None)).better]
        # Callbacks set it to end the training.
        task.model.stop_training = False
        return keras.callbacks.CallbackList(
            task.callbacks, model=task.model, epochs=epochs, steps=steps, verbose=0
        )

    @property
    def stops(self) -> bool:
        return bool(self.task.model.stop_training)

    def flops(self) -> Flops:
        # Losses of a task's own may call the model any number of times.
        if self.task.training_losses is not None:
            return Flops(None, ("training_losses",))
        return flops_of(self.task.model, self._phases[self._phase].variables)

    def prove_savable(self, path: str) -> None:
        plain = self._as_plain()
        prove_savable(plain.model, path, plain.definitions)

    def save(self, path: str) -> None:
        self._as_plain().model.save(path)

    def restore(self, path: str) -> None:
        if not isinstance(self.task.model, keras.Model):
            self.task.model.restore(path)
            return
        self._plain = self._plain or self._load()
        load_weights(self._plain.model, path, *self._named)
        self.task.model.set_weights(self._plain.model.get_weights())

    def inference(self) -> KerasInference:
        plain = self._as_plain()
        return KerasInference(plain.model, lambda: plain, self._within)

    def _as_plain(self) -> Task:
        """Return the task without adapted layers, with the current weights."""
        self._plain = self._plain or self._load()
        plain = self._plain.model.weights
        for variable, value in zip(plain, self.weights()[0], strict=True):
            variable.assign(value)
        return self._plain


def array_of(variable: Any) -> NDArray[Any]:
    """Return the value of a Keras variable; of several copies, the first."""
    return np.asarray(keras.ops.convert_to_numpy(variable.value))


def share_values(group: Group, variables: Sequence[Any]) -> None:
    """Give every process rank 0's values of Keras variables. Every rank must call this."""
    if group.size == 1 or not variables:
        return
    values = group.share_arrays([array_of(variable) for variable in variables])
    if group.rank:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)


def cast(value: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Restore the type of a value read from a file, where bfloat16 is stored as plain bytes."""
    if value.dtype.kind == "V":
        return value.view(np.dtype(dtype))
    return value
