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
from scalestudy.engines.buckets import Buckets, in_buckets, in_halves
from scalestudy.engines.group import Joined
from scalestudy.engines.keras.callbacks import KerasCallbacks, refuse_moving_averages
from scalestudy.engines.keras.layers import flops_of, kept, multiply_adds
from scalestudy.engines.keras.model_files import load_model, other_model
from scalestudy.engines.keras.optimizers import make_optimizer
from scalestudy.engines.keras.private import all_layers, settable_rate, take_summed
from scalestudy.engines.tensorflow.evaluation import Evaluation
from scalestudy.engines.tensorflow.inference import TensorFlowInference
from scalestudy.engines.tensorflow.layers import BatchNorm, adapt
from scalestudy.engines.tensorflow.setup import explained
from scalestudy.engines.tensorflow.staging import gpu, stage
from scalestudy.engines.tensorflow.step import LossScale, fuse, make_train_call
from scalestudy.engines.tensorflow.strategies.replicas import share_values, tensors
from scalestudy.study.metrics import Sense
from scalestudy.study.point import Point
from scalestudy.tasks.base import DataInfo, Task
from scalestudy.tasks.load import load_task
from scalestudy.tasks.losses import with_mixed_loss
from scalestudy.tasks.saving import prove_savable
from scalestudy.util.errors import UserError


