"""On GPUs, how fast: our loop against plain Keras and against a bare loop of each strategy, in one table.

`.venv/bin/python benchmarks/gpu.py [--rounds 3] [--model unet] [--precision tf32]`
on a node with its GPUs; `--device cpu --small` does the same on two cores, to see that it works. Every round
runs all programs once, one after another, so that what disturbs a round disturbs them all; ratios are taken
within a round. Each program is a process of its own (or the workers of a real run): on one device, and on all
of the node. All may sum in any order (`deterministic = false`). The table is Markdown, to be pasted.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpu_programs import other
from gpu_table import Row, machine, table
from scalestudy.data.splits.split import Split, stored_split
from scalestudy.data.store.prepare import prepare
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.tensorflow.horovod_build import library_file as horovod_built
from scalestudy.hardware import cores, devices
from scalestudy.launch.local.run import run_point
from scalestudy.study.expand import expand
from scalestudy.study.parse import load_study
from scalestudy.study.point import Point
from scalestudy.study.settings import DataSettings
from scalestudy.study.store import StudyFolder

HERE = Path(__file__).parent
STRATEGIES = ("single", "mirrored", "multiworker", "horovod")
STUDY = """
task = "{task}"
[data]
source = "{source}"
[train]
epochs = {epochs}
batch_size = {batch}
evaluate_every = {epochs}
precision = "{precision}"
deterministic = false
[launch]
device = "{device}"
[sweep]
strategy = [{strategies}]
workers = [{workers}]
seed = [0]
"""


@dataclass(frozen=True)
class Model:
    """What is trained: the task, the shape of its images, how many there are, and a worker's batch."""

    task: str
    size: tuple[int, int]
    images: int
    batch: int
    epochs: int = 3


MODELS = {
    "cnn": Model("cnn", (28, 28), 60_000, 128, epochs=5),
    "unet": Model("unet", (768, 1024), 320, 8),
    "resnet50": Model(str(HERE / "resnet50.py"), (224, 224), 4096, 64),
}
SMALL = {
    "cnn": Model("cnn", (28, 28), 1200, 32),
    "unet": Model("unet", (32, 32), 40, 4),
    "resnet50": Model(str(HERE / "resnet50.py"), (32, 32), 40, 4),
}


@dataclass(frozen=True)
class Made:
    """A model's data, and its runs by (strategy, workers)."""

    model: Model
    prepared: Prepared
    split: Split
    arrays: Path
    store: StudyFolder
    points: dict[tuple[str, int], Point]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", choices=list(MODELS), action="append")
    parser.add_argument("--strategy", choices=STRATEGIES, action="append")
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    most = devices.gpus() if options.device == "gpu" else len(cores.granted())
    if most == 0:
        sys.exit("expected GPUs; received none. Run it on a node with GPUs, or with --device cpu --small.")
    print("\n".join(machine(options.device)), "\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for name in options.model or MODELS:
            made = make(name, options, Path(folder), sorted({1, most}))
            rows += measured(name, made, options)
    rounds = f"{options.rounds} round{'s' * (options.rounds != 1)}"
    heading = f"{options.precision}, {rounds}{', small' if options.small else ''}"
    print("\n".join(table(rows, options.device, heading)))


def make(name: str, options: argparse.Namespace, folder: Path, workers: list[int]) -> Made:
    """Data of that shape (what they show does not change the speed), and a study over all strategies."""
    model = (SMALL if options.small else MODELS)[name]
    file = folder / f"{name}-images.npz"
    if name == "unet":
        prepared = prepare(
            DataSettings(source=f"indents:{model.images}", image_size=model.size, cache=str(folder))
        )
    else:
        rng = np.random.default_rng(0)
        depth = (3,) if name == "resnet50" else ()
        x = rng.integers(0, 256, (model.images, *model.size, *depth), np.uint8)
        np.savez(file, x_train=x, y_train=np.arange(model.images) % 10)
        prepared = prepare(DataSettings(source=str(file), cache=str(folder)))
    split = stored_split(prepared, None, 0)
    arrays, text = folder / f"{name}.npz", folder / f"{name}.toml"
    np.savez(arrays, inputs=prepared.inputs[split.train], targets=prepared.targets[split.train])
    built = [each for each in STRATEGIES if each != "horovod" or horovod_built()]
    strategies = [each for each in options.strategy or built if each in built]
    text.write_text(
        STUDY.format(
            task=model.task,
            source=f"indents:{model.images}" if name == "unet" else file,
            epochs=model.epochs,
            batch=model.batch,
            precision=options.precision,
            device=options.device,
            strategies=", ".join(f'"{each}"' for each in strategies),
            workers=", ".join(map(str, workers)),
        )
    )
    study = load_study(text)
    gpus = devices.gpus() if options.device == "gpu" else 0
    points = [
        point
        for point in expand(study, gpus=gpus, cores=len(cores.granted()))
        if point.implementation == "single" or point.workers > 1
    ]
    store = StudyFolder.create_or_open(folder / f"{name}-study", study, points, text.read_text())
    ready = {
        (point.implementation, point.workers): point.with_files(str(prepared.path), str(split.path))
        for point in points
    }
    return Made(model, prepared, split, arrays, store, ready)


def measured(name: str, made: Made, options: argparse.Namespace) -> list[Row]:
    """A row for every program: what it is, its rates by round, and where our time went."""
    rows: dict[tuple[str, str, int], Row] = {}
    for number in range(options.rounds):
        for (strategy, workers), point in made.points.items():
            kept: Row = {}
            for way in ("Keras fit", "bare loop", "ours"):
                if way == "Keras fit" and strategy not in ("single", "mirrored"):
                    continue  # Keras 3's fit fails under the multi-worker strategy, and knows no Horovod
                if way == "ours":
                    rate, kept = ours(made.store, point)
                else:
                    errand = errand_of(way, made, strategy, workers, options)
                    rate = other(f"{way}, {strategy} {workers}", errand, point)
                row = rows.setdefault((strategy, way, workers), {"rates": []})
                row |= {"model": name, "way": way, "strategy": strategy, "workers": workers, "phases": kept}
                row["rates"].append(rate)
                print(f"round {number + 1}, {name}, {way}, {strategy} {workers}: {rate:.1f}/s", flush=True)
    return list(rows.values())


def errand_of(
    way: str, made: Made, strategy: str, workers: int, options: argparse.Namespace
) -> dict[str, Any]:
    """What `bare.py` is to do: as many steps as our run takes."""
    steps = max(5, made.model.epochs * len(made.split.train) // made.points[strategy, workers].global_batch)
    return {
        "way": "fit" if way == "Keras fit" else "loop", "strategy": strategy, "task": made.model.task,
        "arrays": str(made.arrays), "kind": made.prepared.kind, "classes": made.prepared.classes,
        "batch": made.model.batch, "steps": steps, "epochs": made.model.epochs, "workers": workers,
        "precision": options.precision, "device": options.device,
    }  # fmt: skip


def ours(store: StudyFolder, point: Point) -> tuple[float, dict[str, float]]:
    """Steady throughput of a real run, and its phases in seconds."""
    outcome = run_point(store, point)
    result = store.runs(point.name)[-1].result()
    if not outcome.ok or result is None or result.throughput is None:
        sys.exit(f"{point.name} failed: {outcome.failure}")
    return result.throughput, result.phases


if __name__ == "__main__":
    main()
