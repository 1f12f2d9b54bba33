"""One process's part of a run, computed by TensorFlow."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, SupportsFloat

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.data.loading.slices import Call, Slice
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.base import Bucket, Flops, Values, Variable
from scalestudy.engines.buckets import in_buckets
from scalestudy.engines.group import Joined
from scalestudy.engines.keras.callbacks import KerasCallbacks, refuse_moving_averages
from scalestudy.engines.keras.layers import kept, multiply_adds
from scalestudy.engines.keras.model_files import load_model, other_model
from scalestudy.engines.keras.optimizers import make_optimizer
from scalestudy.engines.keras.private import all_layers, settable_rate, take_summed
from scalestudy.engines.tensorflow.augment import Augmentation
from scalestudy.engines.tensorflow.evaluation import Evaluation
from scalestudy.engines.tensorflow.inference import TensorFlowInference
from scalestudy.engines.tensorflow.layers import BatchNorm, adapt
from scalestudy.engines.tensorflow.setup import explained
from scalestudy.engines.tensorflow.staging import stage
from scalestudy.engines.tensorflow.step import LossScale, make_train_call
from scalestudy.engines.tensorflow.strategies.replicas import tensors
from scalestudy.study.metrics import Sense
from scalestudy.study.point import Point
from scalestudy.tasks.base import DataInfo, Task
from scalestudy.tasks.load import load_task
from scalestudy.tasks.saving import prove_savable
from scalestudy.util.errors import UserError


@dataclass(frozen=True)
class Phase:
    """Steps in which the same layers learn.

    Attributes:
        first: Step of the run that it begins with, from 0.
        frozen: Names of the layers that stay as they are.
        optimizer: Its own, built: as in Keras's guide to fine-tuning, the next phase begins with a fresh one.
        variables: What it trains.
    """

    first: int
    frozen: tuple[str, ...]
    optimizer: keras.Optimizer
    variables: list[keras.Variable]


def phases(task: Task, rates: NDArray[np.float64], point: Point) -> list[Phase]:
    """The phases of a run, one unless pretrained layers are frozen first.

    Args:
        task: Its model, and which layers were trained before.
        rates: Learning rate of each step of the run, shape [steps].
        point: What is run.
    """
    train = point.train
    first = min(train.frozen_epochs, train.epochs) * (len(rates) // train.epochs)
    found = []
    if first:
        found.append(_phase(task, rates[:first], point, 0, task.pretrained))
    if first < len(rates):
        found.append(_phase(task, rates[first:], point, first, ()))
    return found


def phase_of(firsts: Sequence[int], step: int) -> int:
    """Index of the phase that a step of the run belongs to; `firsts` are their first steps."""
    return max(index for index, first in enumerate(firsts) if first <= step)


def sizes(variables: Sequence[keras.Variable]) -> list[int]:
    """Bytes of each variable's gradient."""
    values = [variable.value for variable in variables]
    return [value.shape.num_elements() * value.dtype.size for value in values]


def _phase(
    task: Task, rates: NDArray[np.float64], point: Point, first: int, frozen: tuple[str, ...]
) -> Phase:
    train = point.train
    optimizer: Any = make_optimizer(
        train.optimizer, rates,
        kappa=point.batch_ratio, scaling=train.learning_rate_scaling, clip_norm=train.clip_norm,
    )  # fmt: skip
    take_summed(optimizer)
    with kept(task.model, frozen):
        variables = task.trained
    optimizer.build(variables)
    return Phase(first, frozen, optimizer, variables)


