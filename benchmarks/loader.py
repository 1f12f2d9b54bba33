"""How fast a mirrored process reads its batches, compared with the demand of eight A100 GPUs.

`.venv/bin/python benchmarks/loader.py [--rounds 5] [--case mnist]`. Batches of eight slices are read from a
memory-mapped set in the page cache into tensors that a step could use, and are dropped. Each round measures
two ways: *ours* (the loader with the engine's staging), and *fresh* (one thread indexes the rows into new
arrays, which are converted to tensors where they are used). Images/s hold for the cores that the first line
names; CPU seconds depend less on other load and give the number of cores that would keep eight A100 busy.
Copies are detected by addresses: a tensor at the address of the buffer that was read into was not copied
again.

Demand of eight A100 in images/s:
- resnet50, 224x224x3, 8 x 64: 20,000, from NVIDIA's published 2,500 per card in mixed precision.
- mnist, 28x28x1, 8 x 512: 842,000; 486,914 measured on 8 V100 (the published course), times 1,555 / 900, the
  ratio of memory bandwidths.
- unet, 768x1024x1 with masks, 8 x 16: 1,900; one V100 took 7,535 s for 200 epochs of 896 images (the
  published study), an A100 is at most ten times as fast: 156 TFLOP/s of TF32 against 15.7 of float32.
"""

import argparse
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

import numpy as np

from scalestudy.data.loader import Loader, Stored
from scalestudy.data.samples import Indices, Slice, epoch_order
from scalestudy.hardware import cores, devices

DEVICES = 8


class Case(NamedTuple):
    """Shapes of an input and a target, samples of the set, batch per device, images/s needed."""

    inputs: tuple[int, ...]
    targets: tuple[int, ...]
    samples: int
    batch: int
    needed: float


CASES = {
    "resnet50": Case((224, 224, 3), (), 4096, 64, 20_000),
    "mnist": Case((28, 28, 1), (), 60_000, 512, 486_914 * 1555 / 900),
    "unet": Case((768, 1024, 1), (768, 1024), 896, 16, 8 * 10 * 200 * 896 / 7535),
}


Way = Callable[[Indices], Iterator[tuple[int, int]]]
"""Maps the order of an epoch to the images and copies of each of its calls."""


class Found(NamedTuple):
    """Images/s, CPU seconds per thousand images, and copies of an input in one measurement."""

    rate: float
    cpu: float
    copies: int


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="of a way in a round"
    )
    parser.add_argument("--case", choices=CASES, action="append")
    options = parser.parse_args()
    os.environ.update(
        devices.showing(())
    )  # keep batches in host memory, even with GPUs
    print(f"{len(cores.granted())} cores of {cores.cpu_model()}")
    for name in options.case or CASES:
        with tempfile.TemporaryDirectory() as folder:
            measure(name, CASES[name], Path(folder), options.rounds, options.seconds)


