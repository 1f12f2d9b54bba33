"""What a slice adds to the loss and the metrics of a whole set, computed by PyTorch."""

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

import keras
import numpy as np
import torch
from numpy.typing import NDArray

from scalestudy.data.columns import map_columns
from scalestudy.data.loading.slices import Call
from scalestudy.engines.keras.evaluation import Evaluation
from scalestudy.engines.torch.step import scaled, stage
from scalestudy.tasks.base import Task


class TorchEvaluation(Evaluation):
    """See `Evaluation`.

    Args:
        task: Model, loss and metrics.
        scale: What multiplies stored inputs into [0, 1]; None leaves them as they are.
        device: That computes.
    """

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
        outputs = self._task.model(inputs, training=False)
        losses = self._task.loss(targets, outputs)
        sums = [losses.double().sum()]
        for name, metric in self._task.metrics.items():
            start = self.start(name)
            state = metric.stateless_update_state(start, *self._task.seen_by(name, targets, outputs))
            sums += [(after - before).double() for after, before in zip(state, start, strict=True)]
        total, *states = (np.asarray(tensor.cpu(), np.float64) * (part.count > 0) for tensor in sums)
        return [total, np.asarray(part.count, np.float64), *states]

    @torch.no_grad()
    def constant(self, targets: Iterable[NDArray[Any]], answer: NDArray[np.float64]) -> float | None:
        return super().constant(targets, answer)
