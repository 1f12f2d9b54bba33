"""The phases of a run, which train different layers; work and buckets of gradients of these layers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.config.point import Point
from scalestudy.engines.buckets import Buckets, in_buckets, in_halves
from scalestudy.engines.interface import Flops
from scalestudy.engines.keras.private import all_layers, layers_in_order
from scalestudy.tasks.task import Task

_TRANSPOSED = (
    keras.layers.Conv1DTranspose,
    keras.layers.Conv2DTranspose,
    keras.layers.Conv3DTranspose,
)
_COUNTED = (
    keras.layers.Dense,
    keras.layers.Conv1D,
    keras.layers.Conv2D,
    keras.layers.Conv3D,
    *_TRANSPOSED,
    keras.layers.DepthwiseConv1D,
    keras.layers.DepthwiseConv2D,
    keras.layers.SeparableConv1D,
    keras.layers.SeparableConv2D,
)
"""Layers that apply each of their kernels once at each position."""
_ATTENTION = (keras.layers.Attention, keras.layers.AdditiveAttention)
"""Layers that multiply without kernels."""
MakeOptimizer = Callable[[NDArray[np.float64], int, list[keras.Variable]], Any]
"""(rates of a phase, its first step, its variables) -> an optimizer that is built for them."""


@contextmanager
def keep(model: keras.Model, names: Sequence[str]) -> Iterator[None]:
    """Freeze the named layers of a model and their inner layers in the block, and in functions traced there.

    Frozen batch normalisation uses its moving statistics.
    """
    layers: list[Any] = []
    for name in names:
        layers += all_layers(model.get_layer(name))
    before = [layer.trainable for layer in layers]
    for layer in layers:
        layer.trainable = False
    try:
        yield
    finally:
        # Outer layers first, as they set inner ones.
        for layer, trainable in zip(layers, before, strict=True):
            layer.trainable = trainable


def multiply_adds(
    model: keras.Model, variables: Sequence[keras.Variable]
) -> list[int] | None:
    """Count the multiplications with each variable in a sample's forward pass; backward takes twice as many.

    Kernels of dense layers and convolutions count; biases and normalisation, which take little time, do not.

    Returns:
        One number per variable, in their order; None if a layer is of another type or its shape is unknown.
    """
    known: dict[int, int] = {}
    for layer in layers_in_order(model):
        work = _work(layer)
        if work is None:
            return None
        known |= work
    return [known.get(id(variable), 0) for variable in variables]


def flops_of(model: keras.Model, trained: Sequence[keras.Variable]) -> Flops:
    """Count the floating-point operations of a step that trains these variables; see `multiply_adds`.

    A trained kernel multiplies once more for its gradient. A layer after a trained variable multiplies once
    more for the gradient of its input.
    """
    if not isinstance(model, keras.Model):  # a PyTorch module
        count = model.flops(trained)
        if count is None:
            return Flops(None, (model.name,))
        return Flops(count or None)
    # By identity: variables of Keras compare by value.
    learns = {id(variable) for variable in trained}
    total = 0
    behind = 0
    """1 once a layer before this one is trained: the gradient then has to come back to it."""
    uncounted = set[str]()
    for layer in layers_in_order(model):
        work = _work(layer)
        if work is None:
            uncounted.add(type(layer).__name__)
            continue
        for variable, count in work.items():
            products = 1 + behind
            if variable in learns:
                products += 1
            total += count * products
        if any(id(weight) in learns for weight in layer.weights):
            behind = 1
    if uncounted or total == 0:
        return Flops(None, tuple(sorted(uncounted)))
    return Flops(2.0 * total)


def _work(layer: keras.layers.Layer) -> dict[int, int] | None:
    """Return the multiplications per sample with each of a layer's own kernels, by id; None if unknown."""
    within: set[int] = set()
    for inner in all_layers(layer)[1:]:
        within.update(map(id, inner.weights))
    kernels = []
    for weight in layer.weights:
        if len(weight.shape) > 1 and id(weight) not in within:
            kernels.append(weight)
    looks_up = isinstance(layer, keras.layers.Embedding)
    if looks_up or (not kernels and not isinstance(layer, _ATTENTION)):
        return {}
    if not isinstance(layer, _COUNTED):
        return None
    positions = _positions(layer)
    if positions is None:
        return None
    return {id(kernel): prod(kernel.shape) * positions for kernel in kernels}


def _positions(layer: keras.layers.Layer) -> int | None:
    """Return the number of positions in a sample at which a layer applies its kernel; None if unknown."""
    try:
        shape = (layer.input if isinstance(layer, _TRANSPOSED) else layer.output).shape
    except (AttributeError, ValueError):  # it was not called on symbols exactly once
        return None
    inner = shape[2:]
    if keras.config.image_data_format() == "channels_last":
        inner = shape[1:-1]
    if None in inner:
        return None
    return prod(inner)


@dataclass(frozen=True)
class Phase:
    """Steps that train the same layers. A run has two phases if pretrained layers are frozen first, else one.

    Attributes:
        first: First step of the phase in the run, from 0.
        frozen: Names of the frozen layers.
        optimizer: The built optimizer of this phase. As in Keras's guide to fine-tuning, each phase has a new
            one.
        variables: The variables it trains.
    """

    first: int
    frozen: tuple[str, ...]
    optimizer: Any
    variables: list[keras.Variable]


def bucket_gradients(
    model: keras.Model,
    variables: Sequence[keras.Variable],
    limit: int | None,
    *,
    halves: bool = False,
) -> Buckets:
    """Divide the gradients of `variables` into buckets of `limit` bytes, or into two of equal work."""
    sizes = [
        prod(variable.shape) * np.dtype(variable.dtype).itemsize
        for variable in variables
    ]
    if halves:
        # Where work is unknown, weights stand for it.
        return in_halves(multiply_adds(model, variables) or sizes)
    return in_buckets(sizes, limit)


def phases_of(
    task: Task,
    rates: NDArray[np.float64],
    point: Point,
    make: MakeOptimizer,
) -> list[Phase]:
    """Return the phases of a run with these learning rates, shape [steps]."""
    train = point.train
    # `rates` has one entry for each step, and epochs are of equal length.
    change = min(train.frozen_epochs, train.epochs) * (len(rates) // train.epochs)
    phases = []
    for first, stop, frozen in ((0, change, task.pretrained), (change, len(rates), ())):
        # Without frozen epochs there is no first phase, with only such no second.
        if first == stop:
            continue
        with keep(task.model, frozen):
            variables = task.trained
        optimizer = make(rates[first:stop], first, variables)
        phases.append(Phase(first, frozen, optimizer, variables))
    return phases
