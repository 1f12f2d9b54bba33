"""A run's phases: first the layers behind pretrained ones learn, if the study asks for that, then all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.engines.keras.frozen import kept
from scalestudy.engines.keras.optimizers import make_optimizer
from scalestudy.engines.keras.private import take_summed
from scalestudy.study.point import Point
from scalestudy.tasks.base import Task


@dataclass(frozen=True)
class Phase:
    """Steps in which the same layers learn.

    Attributes:
        first: Step of the run that it begins with, from 0.
        frozen: Names of the layers that stay as they are.
        optimizer: Its own, built: as in Keras's guide to fine-tuning, the next phase begins with a fresh one.
        variables: What it trains.
    """

    first: int
    frozen: tuple[str, ...]
    optimizer: keras.Optimizer
    variables: list[keras.Variable]


def phases(task: Task, rates: NDArray[np.float64], point: Point) -> list[Phase]:
    """The phases of a run, one unless pretrained layers are frozen first.

    Args:
        task: Its model, and which layers were trained before.
        rates: Learning rate of each step of the run, shape [steps].
        point: What is run.
    """
    train = point.train
    first = min(train.frozen_epochs, train.epochs) * (len(rates) // train.epochs)
    found = []
    if first:
        found.append(_phase(task, rates[:first], point, 0, task.pretrained))
    if first < len(rates):
        found.append(_phase(task, rates[first:], point, first, ()))
    return found


def phase_of(firsts: Sequence[int], step: int) -> int:
    """Index of the phase that a step of the run belongs to; `firsts` are their first steps."""
    return max(index for index, first in enumerate(firsts) if first <= step)


def sizes(variables: Sequence[keras.Variable]) -> list[int]:
    """Bytes of each variable's gradient."""
    values = [variable.value for variable in variables]
    return [value.shape.num_elements() * value.dtype.size for value in values]


def _phase(
    task: Task, rates: NDArray[np.float64], point: Point, first: int, frozen: tuple[str, ...]
) -> Phase:
    train = point.train
    optimizer: Any = make_optimizer(
        train.optimizer, rates,
        kappa=point.batch_ratio, scaling=train.learning_rate_scaling, clip_norm=train.clip_norm,
    )  # fmt: skip
    take_summed(optimizer)
    with kept(task.model, frozen):
        variables = task.trained
    optimizer.build(variables)
    return Phase(first, frozen, optimizer, variables)
