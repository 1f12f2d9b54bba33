"""The phases of a run, which train different layers, and the buckets of their gradients."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.engines.base import Bucket
from scalestudy.engines.buckets import Buckets, in_buckets, in_halves
from scalestudy.engines.keras.layers import kept, multiply_adds
from scalestudy.engines.keras.optimizers import make_optimizer
from scalestudy.study.point import Point
from scalestudy.tasks.base import Task


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
    optimizer: keras.Optimizer
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


def phases_of(
    task: Task, rates: NDArray[np.float64], point: Point, *, prepare: Callable[[Any], None] = lambda _: None
) -> list[Phase]:
    """Return the phases of a run with these learning rates; call `prepare` with each optimizer to build."""
    train = point.train
    change = min(train.frozen_epochs, train.epochs) * (len(rates) // train.epochs)
    phases = []
    for first, stop, frozen in ((0, change, task.pretrained), (change, len(rates), ())):
        if first == stop:
            continue
        optimizer: Any = make_optimizer(
            train.optimizer, rates[first:stop], kappa=point.batch_ratio, scaling=train.learning_rate_scaling,
            clip_norm=train.clip_norm,
        )  # fmt: skip
        prepare(optimizer)
        with kept(task.model, frozen):
            variables = task.trained
        optimizer.build(variables)
        phases.append(Phase(first, frozen, optimizer, variables))
    return phases


def _bytes(variables: Sequence[keras.Variable]) -> list[int]:
    return [prod(variable.shape) * np.dtype(variable.dtype).itemsize for variable in variables]
