"""What it costs to change training samples anew in each epoch: samples/s with each operation against without.

`.venv/bin/python benchmarks/augmentation.py [--size 256] [--rounds 7]`. Images with masks are
read by the loader as a run reads them, on the cores that this process is granted; each round reads all kinds
in turn, in changing order, so that a machine whose speed drifts drifts under all of them. A ratio is taken
within its round; printed are the median over the rounds and the 2nd lowest and highest.
(The loader reads ahead, so where cores are left a step does not wait for it.)
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping

import numpy as np

from scalestudy.data.loading.augment.reader import Augmented
from scalestudy.data.loading.loader import Loader
from scalestudy.data.loading.order import epoch_order
from scalestudy.data.loading.reader import reader_of
from scalestudy.data.store.prepare import prepare
from scalestudy.data.store.prepared import Prepared
from scalestudy.study.augmentation import KINDS, parsed
from scalestudy.study.settings import DataSettings

COUNT, BATCH = 64, 16
ALL = "flip, rotate, scale, elastic, contrast, brightness, noise"
NONE = "nothing"
Rate = tuple[float, float]
"""Samples/s, and CPU seconds per thousand samples."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=256, help="height and width in pixels")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        size = (options.size, options.size)
        prepared = prepare(DataSettings(source=f"indents:{COUNT}", image_size=size, cache=folder))
        texts = [NONE, *KINDS, ALL]
        cores = len(os.sched_getaffinity(0))
        print(f"Images of {options.size} x {options.size} with masks, read on {cores} cores:")
        report(measured({text: reading(prepared, text) for text in texts}, options.rounds))


def reading(prepared: Prepared, text: str) -> Callable[[int], Rate]:
    """Reads an epoch with an operation; gives its rate."""
    reader = reader_of(prepared)
    if text != NONE:
        reader = Augmented(
            reader, parsed(text), seed=0, scale=prepared.scale, candidates=np.arange(prepared.count)
        )
    loader = Loader(reader, slices=[(0, 1)], workers=1, global_batch=BATCH)

    def read(epoch: int) -> Rate:
        order = epoch_order(np.arange(prepared.count), 0, epoch)
        begun = time.perf_counter()
        spent = time.process_time()
        samples = sum(call[0].count for call in loader.epoch(order, epoch=epoch))
        assert samples == prepared.count
        return samples / (time.perf_counter() - begun), 1000 * (time.process_time() - spent) / samples

    return read


def measured(kinds: Mapping[str, Callable[[int], Rate]], rounds: int) -> dict[str, list[Rate]]:
    """The rates of each kind, round by round."""
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
    """One line a kind."""
    print(f"  {'':<58} {'samples/s against nothing':>26} {'CPU s per 1,000':>16}")
    for name, rates in found.items():
        ratios = sorted(rate / nothing for (rate, _), (nothing, _) in zip(rates, found[NONE], strict=True))
        inner = ratios[1:-1] or ratios
        against = f"{statistics.median(ratios):.3f} [{inner[0]:.3f}, {inner[-1]:.3f}]"
        print(f"  {name:<58} {against:>26} {statistics.median(cpu for _, cpu in rates):>16.3g}")


if __name__ == "__main__":
    main()
