"""Cost of augmentation: samples/s with each operation relative to none.

`.venv/bin/python benchmarks/augmentation.py [--size 256] [--rounds 7]`. The loader reads images with masks as
in a run, on all granted cores. Each round reads with every operation in turn, in rotating order, so that a
drift of the machine's speed affects all of them. Ratios are taken within a round; the table shows the median
over the rounds and the second lowest and second highest.
(The loader reads ahead, so a step does not wait for augmentation while cores are idle.)
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping

import numpy as np

from scalestudy.config.operations import KINDS, operations_of
from scalestudy.config.settings import DataSettings
from scalestudy.data.augment import Augmented
from scalestudy.data.loader import Loader, reader_of
from scalestudy.data.preparation import prepare
from scalestudy.data.samples import epoch_order
from scalestudy.data.store.prepared import Prepared

COUNT, BATCH = 64, 16
ALL = "flip, rotate, crop, contrast, brightness, noise"
NONE = "nothing"
Rate = tuple[float, float]
"""Samples/s, and CPU seconds per thousand samples."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--size", type=int, default=256, help="height and width in pixels"
    )
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        size = (options.size, options.size)
        prepared = prepare(
            DataSettings(source=f"indents:{COUNT}", image_size=size, cache=folder)
        )
        texts = [NONE, *KINDS, ALL]
        cores = len(os.sched_getaffinity(0))
        print(
            f"Images of {options.size} x {options.size} with masks, read on {cores} cores:"
        )
        report(
            measured({text: reading(prepared, text) for text in texts}, options.rounds)
        )


def reading(prepared: Prepared, text: str) -> Callable[[int], Rate]:
    """Return a function that reads one epoch with the operations `text` and returns its rate."""
    reader = reader_of(prepared)
    if text != NONE:
        reader = Augmented(reader, operations_of(text), seed=0, scale=prepared.scale)
    loader = Loader(reader, slices=[(0, 1)], workers=1, global_batch=BATCH)

    def read(epoch: int) -> Rate:
        order = epoch_order(np.arange(prepared.count), 0, epoch)
        begun = time.perf_counter()
        spent = time.process_time()
        samples = sum(call[0].count for call in loader.epoch(order, epoch=epoch))
        assert samples == prepared.count
        return samples / (time.perf_counter() - begun), 1000 * (
            time.process_time() - spent
        ) / samples

    return read


def measured(
    kinds: Mapping[str, Callable[[int], Rate]], rounds: int
) -> dict[str, list[Rate]]:
    """Rates of each kind, one per round."""
    for measure in kinds.values():
        measure(0)
    found: dict[str, list[Rate]] = {name: [] for name in kinds}
    order = list(kinds)
    for number in range(1, rounds + 1):
        order = order[1:] + order[:1]
        for name in order:
            found[name].append(kinds[name](number))
    return found


def report(found: Mapping[str, list[Rate]]) -> None:
    """Print one line per kind."""
    print(f"  {'':<58} {'samples/s against nothing':>26} {'CPU s per 1,000':>16}")
    for name, rates in found.items():
        ratios = sorted(
            rate / nothing
            for (rate, _), (nothing, _) in zip(rates, found[NONE], strict=True)
        )
        inner = ratios[1:-1] or ratios
        against = f"{statistics.median(ratios):.3f} [{inner[0]:.3f}, {inner[-1]:.3f}]"
        print(
            f"  {name:<58} {against:>26} {statistics.median(cpu for _, cpu in rates):>16.3g}"
        )


if __name__ == "__main__":
    main()
