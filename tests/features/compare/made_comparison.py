"""Sides of comparisons: studies that nobody has run."""

from typing import Any

import made

from scalestudy.analysis.findings import analyse
from scalestudy.features.compare.side import Side


def side(name: str, factor: float = 1.0, seeds: int = 3, **asked: Any) -> Side:
    """Horovod on one worker and on two, `factor` times as fast as others."""
    runs = [
        made.run(
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
