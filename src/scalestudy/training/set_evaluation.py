"""Evaluation over a whole set, by all workers."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.data.loader import Loader
from scalestudy.data.samples import Call, Indices, epoch_order
from scalestudy.engines.group import Group
from scalestudy.engines.interface import Trainer
from scalestudy.measure.heartbeat import Heartbeat

FEWEST, MOST, SHARE = 32, 1024, 1 / 10
"""Samples from which batch-norm statistics are computed: this share of the training set, between two limits.

A forward pass takes 0.4 of a training step, so a tenth costs 4 % of an epoch. Wu and Johnson 2021
(arXiv:2105.07576) find that more than about a thousand samples change nothing.
"""


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
        trainer,
        trainer.evaluate,
        group,
        loader,
        samples,
        heartbeat,
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
        # A mark for each call: a large set may take longer than the watchdog waits.
        heartbeat.enter("evaluation")
        sums = [a + b for a, b in zip(sums, compute(call), strict=True)]
    arrays = trainer.arrays(sums)
    # As one array: each sum over processes waits for the slowest of them.
    mine = np.concatenate([np.ravel(part) for part in arrays])
    flat = group.host_sum(mine)
    ends = np.cumsum([np.size(part) for part in arrays])
    totals = []
    for piece, part in zip(np.split(flat, ends[:-1]), arrays, strict=True):
        totals.append(piece.reshape(np.shape(part)))
    return totals


def statistics_samples(training: Indices, seed: int) -> Indices:
    """Return the training samples for batch-norm statistics: the same, in one order, for all evaluations."""
    count = min(MOST, max(FEWEST, int(SHARE * len(training))))
    return epoch_order(training, seed, 0)[:count]
