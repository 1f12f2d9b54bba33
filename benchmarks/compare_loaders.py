"""Compare our loader with tf.data in the published order, Grain and PyTorch's DataLoader: speed, CPU, memory.

`.venv/bin/python benchmarks/compare_loaders.py [--data FOLDER] [--rounds 5] [--workers 1 2 4] [--case NAME]`.
FOLDER holds mnist/mnist.npz, nuclei/ (images, masks) and flowers/ (JPEGs by class); missing sets are
generated. Loaders that are not installed are listed and skipped: `pip install --target SITE torch grain`, and
put SITE on PYTHONPATH.

Each worker is a process of its own, pinned to its share of the cores, like a rank of a run. The processes of
all loaders are started first and then take turns, so that other load on the machine affects all equally:
- cold: the first epoch of new processes after importing their libraries, from creating the loader to the last
  batch. The kernel is asked beforehand to evict the files' pages; if it does, they are read from the disk.
- warm: whole epochs for some seconds, one loader after the other in each round. The ratio is ours / theirs,
  paired by round, with Student's 95 % interval on its logarithm: above 1 ours is faster.
- CPU: seconds of all processes per 1,000 samples, warm, and theirs / ours. Prefer this figure if other
  programs use the cores: a loader with many threads then gets a larger share of a busy core than one with
  few.
- memory: the node's peak in an epoch, in multiples of the 8-bit set: the growth of the processes since their
  libraries were imported (the kernel's Pss without pages of files) plus the cached pages of their files, each
  counted once.
- proof: every sample arrives once, by checksums of inputs and targets against our prepared set. A library
  that decodes and scales JPEGs itself differs by a few grey levels; then classes and means must agree.
"""

import argparse
import math
import statistics
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from scipy import stats

from loaders import node, sets
from loaders.group import Workers
from loaders.sets import CASES, Case
from loaders.ways import Task
from loaders.worker import proof
from scalestudy.data.store.prepared import Prepared
from scalestudy.hardware.cores import cpu_model, granted
from scalestudy.util.units import size

COLUMNS = (
    "loader",
    "workers",
    "warm, samples/s",
    "ours / it",
    "CPU s per 1,000",
    "its CPU / ours",
    "cold, samples/s",
    "memory",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of real sets")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="of a loader in a round, warm"
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--case", choices=CASES, action="append")
    options = parser.parse_args()
    print(
        f"{len(granted())} cores of {cpu_model()}, {options.rounds} rounds of {options.seconds:g} s",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in options.case or CASES:
            files = read(name, CASES[name], options.data, Path(folder))
            print(
                f"\n{name}: {files[0]}\n\n| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}",
                flush=True,
            )
            for workers in options.workers:
                compare(CASES[name], files, workers, options.rounds, options.seconds)


def read(
    name: str, case: Case, data: Path | None, folder: Path
) -> tuple[str, Prepared, Path]:
    """Description of the set, ours, and the file the others read."""
    where = sets.source(name, data, folder)
    own = Prepared.open(sets.prepared(where, case, folder / "cache"))
    file = where
    if where.is_dir():
        file = folder / f"{name}.json"
        sets.listed(where, file)
    shape = "x".join(map(str, own.input_shape))
    words = (
        f"{own.count} of {shape}, batches of {case.batch}, {size(own.bytes)} in 8 bits"
    )
    return words, own, file


def compare(
    case: Case,
    about: tuple[str, Prepared, Path],
    workers: int,
    rounds: int,
    seconds: float,
) -> None:
    """Print the rows of a set for a number of workers."""
    _, own, file = about
    theirs = [file] if file.suffix == ".npz" else sets.files_of(file)
    task = Task(
        str(own.path),
        str(file),
        list(case.size) if case.size else None,
        case.batch,
        0,
        workers,
        1,
    )
    groups, rows = [], {}
    try:
        for name in case.loaders:
            files = (
                [own.path / each for each in own.arrays]
                if name.startswith("ours")
                else theirs
            )
            group = Workers(name, task, granted(), files)
            groups.append(group)
            missing = [
                answer["missing"]
                for answer in group.tell("import")
                if "missing" in answer
            ]
            if missing:
                print(f"| {name} | {workers} | left out: {missing[0]} |", flush=True)
                groups.remove(group)
                group.close()
                continue
            before = group.held()
            node.evict(files)
            cold = group.tell("cold")
            peak = group.peak("epoch", before)
            prove(
                name,
                [
                    tuple(each)
                    for answer in group.tell("proof")
                    for each in answer["samples"]
                ],
                own,
            )
            rows[name] = {
                "cold": own.count / max(answer["wall"] for answer in cold),
                "memory": peak / own.bytes,
                "warm": [],
                "cpu": [],
            }
        for _ in range(rounds):
            for group in groups:
                answers = group.tell(f"warm {seconds}")
                rate = sum(answer["count"] / answer["wall"] for answer in answers)
                cpu = sum(answer["cpu"] for answer in answers) / sum(
                    answer["count"] for answer in answers
                )
                rows[group.name]["warm"].append(rate)
                rows[group.name]["cpu"].append(1000 * cpu)
    finally:
        for group in groups:
            group.close()
    for name, row in rows.items():
        show(name, workers, row, rows[case.loaders[0]])


def show(name: str, workers: int, row: dict[str, Any], ours: dict[str, Any]) -> None:
    sides = {"warm": (ours, row), "cpu": (row, ours)}
    against = {
        key: "1"
        if row is ours
        else interval([a / b for a, b in zip(one[key], other[key], strict=True)])
        for key, (one, other) in sides.items()
    }
    print(
        f"| {name} | {workers} | {statistics.median(row['warm']):,.0f} | {against['warm']} "
        f"| {statistics.median(row['cpu']):.4f} | {against['cpu']} | {row['cold']:,.0f} "
        f"| {row['memory']:.2f} |",
        flush=True,
    )


def interval(ratios: list[float]) -> str:
    """Geometric mean and its Student's 95 % interval."""
    logarithms = [math.log(each) for each in ratios]
    mean = statistics.mean(logarithms)
    if len(ratios) < 2:
        return f"{math.exp(mean):.2f}"
    half = (
        stats.t.ppf(0.975, len(ratios) - 1)
        * statistics.stdev(logarithms)
        / math.sqrt(len(ratios))
    )
    return f"{math.exp(mean):.2f} [{math.exp(mean - half):.2f}, {math.exp(mean + half):.2f}]"


def prove(name: str, found: list[Any], arrays: Prepared) -> None:
    """Check that the loader delivered every sample of the prepared set exactly once.

    Raises:
        AssertionError: A sample is missing, repeated or different.
    """
    wanted = proof([(arrays.inputs, arrays.targets)])
    if Counter(each[:2] for each in found) == Counter(each[:2] for each in wanted):
        return
    assert name.startswith("tf.data"), f"{name} delivers other samples"
    pairs = list(
        zip(
            *(sorted(each[1:] for each in side) for side in (found, wanted)),
            strict=True,
        )
    )
    assert all(one[0] == other[0] for one, other in pairs), (
        f"{name} delivers other classes"
    )
    apart = max(abs(one[1] - other[1]) for one, other in pairs)
    assert apart < 2, f"{name} delivers images that are {apart:.1f} grey levels apart"


if __name__ == "__main__":
    main()
