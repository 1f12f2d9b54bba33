"""What layers of a model read while they compute, under any engine: the worker, and sums of statistics."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.data.samples import Slice


class Working(NamedTuple):
    """A worker and the slice it computes.

    Attributes:
        slice: The slice of one step; its numbers may be scalar tensors.
        share: workers · count / total: weight of the worker's statistics in the mean over workers (float).
        sync_sum: Sums a tensor over all workers, differentiably; None for statistics per worker.
        calls: Calls so far of each layer that draws random numbers, by its index.
    """

    slice: Slice
    share: Any
    sync_sum: Callable[[Any], Any] | None = None
    calls: Counter[int] | None = None


# TensorFlow traces each replica of a process in its own thread.
_local = threading.local()


@contextmanager
def working(worker: Working) -> Iterator[None]:
    """Let layers see `worker` for the duration of the block."""
    before = current()
    _local.worker = worker
    try:
        yield
    finally:
        _local.worker = before


def current() -> Working | None:
    """The worker being traced, or None outside a training step."""
    return getattr(_local, "worker", None)


class Moments:
    """Sums over the values that reached each layer of batch normalisation, per channel, as float64 tensors.

    Attributes:
        place: The graph in which layers may add to the sums; None outside TensorFlow's graphs.
    """

    def __init__(self, place: Any) -> None:
        self.place = place
        self._sums: dict[int, list[Any]] = {}

    def add(
        self,
        layer: Any,
        count: Any,
        mean: Any,
        variance: Any,
    ) -> None:
        """Add `count` values per channel with this mean and biased variance, both of shape [C]."""
        # Sums over 1,024 samples of many pixels lose digits in float32.
        count, mean, variance = (
            keras.ops.cast(value, "float64") for value in (count, mean, variance)
        )
        sums = [count, count * mean, count * (variance + mean * mean)]
        # A layer may be called several times in a forward pass.
        before = self._sums.get(id(layer))
        if before is not None:
            sums = [a + b for a, b in zip(before, sums, strict=True)]
        self._sums[id(layer)] = sums

    def sums(self, layers: Sequence[Any]) -> list[Any]:
        """Return for each layer the number of values (scalar), their sum and that of squares (shape [C])."""
        sums: list[Any] = []
        for layer in layers:
            sums += self._sums.get(id(layer)) or _nothing(layer)
        return sums


def _nothing(layer: Any) -> list[Any]:
    none = keras.ops.zeros(tuple(layer.moving_mean.shape), "float64")
    return [keras.ops.zeros((), "float64"), none, none]


@contextmanager
def collecting(place: Any = None) -> Iterator[Moments]:
    """Let batch normalisation that learns use each batch's own statistics, and add them up, in the block.

    All other layers work as the model is called: as in evaluation, without dropout and augmentation.
    """
    _local.moments = Moments(place)
    try:
        yield _local.moments
    finally:
        _local.moments = None


def collect(place: Any = None) -> Moments | None:
    """The sums to which layers add at the moment; None in training and evaluation."""
    moments: Moments | None = getattr(_local, "moments", None)
    if moments is None or moments.place is not place:
        return None
    return moments


def momentum_of(layer: Any) -> float:
    """Return the share of its moving statistics that a layer keeps at an update, as in Keras."""
    if isinstance(layer, keras.layers.Layer):
        return float(layer.momentum)
    if layer.momentum is None:
        return 0.0
    return 1 - float(layer.momentum)  # PyTorch's momentum is the share of the batch


def statistics_of(
    sums: Sequence[NDArray[np.float64]],
) -> list[NDArray[np.float64] | None]:
    """Return mean and biased variance of each layer from total `Moments.sums`; two of None without values.

    Then the layer is frozen, or evaluation does not use it. The variance is that of all values (Wu and
    Johnson 2021, arXiv:2105.07576): the mean of the batches' variances and the variance of their means.
    """
    found: list[NDArray[np.float64] | None] = []
    for first in range(0, len(sums), 3):
        count, total, squares = sums[first : first + 3]
        if count == 0:
            found += [None, None]
            continue
        mean = total / count
        found += [mean, np.maximum(squares / count - mean * mean, 0)]
    return found
