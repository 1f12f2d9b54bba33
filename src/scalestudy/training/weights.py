"""Taking, restoring, averaging and proving weights."""

import hashlib
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.engines.tensorflow.batch_norm import BatchNorm
from scalestudy.strategies.base import Strategy

DIGEST_WORDS = 8  # of a SHA-256, 32 bits each


def per_worker(model: keras.Model) -> list[Any]:
    """The TensorFlow variables that every worker keeps for itself: the moving statistics."""
    found = []
    for layer in model._flatten_layers():
        if isinstance(layer, BatchNorm):
            found += [layer.moving_mean.value, layer.moving_variance.value]
    return found


def snapshot(variables: list[Any]) -> list[NDArray[Any]]:
    """Values of TensorFlow variables."""
    return [variable.numpy() for variable in variables]


def restore(variables: list[Any], values: list[NDArray[Any]]) -> None:
    """Assign what `snapshot` took, on every replica."""
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def share(variables: list[Any], strategy: Strategy) -> None:
    """Give every process the values that rank 0 has, exactly."""
    for variable in variables:
        value = variable.numpy()
        words = _words(value)
        words = strategy.host_sum(words if strategy.rank == 0 else np.zeros_like(words))
        variable.assign(np.frombuffer(words.astype(np.uint8).tobytes(), value.dtype).reshape(value.shape))


class State:
    """All that a run has computed: every variable, of all workers where each keeps its own.

    Args:
        variables: All TensorFlow variables.
        own: Those that each worker keeps for itself.
        strategy: How the workers combine.
    """

    def __init__(self, variables: list[Any], own: list[Any], strategy: Strategy) -> None:
        apart = {id(variable) for variable in own}
        self._shared = [variable for variable in variables if id(variable) not in apart]
        self._own, self._strategy = own, strategy

    def values(self) -> list[NDArray[Any]]:
        """Values of the common variables, then of the others, shape [copies, ...]; on every rank."""
        return [*snapshot(self._shared), *self._gathered()]

    def assign(self, values: list[NDArray[Any]]) -> None:
        """Restore what `values` gave, perhaps to another process."""
        shared, own = values[: len(self._shared)], values[len(self._shared) :]
        restore(self._shared, [_typed(*pair) for pair in zip(shared, self._shared, strict=True)])
        for variable, rows in zip(self._own, own, strict=True):
            parts = self._strategy.parts(variable)
            first = self._strategy.rank * len(parts)
            for part, row in zip(parts, rows[first : first + len(parts)], strict=True):
                part.assign(_typed(row, part))

    def _gathered(self) -> list[NDArray[Any]]:
        if not self._own:
            return []
        mine = [np.stack(self._strategy.copies(variable)) for variable in self._own]
        words = np.concatenate([_words(values) for values in mine])
        table = np.zeros((self._strategy.processes, len(words)), np.int64)
        table[self._strategy.rank] = words
        table = self._strategy.host_sum(table).astype(np.uint8)
        ends = np.cumsum([values.nbytes for values in mine])[:-1]
        return [
            np.ascontiguousarray(part).view(values.dtype).reshape(-1, *values.shape[1:])
            for part, values in zip(np.split(table, ends, axis=1), mine, strict=True)
        ]


def digests(model: keras.Model, strategy: Strategy) -> list[str]:
    """SHA-256 over all weights, one for each copy of the model among all processes.

    The copies prove themselves equal by their digests being equal.
    """
    copies = [strategy.copies(weight.value) for weight in model.weights]
    local = len(copies[0])
    mine = [_digest([weight[copy] for weight in copies]) for copy in range(local)]
    table = np.zeros((strategy.processes, local, DIGEST_WORDS), np.int64)
    table[strategy.rank if strategy.processes > 1 else 0] = mine
    gathered = strategy.host_sum(table).reshape(-1, DIGEST_WORDS).astype(np.uint32)
    return [row.astype("<u4").tobytes().hex() for row in gathered]


def _typed(value: NDArray[Any], variable: Any) -> NDArray[Any]:
    """A value as read from a file, which knows no bfloat16, in its variable's type."""
    return value.view(variable.dtype.as_numpy_dtype) if value.dtype.kind == "V" else value


def _words(value: NDArray[Any]) -> NDArray[np.int64]:
    """The bytes of an array as numbers that processes can add up."""
    return np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8).astype(np.int64)


def _digest(values: list[NDArray[Any]]) -> NDArray[np.int64]:
    digest = hashlib.sha256()
    for value in values:
        digest.update(np.ascontiguousarray(value).tobytes())
    return np.frombuffer(digest.digest(), "<u4").astype(np.int64)
