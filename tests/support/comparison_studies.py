"""Synthetic studies as sides of a comparison."""

import random
from typing import Any

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.features.compare.sides import Side


def side(
    name,
    speeds,
    *,
    base=100.0,
    seeds=3,
    noise=0.01,
    quality=0.95,
    asked=None,
    seed=1,
    **options,
):
    """A study: strategy -> workers -> speed-up over `base` samples per second; repeatable."""
    made_up = random.Random(f"{name}{seed}")
    # The effect of a seed is the same on every side.
    shared = [random.Random(number).gauss(0, 0.02) for number in range(seeds)]
    runs = [
        synthetic.run(
            strategy,
            workers,
            number,
            throughput=base * speed * made_up.lognormvariate(0, noise),
            training_seconds=6000 / (base * speed) * made_up.lognormvariate(0, noise),
            quality=quality + shared[number] + made_up.gauss(0, 0.001),
            **options,
        )
        for strategy, counts in speeds.items()
        for workers, speed in counts.items()
        for number in range(seeds)
    ]
    asked = {"task": "unet", "train.epochs": 6} if asked is None else asked
    return Side(name, analyse(name, runs), asked)


def two_counts(name: str, factor: float = 1.0, seeds: int = 3, **asked: Any) -> Side:
    """Horovod on one and two workers, with `factor` times the throughput."""
    runs = [
        synthetic.run(
            "horovod",
            n,
            seed,
            throughput=factor * 100 * n * (1 + 0.002 * seed),
            training_seconds=60 / (factor * n) * (1 + 0.002 * seed),
            quality=0.95 + 0.001 * seed,
        )
        for n in (1, 2)
        for seed in range(seeds)
    ]
    return Side(name, analyse(name, runs), {"task": "unet"} | asked)