@dataclass(frozen=True)
class Phase:
    """Steps in which the same layers learn: one phase, or two where pretrained layers are frozen first.

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


class TensorFlowTrainer:
    """Model, optimizer and compiled functions of one process; see `Trainer` and `Engine.trainer`."""

    def __init__(self, point: Point, prepared: Prepared, rates: NDArray[np.float64], joined: Joined) -> None:
        self._group, self._replicas = tensors(joined)
        train = point.train
        if train.xla and prepared.has_sequences:
            raise UserError(
                "xla = false for sequences of different length, which XLA would compile for each length",
                "xla = true",
                "Leave it out, or have read(data) give sequences of one length.",
            )
        self._load = partial(load_task, point.task, DataInfo.of(prepared, point.class_weights), train)
        self._named = point.task, prepared.input_shape
        self._plain: Task | None = None
        one_device = len(self._replicas.slices) == 1  # mirrored variables have no kernel of their own
        with self._replicas.scope():
            self.task = task = self._load()
            refuse_moving_averages(task.callbacks)
            adapt(task.model, seed=point.seed, sync_batch_norm=train.sync_batch_norm)
            self.loss_scale = LossScale() if train.precision == "mixed_float16" else None
            self._phases = _phases(task, rates, point, fused=gpu(0) is not None and one_device)
        self._phase = 0
        task.model.optimizer = self.optimizer
        optimizers = [variable for phase in self._phases for variable in phase.optimizer.variables]
        self._all = [variable.value for variable in (*task.model.variables, *task.weights, *optimizers)]
        if self.loss_scale:
            self._all += [self.loss_scale.value, self.loss_scale.good]
        self.local = [
            variable.value
            for layer in all_layers(task.model)
            if isinstance(layer, BatchNorm)
            for variable in (layer.moving_mean, layer.moving_variance)
        ]
        local = {id(variable) for variable in self.local}
        self._common = [variable for variable in self._all if id(variable) not in local]
        self.variables: Sequence[Variable] = [
            Variable(tensor.dtype.name, tuple(tensor.shape.as_list()), id(tensor) in local)
            for tensor in self._all
        ]
        self.metrics: Sequence[str] = list(task.metrics)
        self.sense = task.sense
        self.senses: Mapping[str, Sense] = task.senses
        self.parameters: int = task.model.count_params()
        self.share()
        halves = (
            point.launch.bucket_size == "auto"
            and self._replicas.overlaps_once
            and self._group.communication == "nccl"
        )
        limit = point.launch.bucket_bytes
        cuts = [cut(task.model, phase.variables, limit, halves=halves) for phase in self._phases]
        self.buckets: Sequence[Bucket] = buckets_of(task.model, self._phases[-1].variables, cuts[-1])
        columns = prepared.columns if prepared.has_sequences else None
        of_training = with_mixed_loss(task, train.augment, masks=prepared.kind == "masks")
        self._train = [
            make_train_call(
                of_training, self._replicas, phase.optimizer, scale=prepared.scale,
                xla=train.xla, synchronised=train.sync_batch_norm and bool(self.local),
                loss_scale=self.loss_scale, buckets=buckets,
                columns=columns, frozen=phase.frozen,
            )
            for phase, buckets in zip(self._phases, cuts, strict=True)
        ]  # fmt: skip
        self._evaluation = Evaluation(task, self._replicas, scale=prepared.scale, columns=columns)

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
        self._phase = max(index for index, phase in enumerate(self._phases) if phase.first <= step)
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
        local = [np.stack(self._replicas.copies(variable)) for variable in self.local]
        return Values([variable.numpy() for variable in self._common], local)

    def assign(self, values: Values) -> None:
        for variable, value in zip(self._common, values.common, strict=True):
            variable.assign(_typed(value, variable))
        for variable, rows in zip(self.local, values.own, strict=True):
            for part, row in zip(self._replicas.parts(variable), rows, strict=True):
                part.assign(_typed(row, part))

    def average(self) -> None:
        self._replicas.average(self.local)

    def share(self) -> None:
        share_values(self._group, self._all)

    def weights(self) -> list[list[NDArray[Any]]]:
        """The weights of the model, then of the loss, for each copy of it in this process."""
        weights = (*self.task.model.weights, *self.task.weights)
        copies = [self._replicas.copies(weight.value) for weight in weights]
        return [list(copy) for copy in zip(*copies, strict=True)]

    def callbacks(self, *, epochs: int, steps: int) -> KerasCallbacks:
        return KerasCallbacks(self.task, epochs=epochs, steps=steps)

    def flops(self) -> Flops:
        if self.task.training_losses is not None:  # which calls the model as often as it likes
            return Flops(None, ("training_losses",))
        return flops_of(self.task.model, self._phases[self._phase].variables)

    def prove_savable(self, path: str) -> None:
        plain = self._as_plain()
        prove_savable(plain.model, path, plain.definitions)

    def save(self, path: str) -> None:
        self._as_plain().model.save(path)

    def restore(self, path: str) -> None:
        saved = load_model(path, self._named[0]).get_weights()
        if [value.shape for value in saved] != [tuple(weight.shape) for weight in self.task.model.weights]:
            raise other_model(path, *self._named)
        self.task.model.set_weights(saved)

    def inference(self) -> TensorFlowInference:
        plain = self._as_plain()
        return TensorFlowInference(plain.model, lambda: plain, traced=False)

    def _as_plain(self) -> Task:
        """The task as it is written, with the present weights."""
        self._plain = self._plain or self._load()
        weights = (*self._plain.model.weights, *self._plain.weights)
        for variable, value in zip(weights, self.weights()[0], strict=True):
            variable.assign(value)
        return self._plain


def cut(
    model: keras.Model, variables: Sequence[keras.Variable], limit: int | None, *, halves: bool = False
) -> Buckets:
    """The gradients of these variables in buckets full at `limit` bytes, or in two of equal work."""
    sizes = _bytes(variables)
    return in_halves(multiply_adds(model, variables) or sizes) if halves else in_buckets(sizes, limit)


def buckets_of(model: keras.Model, variables: Sequence[keras.Variable], buckets: Buckets) -> list[Bucket]:
    """What there is to know of the buckets that the gradients of these variables go in."""
    sizes, work = _bytes(variables), multiply_adds(model, variables)
    return [
        Bucket(sum(sizes[i] for i in bucket), None if work is None else sum(work[i] for i in bucket))
        for bucket in buckets
    ]


def _phases(task: Task, rates: NDArray[np.float64], point: Point, *, fused: bool) -> list[Phase]:
    train = point.train
    change = min(train.frozen_epochs, train.epochs) * (len(rates) // train.epochs)
    phases = []
    for first, stop, frozen in ((0, change, task.pretrained), (change, len(rates), ())):
        if first == stop:
            continue
        optimizer: Any = make_optimizer(
            train.optimizer, rates[first:stop], kappa=point.batch_ratio, scaling=train.learning_rate_scaling,
            clip_norm=train.clip_norm,
        )  # fmt: skip
        take_summed(optimizer)
        if fused:
            fuse(optimizer)
        with kept(task.model, frozen):
            variables = task.trained
        optimizer.build(variables)
        phases.append(Phase(first, frozen, optimizer, variables))
    return phases


def _bytes(variables: Sequence[keras.Variable]) -> list[int]:
    """Of each variable's gradient."""
    values = [variable.value for variable in variables]
    return [value.shape.num_elements() * value.dtype.size for value in values]


def _typed(value: NDArray[Any], variable: Any) -> NDArray[Any]:
    """A value as read from a file, which knows no bfloat16, in its variable's type."""
    return value.view(variable.dtype.as_numpy_dtype) if value.dtype.kind == "V" else value
