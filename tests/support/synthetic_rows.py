"""Rows of a study, each with three seeds that hardly differ."""

import synthetic

LONG = 200_000
"""Samples per epoch, so many that start-up is negligible."""


def several(
    strategy, workers, throughput, quality=0.95, swept=None, samples=LONG, **options
):
    """Three seeds that hardly differ."""
    return [
        synthetic.run(
            strategy,
            workers,
            seed,
            throughput=throughput * (1 + 0.001 * seed),
            quality=quality + 0.0005 * seed,
            swept=swept,
            samples=samples,
            **options,
        )
        for seed in range(3)
    ]


def series(strategy, throughputs, **options):
    return [
        run
        for workers, t in throughputs.items()
        for run in several(strategy, workers, t, **options)
    ]


NATIVE = {1: 100, 2: 180, 4: 312, 8: 540}
