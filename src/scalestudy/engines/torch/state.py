"""The values of a model and its optimizers on the device of one process, under PyTorch."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np
import torch
from numpy.typing import NDArray

from scalestudy.engines.group import Group
from scalestudy.engines.keras.layer_context import statistics_of
from scalestudy.engines.keras.private import untrainable
from scalestudy.engines.keras.state import KerasState, array_of, cast, share_values
from scalestudy.engines.torch.step import sent


class TorchState(KerasState):
    """Variables on `device`; see `KerasState`.

    Attributes:
        shared: Buffers that all workers have in common: neither trained nor averaged.
    """

    def __init__(
        self,
        group: Group,
        device: torch.device,
        model: Any,
        others: Sequence[Any],
    ) -> None:
        super().__init__(group, model, others)
        self._device = device
        self.shared: list[Any] = []
        averaged = {id(variable) for variable in self.local}
        for buffer in buffers_of(model):
            # Layers of batch normalisation count their batches alike on all workers.
            counts = buffer.name.endswith("num_batches_tracked")
            if id(buffer) not in averaged and not counts:
                self.shared.append(buffer)

    def copies(self, variables: Sequence[Any]) -> list[NDArray[Any]]:
        return [array_of(variable)[None] for variable in variables]

    def assign_copies(
        self,
        variables: Sequence[Any],
        copies: Sequence[NDArray[Any]],
    ) -> None:
        for variable, rows in zip(variables, copies, strict=True):
            variable.assign(cast(rows[0], variable.dtype))

    def average(self) -> None:
        if self._group.size > 1 and self.local:
            values = host_arrays([variable.value for variable in self.local])
            self._send(self.local, self._group.mean(values))
        # Their last values differ: each step begins with rank 0's, and then each rank changes its own.
        share_values(self._group, self.shared)

    @contextmanager
    def with_statistics(self, sums: Sequence[NDArray[np.float64]]) -> Iterator[None]:
        """See `ModelState.with_statistics`; all are sent in one copy, and kept on the device."""
        before = [variable.value.clone() for variable in self.local]
        variables = []
        values = []
        for variable, value in zip(self.local, statistics_of(sums), strict=True):
            if value is not None:
                variables.append(variable)
                values.append(value)
        self._send(variables, values)
        try:
            yield
        finally:
            with torch.no_grad():
                for variable, kept in zip(self.local, before, strict=True):
                    variable.value.copy_(kept)

    @torch.no_grad()
    def _send(
        self,
        variables: Sequence[keras.Variable],
        values: Sequence[NDArray[Any]],
    ) -> None:
        """Set variables (each of shape [C]) in one copy to the device."""
        if not values:
            return
        parts = sent(np.concatenate(values), self._device).split(
            [len(value) for value in values]
        )
        for variable, part in zip(variables, parts, strict=True):
            variable.value.copy_(part)


def host_arrays(tensors: Sequence[Any]) -> list[NDArray[Any]]:
    """Return tensors as arrays, by one copy from the device, which is one wait for it."""
    flat = torch.cat([tensor.reshape(-1) for tensor in tensors]).cpu().numpy()
    ends = np.cumsum([tensor.numel() for tensor in tensors])
    arrays = []
    for part, tensor in zip(np.split(flat, ends[:-1]), tensors, strict=True):
        arrays.append(part.reshape(tuple(tensor.shape)))
    return arrays


def buffers_of(model: Any) -> list[Any]:
    """Return the variables of a model that no step trains, whether layers are frozen or not."""
    if isinstance(model, keras.Model):
        return untrainable(model)
    return list(model.buffers)