def measure(name: str, case: Case, folder: Path, rounds: int, seconds: float) -> None:
    inputs = mapped(folder / "inputs.npy", (case.samples, *case.inputs), np.uint8)
    targets = mapped(
        folder / "targets.npy",
        (case.samples, *case.targets),
        np.uint8 if case.targets else np.int32,
    )
    ways: dict[str, Way] = {
        "ours": Ours(inputs, targets, case),
        "fresh": lambda order: fresh(inputs, targets, case, order),
    }
    for way in ways.values():
        passed(way, case, 0.0)  # warm up: map the pages, initialize TensorFlow
    found: dict[str, list[Found]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, calls in ways.items():
            found[way].append(passed(calls, case, seconds))
    size = "x".join(map(str, case.inputs))
    print(
        f"\n{name}: {size}, {DEVICES} x {case.batch}; medians [smallest, largest] of {rounds} rounds"
    )
    for way, each in found.items():
        rates, cpu = (
            [one.rate for one in each],
            statistics.median(one.cpu for one in each),
        )
        rate = statistics.median(rates)
        print(
            f"  {way:6} {rate:10,.0f} [{min(rates):,.0f}, {max(rates):,.0f}] images/s, "
            f"{rate / case.needed:5.2f} x 8 A100's; {cpu:.4f} CPU s per 1,000, so "
            f"{case.needed / 1000 * cpu:.1f} cores for 8 A100; {each[-1].copies} copies"
        )
    ratios = [
        a.rate / b.rate for a, b in zip(found["ours"], found["fresh"], strict=True)
    ]
    print(
        f"  ours / fresh {statistics.median(ratios):.2f} [{min(ratios):.2f}, {max(ratios):.2f}]",
        flush=True,
    )


def mapped(file: Path, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an array on disk with random content, memory-mapped like a prepared set."""
    np.save(file, np.random.default_rng(0).integers(0, 200, shape, dtype=dtype))
    return np.load(file, mmap_mode="r")


def passed(calls: Way, case: Case, seconds: float) -> Found:
    """Read whole epochs for `seconds`, at least one."""
    images, epoch, copies = 0, 0, 0
    wall, cpu = time.perf_counter(), time.process_time()
    while not images or time.perf_counter() - wall < seconds:
        for count, copied in calls(epoch_order(np.arange(case.samples), 0, epoch)):
            images, copies = images + count, copied
        epoch += 1
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Found(images / wall, 1000 * cpu / images, copies)


class Ours:
    """The loader with the staging of the TensorFlow engine; one loader for all epochs, as in a run."""

    def __init__(self, inputs: Any, targets: Any, case: Case) -> None:
        from scalestudy.engines.tensorflow.staging import stage

        self._read: dict[tuple[int, int], int] = {}

        def noted(part: Slice, device: int) -> Slice:
            self._read[part.step, device] = part.inputs.ctypes.data
            return stage(part, device)

        self._loader = Loader(
            Stored(inputs, targets),
            slices=[(each, each + 1) for each in range(DEVICES)],
            workers=DEVICES,
            global_batch=DEVICES * case.batch,
            stage=noted,
        )

    def __call__(self, order: Indices) -> Iterator[tuple[int, int]]:
        """Yield images and copies of each call."""
        for call in self._loader.epoch(order):
            places = [
                self._read.pop((part.step, device)) for device, part in enumerate(call)
            ]
            copied = any(
                address(part.inputs) != place
                for part, place in zip(call, places, strict=True)
            )
            yield call[0].total, 1 + copied


def fresh(
    inputs: Any, targets: Any, case: Case, order: Indices
) -> Iterator[tuple[int, int]]:
    """Read the same batches in one thread into new arrays, converted to tensors where they are used."""
    import tensorflow as tf

    ready: Queue[list[tuple[Any, Any]] | None] = Queue(2)
    whole = DEVICES * case.batch

    def read() -> None:
        for start in range(0, len(order), whole):
            slices = np.array_split(order[start : start + whole], DEVICES)
            ready.put(
                [(indexed(inputs, rows), indexed(targets, rows)) for rows in slices]
            )
        ready.put(None)

    thread = threading.Thread(target=read)
    thread.start()
    while (call := ready.get()) is not None:
        with tf.device("CPU:0"):
            tensors = [
                (tf.convert_to_tensor(one), tf.convert_to_tensor(other))
                for one, other in call
            ]
        copied = any(
            address(tensor) != array.ctypes.data
            for (tensor, _), (array, _) in zip(tensors, call, strict=True)
        )
        yield sum(array.shape[1] for array, _ in call), 1 + copied
    thread.join()


def indexed(source: Any, rows: Indices) -> Any:
    found = np.zeros((1, len(rows), *source.shape[1:]), source.dtype)
    found[0] = source[rows]
    return found


def address(tensor: Any) -> int:
    return np.asarray(memoryview(tensor)).ctypes.data


if __name__ == "__main__":
    main()