class TensorFlowTrainer:
    """Model, optimizer and compiled functions of one process; see `Trainer`.

    Args:
        point: What is run.
        prepared: The data set.
        rates: Learning rate of each step of the run, shape [steps].
        joined: The workers.
    """

    def __init__(self, point: Point, prepared: Prepared, rates: NDArray[np.float64], joined: Joined) -> None:
        self._group, self._replicas = tensors(joined)
        columns = prepared.columns if prepared.has_sequences else None
        self._phase = 0
        train = point.train
        if train.xla:
            _refuse_lengths(prepared)
        data = DataInfo.of(prepared, point.class_weights)
        self._load = partial(load_task, point.task, data, train)
        self._named = point.task, prepared.input_shape
        self._built: Task | None = None
        with self._replicas.scope():
            task = self._load()
            refuse_moving_averages(task.callbacks)
            model = task.model
            adapt(model, seed=point.seed, sync_batch_norm=train.sync_batch_norm)
            self.task = task
            self.loss_scale = LossScale(train.precision == "mixed_float16")
            self._phases = phases(self.task, rates, point)
        model.optimizer = self.optimizer
        self._all = [variable.value for variable in self._variables()]
        self._all += self.loss_scale.variables()
        self.own = per_worker(model)
        apart = {id(variable) for variable in self.own}
        self._common = [variable for variable in self._all if id(variable) not in apart]
        self.variables: Sequence[Variable] = [
            Variable(each.dtype.name, tuple(each.shape.as_list()), id(each) in apart) for each in self._all
        ]
        self.metrics: Sequence[str] = list(task.metrics)
        self.sense = task.sense
        self.senses: Mapping[str, Sense] = task.senses
        self.parameters: int = model.count_params()
        self._group.broadcast(self._all)
        self.buckets: Sequence[Bucket] = buckets_of(
            model, self._phases[-1].variables, point.launch.bucket_bytes
        )
        augmentation = Augmentation(train.augment, train.augment_on, prepared)
        self._train = [
            make_train_call(
                augmentation.of_task(self.task), self._replicas, phase.optimizer,
                ready=augmentation.ready, xla=train.xla,
                synchronised=train.sync_batch_norm and bool(self.own), loss_scale=self.loss_scale,
                buckets=in_buckets(sizes(phase.variables), point.launch.bucket_bytes), columns=columns,
                frozen=phase.frozen,
            )
            for phase in self._phases
        ]  # fmt: skip
        self._evaluation = Evaluation(self.task, self._replicas, scale=prepared.scale, columns=columns)

    @property
    def phases(self) -> list[int]:
        return [phase.first for phase in self._phases]

    @property
    def optimizer(self) -> keras.Optimizer:
        """That of the present phase."""
        return self._phases[self._phase].optimizer

    @property
    def has_callbacks(self) -> bool:
        return bool(self.task.callbacks)

    @property
    def rate(self) -> float | None:
        settable = settable_rate(self.optimizer)
        return None if settable is None else float(settable.value.numpy())

    def enter(self, step: int) -> None:
        self._phase = phase_of(self.phases, step)
        self.task.model.optimizer = self.optimizer

    def set_rate(self, rate: float) -> None:
        self.optimizer.learning_rate = rate

    def stage(self, part: Slice, device: int) -> Slice:
        return stage(part, device)

    def train(self, call: Call) -> SupportsFloat:
        self.enter(call[0].step)
        with explained():
            losses: SupportsFloat = self._train[self._phase](call)
        return losses

    def evaluate(self, call: Call) -> list[NDArray[np.float64]]:
        with explained():
            return self._evaluation.sums(call)

    def results(self, sums: Sequence[NDArray[np.float64]]) -> dict[str, float]:
        return self._evaluation.results(sums)

    def matrices(self, sums: Sequence[NDArray[np.float64]]) -> dict[str, list[list[int]]]:
        return self._evaluation.matrices(sums)

    def constant(self, targets: Iterable[NDArray[Any]], answer: NDArray[np.float64]) -> float | None:
        return self._evaluation.constant(targets, answer)

    def values(self) -> Values:
        own = [np.stack(self._replicas.copies(variable)) for variable in self.own]
        return Values([variable.numpy() for variable in self._common], own)

    def assign(self, values: Values) -> None:
        for variable, value in zip(self._common, values.common, strict=True):
            variable.assign(_typed(value, variable))
        for variable, rows in zip(self.own, values.own, strict=True):
            for part, row in zip(self._replicas.parts(variable), rows, strict=True):
                part.assign(_typed(row, part))

    def average(self) -> None:
        self._replicas.average(self.own)

    def share(self) -> None:
        for variable in self._all:
            variable.assign(self._group.share(variable.numpy()))

    def weights(self) -> list[list[NDArray[Any]]]:
        """The weights of the model, then of the loss, for each copy of it in this process."""
        weights = (*self.task.model.weights, *self.task.weights)
        copies = [self._replicas.copies(weight.value) for weight in weights]
        return [list(copy) for copy in zip(*copies, strict=True)]

    def callbacks(self, *, epochs: int, steps: int) -> KerasCallbacks:
        return KerasCallbacks(self.task, epochs=epochs, steps=steps)

    def flops(self) -> Flops:
        return self._train[self._phase].flops()

    def prove_savable(self, path: str) -> None:
        plain = self._as_plain()
        prove_savable(plain.model, path, plain.definitions)

    def save(self, path: str) -> None:
        """Save the model as a plain Keras model, free of this package's layers."""
        self._as_plain().model.save(path)

    def restore(self, path: str) -> None:
        saved = load_model(path, self._named[0]).get_weights()
        model = self.task.model
        shapes = [tuple(weight.shape) for weight in model.weights]
        if [value.shape for value in saved] != shapes:
            raise other_model(path, *self._named)
        model.set_weights(saved)

    def inference(self) -> TensorFlowInference:
        """The plain model with the present weights."""
        plain = self._as_plain()
        return TensorFlowInference(plain.model, lambda: plain, traced=False)

    def _variables(self) -> list[keras.Variable]:
        optimizers = [variable for phase in self._phases for variable in phase.optimizer.variables]
        return [*self.task.model.variables, *self.task.weights, *optimizers]

    def _as_plain(self) -> Task:
        """The task as it is written, with the present weights."""
        if self._built is None:
            self._built = self._load()
        weights = (*self._built.model.weights, *self._built.weights)
        for variable, value in zip(weights, self.weights()[0], strict=True):
            variable.assign(value)
        return self._built


def buckets_of(model: keras.Model, variables: Sequence[keras.Variable], limit: int | None) -> list[Bucket]:
    """The buckets that the gradients of these variables go in, full at `limit` bytes."""
    held, work = sizes(variables), multiply_adds(model, variables)
    return [
        Bucket(sum(held[i] for i in each), None if work is None else sum(work[i] for i in each))
        for each in in_buckets(held, limit)
    ]


def _refuse_lengths(prepared: Prepared) -> None:
    """Refuse sequences of different length, for XLA."""
    if prepared.has_sequences:
        raise UserError(
            "xla = false for sequences of different length, which XLA would compile for each length",
            "xla = true",
            "Leave it out, or have read(data) give sequences of one length.",
        )


def per_worker(model: keras.Model) -> list[Any]:
    """The TensorFlow variables that every worker keeps for itself: the moving statistics."""
    found = []
    for layer in all_layers(model):
        if isinstance(layer, BatchNorm):
            found += [layer.moving_mean.value, layer.moving_variance.value]
    return found


def _typed(value: NDArray[Any], variable: Any) -> NDArray[Any]:
    """A value as read from a file, which knows no bfloat16, in its variable's type."""
    return value.view(variable.dtype.as_numpy_dtype) if value.dtype.kind == "V" else value
