"""Speed of our loop relative to plain Keras, and of two workers relative to one.

`.venv/bin/python benchmarks/speed.py [--rounds 5] [--task unet]`. Every round runs all programs once, one
after another, so that a drift of the machine's speed affects all of them; ratios are taken within a round,
and the result is the median over the rounds. Each program is a process of its own (or the workers of a real
run), pinned to the same cores. Keras runs with its default (XLA where it can) and without XLA; ours is
compared with the faster one.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from scalestudy.config.expand import expand
from scalestudy.config.parse import load_study
from scalestudy.config.settings import DataSettings
from scalestudy.data.preparation import prepare
from scalestudy.data.split import Split, ensure_split
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.tensorflow.installation import library_file as horovod_built
from scalestudy.hardware import cores
from scalestudy.launch.local_run import run_steps
from scalestudy.store.study_folder import StudyFolder

HERE = Path(__file__).parent
STUDY = """
task = "{task}"
[train]
epochs = {epochs}
batch_size = {batch}
evaluate_every = {epochs}
[sweep]
strategy = [{strategies}]
workers = [1, 2]
seed = [0]
"""
GOALS = {
    "unet": (1.25, 0.90),
    "cnn": (None, None),
}  # two workers relative to Keras, and their efficiency
SIZES = {"unet": (8, 3), "cnn": (128, 4)}  # per-worker batch, epochs


def data_of(task: str, folder: Path) -> tuple[Prepared, Split]:
    """128 indents of 256x256, or 6,000 images of MNIST's shape (their content does not change the speed)."""
    if task == "unet":
        prepared = prepare(
            DataSettings(source="indents:128", image_size=(256, 256), cache=str(folder))
        )
    else:
        rng = np.random.default_rng(0)
        x = rng.integers(0, 256, (6000, 28, 28)).astype("uint8")
        np.savez(folder / "digits.npz", x_train=x, y_train=rng.integers(0, 10, 6000))
        prepared = prepare(
            DataSettings(source=str(folder / "digits.npz"), cache=str(folder))
        )
    return prepared, ensure_split(prepared, None, 0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--task", choices=["unet", "cnn"], action="append")
    options = parser.parse_args()
    if len(cores.granted()) < 2:
        sys.exit(
            f"expected 2 cores; received {len(cores.granted())}. Run it where two are free."
        )
    with tempfile.TemporaryDirectory() as folder:
        for task in options.task or ["unet", "cnn"]:
            measure(task, Path(folder), options.rounds)


def measure(task: str, folder: Path, rounds: int) -> None:
    prepared, split = data_of(task, folder)
    arrays = folder / f"{task}.npz"
    np.savez(
        arrays,
        inputs=prepared.inputs[split.train],
        targets=prepared.targets[split.train],
    )
    batch, epochs = SIZES[task]
    names = ["single", "mirrored", "multiworker"] + (
        ["horovod"] if horovod_built() else []
    )
    file = folder / f"{task}.toml"
    strategies = ", ".join(f'"{name}"' for name in names)
    file.write_text(
        STUDY.format(task=task, epochs=epochs, batch=batch, strategies=strategies)
    )
    study = load_study(file)
    points = expand(study, gpus=0, cores=len(cores.granted()))
    store = StudyFolder.create_or_open(
        folder / f"{task}-study", study, points, file.read_text()
    )
    ours = {}
    for point in points:
        if point.workers == 2 or point.implementation == "single":
            ours[f"{point.strategy} {point.workers}"] = point.with_files(
                str(prepared.path), str(split.path)
            )
    found: dict[str, list[float]] = {}
    phases: dict[str, dict[str, float]] = {}
    for number in range(rounds):
        for workers in (1, 2):
            both = [
                keras_fit(task, arrays, batch * workers, epochs, workers, how)
                for how in ("auto", "plain")
            ]
            found.setdefault(f"keras {workers}", []).append(max(both))
            found.setdefault(f"keras by default {workers}", []).append(both[0])
        for name, point in ours.items():
            for _ in run_steps(store, point):
                pass
            run = store.runs(point.name)[-1]
            if (result := run.result()) is None or result.throughput is None:
                sys.exit(f"{name} failed: {run.failure()}")
            found.setdefault(name, []).append(result.throughput)
            phases[name] = result.phases
        print(
            f"{task}, round {number + 1} of {rounds}: samples/s",
            _line(found),
            flush=True,
        )
    report(task, found, phases)


def keras_fit(
    task: str, arrays: Path, batch: int, epochs: int, count: int, how: str
) -> float:
    """Throughput of the Keras program on the first `count` cores."""
    command = [
        sys.executable,
        str(HERE / "keras_fit.py"),
        task,
        str(arrays),
        str(batch),
        str(epochs),
        how,
    ]
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores.granted()[:count])
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    finally:
        os.sched_setaffinity(0, before)
    return float(done.stdout.rsplit("THROUGHPUT", 1)[1])


def report(
    task: str, found: dict[str, list[float]], phases: dict[str, dict[str, float]]
) -> None:
    """Print the ratios, each with its smallest and largest round."""
    pairs = {
        n: ratio(found[n], found["single 1"])
        for n in found
        if n.endswith(" 2") and not n.startswith("keras")
    }
    best = max(pairs, key=lambda name: statistics.median(pairs[name]))
    print(
        f"\n{task}: ratios of throughput, median [smallest, largest] of {len(found['single 1'])} rounds"
    )
    row(
        "ours / Keras, 1 worker on 1 core",
        ratio(found["single 1"], found["keras 1"]),
        1.0,
    )
    row(
        "  Keras by default instead",
        ratio(found["single 1"], found["keras by default 1"]),
        None,
    )
    row(
        f"ours / Keras, 2 cores, same global batch ({best})",
        ratio(found[best], found["keras 2"]),
        GOALS[task][0],
    )
    for name, ratios in pairs.items():
        goal = GOALS[task][1] if name == best else None
        row(
            f"efficiency of {name} workers against our 1",
            [value / 2 for value in ratios],
            goal,
        )
    print(f"\n{task}: where the wall time of a run went, in per cent (last round)")
    for name, spent in phases.items():
        wall = sum(spent.values())
        print(
            f"  {name:14}",
            "  ".join(
                f"{phase} {100 * s / wall:.1f}"
                for phase, s in spent.items()
                if s / wall >= 0.001
            ),
        )
    print(flush=True)


def ratio(these: list[float], those: list[float]) -> list[float]:
    return [a / b for a, b in zip(these, those, strict=True)]


def row(what: str, ratios: list[float], goal: float | None) -> None:
    middle = statistics.median(ratios)
    verdict = (
        ""
        if goal is None
        else f"  wanted {goal:.2f}: {'reached' if middle >= goal else 'NOT reached'}"
    )
    print(f"  {what:58} {middle:5.2f} [{min(ratios):.2f}, {max(ratios):.2f}]{verdict}")


def _line(found: dict[str, list[float]]) -> str:
    return ", ".join(f"{name} {values[-1]:.0f}" for name, values in found.items())


if __name__ == "__main__":
    main()
