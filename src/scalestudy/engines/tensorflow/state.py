"""The values of a model and its optimizers on the devices of one process, under TensorFlow."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.engines.group import Group
from scalestudy.engines.keras.state import KerasState, cast
from scalestudy.engines.tensorflow.replicas import CompiledReplicas


class TensorFlowState(KerasState):
    """Variables with a copy on each device of `replicas`; see `KerasState`."""

    def __init__(
        self,
        group: Group,
        replicas: CompiledReplicas,
        model: Any,
        others: Sequence[Any],
    ) -> None:
        super().__init__(group, model, others)
        self._replicas = replicas

    def copies(self, variables: Sequence[Any]) -> list[NDArray[Any]]:
        return [
            np.stack(self._replicas.copies(variable.value)) for variable in variables
        ]

    def assign_copies(
        self,
        variables: Sequence[Any],
        copies: Sequence[NDArray[Any]],
    ) -> None:
        for variable, rows in zip(variables, copies, strict=True):
            parts = self._replicas.parts(variable.value)
            for part, row in zip(parts, rows, strict=True):
                part.assign(cast(row, variable.dtype))

    def average(self) -> None:
        self._replicas.average([variable.value for variable in self.local])

    def weights(self) -> list[list[NDArray[Any]]]:
        copies = [self._replicas.copies(weight.value) for weight in self._model.weights]
        return [list(copy) for copy in zip(*copies, strict=True)]
