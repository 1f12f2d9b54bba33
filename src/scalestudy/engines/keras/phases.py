"""The phases of a run, which train different layers, and the buckets of their gradients."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.config.point import Point
from scalestudy.engines.base import Bucket
from scalestudy.engines.buckets import Buckets, in_buckets, in_halves
from scalestudy.engines.keras.layers import kept, multiply_adds
from scalestudy.tasks.task import Task


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


def cut(
    model: keras.Model, variables: Sequence[keras.Variable], limit: int | None, *, halves: bool = False
) -> Buckets:
    """Divide the gradients of `variables` into buckets of `limit` bytes, or into two of equal work."""
    sizes = _bytes(variables)
    return in_halves(multiply_adds(model, variables) or sizes) if halves else in_buckets(sizes, limit)


def buckets_of(model: keras.Model, variables: Sequence[keras.Variable], buckets: Buckets) -> list[Bucket]:
    """Return size and work of each bucket of the gradients of `variables`."""
    sizes, work = _bytes(variables), multiply_adds(model, variables)
    return [
        Bucket(sum(sizes[i] for i in bucket), None if work is None else sum(work[i] for i in bucket))
        for bucket in buckets
    ]


MakeOptimizer = Callable[[NDArray[np.float64], int, list[keras.Variable]], Any]
"""(rates of a phase, its first step, its variables) -> an optimizer that is built for them."""


def phases_of(task: Task, rates: NDArray[np.float64], point: Point, make: MakeOptimizer) -> list[Phase]:
    """Return the phases of a run with these learning rates, shape [steps]."""
    train = point.train
    change = min(train.frozen_epochs, train.epochs) * (len(rates) // train.epochs)
    phases = []
    for first, stop, frozen in ((0, change, task.pretrained), (change, len(rates), ())):
        if first == stop:
            continue
        with kept(task.model, frozen):
            variables = task.trained
        phases.append(Phase(first, frozen, make(rates[first:stop], first, variables), variables))
    return phases


def _bytes(variables: Sequence[keras.Variable]) -> list[int]:
    return [prod(variable.shape) * np.dtype(variable.dtype).itemsize for variable in variables]
