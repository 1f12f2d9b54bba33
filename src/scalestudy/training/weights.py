"""Taking, restoring, averaging and proving weights."""

import hashlib
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.strategies.base import Strategy
from scalestudy.training.batch_norm import BatchNorm

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
        words = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8).astype(np.int64)
        words = strategy.host_sum(words if strategy.rank == 0 else np.zeros_like(words))
        variable.assign(np.frombuffer(words.astype(np.uint8).tobytes(), value.dtype).reshape(value.shape))


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


def _digest(values: list[NDArray[Any]]) -> NDArray[np.int64]:
    digest = hashlib.sha256()
    for value in values:
        digest.update(np.ascontiguousarray(value).tobytes())
    return np.frombuffer(digest.digest(), "<u4").astype(np.int64)
