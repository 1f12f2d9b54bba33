"""Evaluation over a whole set, and the quality that a constant prediction reaches."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scalestudy.config.metric_senses import gain
from scalestudy.data.loader import Loader
from scalestudy.data.samples import Call, Indices, epoch_order
from scalestudy.data.store.prepared import Prepared, class_counts
from scalestudy.engines.group import Group
from scalestudy.engines.interface import Trainer
from scalestudy.measure.heartbeat import Heartbeat

FEWEST, MOST, SHARE = 32, 1024, 1 / 10
"""Samples from which batch-norm statistics are computed: this share of the training set, between two limits.

A forward pass takes 0.4 of a training step, so a tenth costs 4 % of an epoch. Wu and Johnson 2021
(arXiv:2105.07576) find that more than about a thousand samples change nothing.
"""
AT_ONCE = 2**22
"""Maximum number of output values created at once."""


def measure(
    trainer: Trainer,
    group: Group,
    loader: Loader,
    samples: Indices,
    heartbeat: Heartbeat,
) -> dict[str, float]:
    """Return loss and metrics over `samples` (rows, shape [M], at least one); the same on every rank.

    Each process evaluates its slices. `loader` must yield calls of one step.
    """
    sums = sum_over_workers(
        trainer, trainer.evaluate, group, loader, samples, heartbeat
    )
    return trainer.results(sums)


def sum_over_workers(
    trainer: Trainer,
    compute: Callable[[Call], list[Any]],
    group: Group,
    loader: Loader,
    samples: Indices,
    heartbeat: Heartbeat,
) -> list[NDArray[np.float64]]:
    """Return the arrays that `compute` returns for calls of one step, summed over `samples` and processes."""
    # Sums stay on the devices until all calls are given to them: one wait at the end, not one per call.
    calls = iter(loader.epoch(samples))
    sums = compute(next(calls))
    for call in calls:
        heartbeat.enter("evaluation")
        sums = [a + b for a, b in zip(sums, compute(call), strict=True)]
    arrays = trainer.arrays(sums)
    flat = group.host_sum(np.concatenate([np.ravel(part) for part in arrays]))
    ends = np.cumsum([np.size(part) for part in arrays])
    totals = []
    for piece, part in zip(np.split(flat, ends[:-1]), arrays, strict=True):
        totals.append(piece.reshape(np.shape(part)))
    return totals


def statistics_samples(training: Indices, seed: int) -> Indices:
    """Return the training samples for batch-norm statistics: the same, in one order, for all evaluations."""
    count = min(MOST, max(FEWEST, int(SHARE * len(training))))
    return epoch_order(training, seed, 0)[:count]


class Chance(NamedTuple):
    """The quality reached without learning.

    Attributes:
        quality: Best quality of a constant prediction; None if the outputs are not classes.
        labels: Number of labels it was measured on: one per sample, or one per pixel.
    """

    quality: float | None
    labels: int


def measure_chance(trainer: Trainer, prepared: Prepared, samples: Indices) -> Chance:
    """Measure `Chance` over `samples` (rows, shape [M])."""
    if not prepared.classes:
        return Chance(None, len(samples))
    labels = len(samples) * int(np.prod(prepared.targets.shape[1:]))
    return Chance(constant_quality(trainer, prepared, samples), labels)


def constant_quality(
    trainer: Trainer, prepared: Prepared, samples: Indices
) -> float | None:
    """Return the best quality over `samples` (rows, shape [M]) of a prediction that ignores the inputs.

    It tries to predict the most frequent class everywhere (with two classes, each of them), and the class
    frequencies as probabilities. The resulting accuracy is the share of the majority class; the resulting
    IoU is the share of the foreground.

    Returns:
        None if the task's outputs are not classes, or if no such quality is finite.
    """
    better = trainer.sense.better
    counts = class_counts(prepared, samples)
    # Every label may be ignored.
    shares = counts / max(1.0, counts.sum())
    tried = 1
    if len(shares) == 2:
        tried = 2  # the foreground, by which masks are judged, is often the rarer class
    frequent = np.argsort(-shares, kind="stable")[:tried]
    best: float | None = None
    for answer in (*np.eye(len(shares))[frequent], shares):
        value = trainer.constant(_parts(prepared, samples), answer)
        if value is None or better is None or not np.isfinite(value):
            continue
        if best is None or gain(value, better) > gain(best, better):
            best = value
    return best


def _parts(prepared: Prepared, samples: Indices) -> Iterator[NDArray[np.generic]]:
    targets = prepared.targets
    outputs = int(np.prod(targets.shape[1:])) * prepared.classes
    size = max(1, AT_ONCE // outputs)
    for start in range(0, len(samples), size):
        yield targets[np.sort(samples[start : start + size])]
