"""The values of a Keras model and its optimizers in one process, for every backend of Keras."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.engines.group import Group
from scalestudy.engines.interface import Values, Variable
from scalestudy.engines.keras.layer_context import momentum_of, statistics_of
from scalestudy.engines.keras.private import all_layers


class KerasState(ABC):
    """The variables of a model and its optimizers; see `ModelState`.

    Attributes:
        norms: The model's layers of batch normalisation.
        local: Their moving statistics, of which each worker has its own values until `average`.

    Args:
        group: The processes.
        model: The model, with layers adapted to several workers.
        others: Further variables that training changes, such as those of optimizers.
    """

    def __init__(
        self,
        group: Group,
        model: Any,
        others: Sequence[Any],
    ) -> None:
        self._group = group
        self._model = model
        self._all: list[Any] = [*model.variables, *others]
        self.norms: list[Any] = []
        self.local: list[Any] = []
        for layer in all_layers(model):
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
        self.parameters: int = model.count_params()

    @abstractmethod
    def copies(self, variables: Sequence[Any]) -> list[NDArray[Any]]:
        """Return the values of variables, each of shape [copies in this process, ...]."""

    @abstractmethod
    def assign_copies(
        self,
        variables: Sequence[Any],
        copies: Sequence[NDArray[Any]],
    ) -> None:
        """Set variables to values that `copies` returned."""

    @abstractmethod
    def average(self) -> None:
        """See `ModelState.average`."""

    def weights(self) -> list[list[NDArray[Any]]]:
        """Return the weights of the model, for each copy of it in this process."""
        return [[array_of(weight) for weight in self._model.weights]]

    def values(self) -> Values:
        common = [array_of(variable) for variable in self._common]
        return Values(common, self.copies(self.local))

    def assign(self, values: Values) -> None:
        for variable, value in zip(self._common, values.common, strict=True):
            variable.assign(cast(value, variable.dtype))
        self.assign_copies(self.local, values.own)

    def begin_with(self, weights: Sequence[NDArray[Any]]) -> None:
        for variable, value in zip(self._model.weights, weights, strict=True):
            variable.assign(cast(value, variable.dtype))

    def share(self) -> None:
        share_values(self._group, self._all)

    @property
    def momentum(self) -> float | None:
        return max(map(momentum_of, self.norms), default=None)

    @contextmanager
    def with_statistics(self, sums: Sequence[NDArray[np.float64]]) -> Iterator[None]:
        before = self.copies(self.local)
        fresh = []
        for value, copies in zip(statistics_of(sums), before, strict=True):
            if (
                value is None
            ):  # of a layer that is frozen, or that evaluation does not use
                fresh.append(copies)
            else:
                fresh.append(np.broadcast_to(value, copies.shape).astype(copies.dtype))
        self.assign_copies(self.local, fresh)
        try:
            yield
        finally:
            self.assign_copies(self.local, before)

    def not_finite(self) -> str | None:
        weights = self._model.weights
        for weight, value in zip(weights, self.weights()[0], strict=True):
            if not np.isfinite(np.asarray(value, np.float64)).all():
                return str(weight.path)
        return None


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
