"""One process's part of a run, computed with PyTorch."""

from collections.abc import Iterable
from operator import itemgetter
from typing import Any, SupportsFloat

import keras
import numpy as np
import torch
from numpy.typing import NDArray

from scalestudy.data.columns import map_columns
from scalestudy.data.loading.slices import Call, Slice
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.arithmetic import explained
from scalestudy.engines.base import Values
from scalestudy.engines.buckets import Buckets
from scalestudy.engines.group import Joined
from scalestudy.engines.keras.evaluation import Evaluation
from scalestudy.engines.keras.layers import kept
from scalestudy.engines.keras.phases import Phase
from scalestudy.engines.keras.private import moments_of
from scalestudy.engines.keras.trainer import KerasTrainer, typed
from scalestudy.engines.torch.group import TorchReplicas
from scalestudy.engines.torch.layers import adapt_model
from scalestudy.engines.torch.step import START, Step, TorchLossScale, scaled, stage, step_of
from scalestudy.engines.torch.updates import fuse, keep_rate_on_device
from scalestudy.study.point import Point
from scalestudy.tasks.base import Task


class TorchTrainer(KerasTrainer):
    """Model and optimizer of one process, on `device`; see `Trainer` and `Engine.trainer`."""

    _within = torch.no_grad()

    def __init__(
        self, point: Point, prepared: Prepared, rates: NDArray[np.float64], joined: Joined, device: str
    ) -> None:
        assert isinstance(joined.replicas, TorchReplicas)
        self._replicas, self._device, self._scale = joined.replicas, torch.device(device), prepared.scale
        self._seed = point.seed
        self.loss_scale: TorchLossScale | None = None

        def loss_scale() -> list[keras.Variable]:
            if point.train.precision != "mixed_float16":
                return []
            value = keras.Variable(START, trainable=False, dtype="float32")
            good = keras.Variable(0, trainable=False, dtype="int64")
            self.loss_scale = TorchLossScale(value.value, good.value)
            return [value, good]

        prepare = keep_rate_on_device if self._device.type == "cuda" else fuse
        super().__init__(
            point, prepared, rates, joined.group, adapt=adapt_model, prepare=prepare, extra=loss_scale
        )
        for phase in self._phases:
            _lay_out_moments(phase)
        self.share()
        self._dtype: torch.dtype = getattr(torch, keras.config.floatx())
        self._accumulate, self._compression = point.train.accumulate, point.launch.compression
        self._synchronised = point.train.sync_batch_norm and bool(self.local)
        self._steps = [
            self._step(phase, buckets) for phase, buckets in zip(self._phases, self._cuts, strict=True)
        ]
        self._evaluation = TorchEvaluation(self.task, scale=prepared.scale, device=self._device)

    def _step(self, phase: Phase, buckets: Buckets) -> Step:
        task, model, variables = self._of_training, self.task.model, phase.variables

        def losses(part: Slice) -> Any:
            # PyTorch's generator then gives the same numbers after a resume, and different ones per worker.
            torch.manual_seed(hash((self._seed, int(part.step), int(part.start))))
            inputs = scaled(part.inputs, self._scale, self._dtype)
            targets = scaled(part.targets, None, self._dtype) if self._scale is None else part.targets
            with kept(model, phase.frozen):
                if task.training_losses is not None:
                    return task.training_losses(model, task.loss, inputs, targets)
                return task.loss(targets, model(inputs, training=True))

        def update(gradients: list[Any]) -> None:
            if task.gradients is not None:
                gradients = task.gradients(gradients, variables)
            phase.optimizer.apply(gradients, variables)

        changed = [*variables, *phase.optimizer.variables]
        return Step(
            losses, [variable.value for variable in variables], update, self._replicas,
            buckets=buckets, dtype=self._dtype, penalties=lambda: model.losses,
            synchronised=self._synchronised, loss_scale=self.loss_scale,
            changed=[variable.value for variable in changed], accumulate=self._accumulate,
            compression=self._compression, local_steps=self.local_steps,
        )  # fmt: skip

    def stage(self, part: Slice, device: int) -> Slice:
        return stage(part, self._device)

    def train(self, call: Call) -> SupportsFloat:
        self.enter(call[0].step)
        part, step = stage(call[0], self._device), self._steps[self._phase]
        with explained():
            losses: SupportsFloat = sum(step(step_of(part, index)) for index in range(part.steps))
        return losses

    def values(self) -> Values:
        local = [_array(variable)[None] for variable in self.own]
        return Values([_array(variable) for variable in self._common], local)

    def assign(self, values: Values) -> None:
        for variable, value in zip(self._common, values.common, strict=True):
            variable.assign(typed(value, variable.dtype))
        for variable, rows in zip(self.own, values.own, strict=True):
            variable.assign(typed(rows[0], variable.dtype))

    def average(self) -> None:
        if self._group.size > 1 and self.local:
            means = self._group.mean([_array(variable) for variable in self.local])
            for variable, value in zip(self.local, means, strict=True):
                variable.assign(value)

    def share(self) -> None:
        if self._group.size == 1:
            return
        values = self._group.share_object([_array(variable) for variable in self._all])
        if self._group.rank:
            for variable, value in zip(self._all, values, strict=True):
                variable.assign(value)


class TorchEvaluation(Evaluation):
    """See `Evaluation`. `scale` maps stored inputs to [0, 1]; with None inputs are not scaled."""

    def __init__(self, task: Task, *, scale: float | None, device: torch.device) -> None:
        super().__init__(task)
        self._scale, self._device = scale, device
        self._floatx: torch.dtype = getattr(torch, keras.config.floatx())

    @torch.no_grad()
    def sums(self, call: Call) -> list[NDArray[np.float64]]:
        part = stage(call[0], self._device)
        inputs = scaled(map_columns(itemgetter(0), part.inputs), self._scale, self._floatx)
        targets = map_columns(itemgetter(0), part.targets)
        if self._scale is None:
            targets = scaled(targets, None, self._floatx)
        added = self.added(inputs, targets)
        total, *states = (np.asarray(tensor.cpu(), np.float64) * (part.count > 0) for tensor in added)
        return [total, np.asarray(part.count, np.float64), *states]

    @torch.no_grad()
    def constant(self, targets: Iterable[NDArray[Any]], answer: NDArray[np.float64]) -> float | None:
        return super().constant(targets, answer)


def _array(variable: keras.Variable) -> NDArray[Any]:
    return np.asarray(keras.ops.convert_to_numpy(variable.value))


def _lay_out_moments(phase: Phase) -> None:
    """Give an optimizer's moments the memory layout of their parameters, so that updates can be fused."""
    if getattr(phase.optimizer, "momentum", None) == 0:  # SGD without momentum has no moments
        return
    for variable in phase.variables:
        for moment in moments_of(phase.optimizer, variable):
            moment.value.data = torch.zeros_like(variable.value.data)
