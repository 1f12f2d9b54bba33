"""Made-up runs with a known number of samples until a target quality."""

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import synthetic
from scalestudy.analysis.runs import Run

TARGET, EPOCH = 0.9, 1000


class Epoch(NamedTuple):
    """What an evaluation records; thousands of these are drawn."""

    samples: int
    validation: dict[str, float]
    train_seconds: float = 1.0
    evaluation_seconds: float = 0.0
    loss: float = 0.1
    epoch: int = 1
    resumed: bool = False


@cache
def _made(
    strategy: str, workers: int, swept: tuple[tuple[str, Any], ...], **options: Any
) -> Run:
    return synthetic.run(strategy, workers, epochs=2, swept=dict(swept), **options)


def trained(
    strategy: str,
    workers: int,
    seed: int,
    curve: list[tuple[int, float | None]],
    *,
    throughput: float = 100.0,
    seconds: float = 1.0,
    swept: dict[str, Any] | None = None,
    **options: Any,
) -> Run:
    """A run with these epochs: pairs of samples and quality."""
    run = _made(strategy, workers, tuple((swept or {}).items()), **options)
    name = "-".join(
        [
            strategy,
            f"w{workers}",
            f"s{seed}",
            *(str(value) for value in (swept or {}).values()),
        ]
    )
    changed = {
        "seed": seed,
        "name": name,
        "throughput": throughput,
        "quality": curve[-1][1],
    }
    epochs = tuple(
        Epoch(samples, {"iou": quality}, seconds, epoch=place)
        for place, (samples, quality) in enumerate(curve, 1)
    )
    return replace(run, epochs=epochs, result=run.result.model_copy(update=changed))


def reaching(
    strategy: str, workers: int, seed: int, needed: float, **options: Any
) -> Run:
    """A run that reaches the target with its first evaluation, after `needed` samples."""
    return trained(strategy, workers, seed, [(needed, TARGET)], **options)


def learning(
    strategy: str,
    workers: int,
    seed: int,
    needed: float,
    epochs: int = 60,
    **options: Any,
) -> Run:
    """A run whose quality is 1 − exp(−samples), scaled to reach the target after `needed` samples."""
    qualities = 1 - (1 - TARGET) ** (EPOCH * np.arange(1, epochs + 1) / needed)
    curve = [(EPOCH, quality) for quality in qualities.tolist()]
    return trained(strategy, workers, seed, curve, chance=0.0, **options)
