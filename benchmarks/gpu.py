"""Speed on GPUs: our loop against plain Keras and against bare loops of each strategy, in one table.

`.venv/bin/python benchmarks/gpu.py [--rounds 3] [--engine torch] [--model unet] [--precision tf32]` on a node
with its GPUs; `--device cpu --small` tries the same on two cores. With `--engine torch` it prints what
`gpu_torch.py` measures within `--minutes`, row by row, then a whole study and a table; it compares whole runs
with others only with `--whole-runs`. `--two-ranks` lets two ranks share a GPU over NCCL.
Every round runs all programs once, one after another, so that a disturbance affects them all; ratios are
taken within a round.
Each program is a process of its own (or the workers of a real run), on one device and on all devices of the
node. All may sum in any order (`deterministic = false`). The table is Markdown. TensorFlow's bare loop uses
Keras's optimizer update; its "fused loop" uses one kernel per variable, as PyTorch's loop does. With the
PyTorch engine, "ours" trains the Keras model, and "ours, module" the same network as an `nn.Module`.
"""

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import gpu_torch
from gpu_programs import other
from gpu_table import Row, machine, table
from scalestudy.config.expand import expand
from scalestudy.config.parse import load_study
from scalestudy.config.point import Point
from scalestudy.config.settings import DataSettings
from scalestudy.data.preparation import prepare
from scalestudy.data.split import Split, ensure_split
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.tensorflow.installation import library_file as horovod_built
from scalestudy.hardware import cores, devices
from scalestudy.launch.local_run import run_steps
from scalestudy.store.study_folder import StudyFolder

HERE = Path(__file__).parent
STRATEGIES = {
    "tensorflow": ("single", "mirrored", "multiworker", "horovod"),
    "torch": ("ddp",),
}
WITH_FIT = ("single", "mirrored")
"""Keras 3's fit fails under the multi-worker strategy and does not support Horovod."""
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
    """The task, the height and width of its images, their number, and the per-worker batch."""

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
MODULES = {"cnn": "torch_cnn", "unet": "torch_unet"}
"""The same networks as PyTorch modules."""


@dataclass(frozen=True)
class Program:
    """A program to time.

    Attributes:
        model: Name of the model, with the precision.
        way: "Keras fit", "bare loop", "fused loop", "ours" or "ours, module".
        point: Our run, or the run that `errand` is compared with.
        store: Study folder of our run.
        errand: Arguments of a program that is not ours.
    """

    model: str
    way: str
    point: Point
    store: StudyFolder
    errand: dict[str, Any] | None = None

    def rate(self) -> tuple[float, dict[str, float]]:
        """Samples per second and, for our runs, the seconds of each phase."""
        point = self.point
        if self.errand is None:
            return ours(self.store, point)
        return other(
            f"{self.way}, {point.implementation} {point.workers}", self.errand, point
        ), {}


def main() -> None:
    parser = arguments(__doc__ or "", minutes=9.0)
    parser.add_argument("--engine", choices=list(STRATEGIES), default="tensorflow")
    parser.add_argument(
        "--precision", help="with --engine torch three by default, else float32"
    )
    parser.add_argument("--whole-runs", action="store_true", help="with --engine torch")
    parser.add_argument(
        "--two-ranks",
        action="store_true",
        help="two ranks on one GPU, with --engine torch",
    )
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    most = devices.gpus() if options.device == "gpu" else len(cores.granted())
    if most == 0:
        sys.exit(
            "expected GPUs; received none. Run it on a node with GPUs, or with --device cpu --small."
        )
    models = SMALL if options.small else MODELS
    if options.engine == "torch":
        print("\n".join(machine(options.device)), "\n", flush=True)
        precisions = [options.precision] if options.precision else []
        if options.two_ranks:
            asked = {
                "small": options.small,
                "networks": options.model or [],
                "precisions": precisions,
            }
            sys.exit(not gpu_torch.two_ranks(options.device, **asked))
        good = gpu_torch.run(
            options.device,
            small=options.small,
            rounds=options.rounds,
            networks=options.model or [],
            precisions=precisions,
            minutes=options.minutes,
            whole_study=partial(whole_study, models["unet"], options.device),
        )
        if not options.whole_runs:
            sys.exit(not good)
        models = {name: model for name, model in models.items() if name in MODULES}
    compare(
        models,
        [options.engine],
        [options.precision or "float32"],
        sorted({1, most}),
        options,
    )


def whole_study(model: Model, device: str, precision: str, bare: float) -> str:
    """Train the U-Net module as a study; return its throughput beside that of bare steps, and its phases."""
    with tempfile.TemporaryDirectory() as folder:
        prepared = prepare(
            DataSettings(
                source=f"indents:{model.images}", image_size=model.size, cache=folder
            )
        )
        split, file = ensure_split(prepared, None, 0), Path(folder, "first.toml")
        text = STUDY.format(
            task="torch_unet",
            source=f"indents:{model.images}",
            epochs=model.epochs,
            batch=model.batch,
            precision=precision,
            device=device,
            workers=1,
            strategies='"ddp"',
        )
        file.write_text(text)
        study = load_study(file)
        gpus = devices.gpus() if device == "gpu" else 0
        points = [
            point.with_files(str(prepared.path), str(split.path))
            for point in expand(study, gpus=gpus, cores=len(cores.granted()))
        ]
        store = StudyFolder.create_or_open(Path(folder, "first"), study, points, text)
        rate, phases = ours(store, points[0])
    wall = sum(phases.values())
    spent = [
        f"{phase} {seconds:.1f} s"
        for phase, seconds in phases.items()
        if seconds >= wall / 100
    ]
    return f"{rate:.1f} samples/s, {rate / bare:.2f} x ours; {', '.join(spent)}"


def arguments(description: str, minutes: float = math.inf) -> argparse.ArgumentParser:
    """Return a parser with the options that this program shares with `engines.py`."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", choices=list(MODELS), action="append")
    parser.add_argument("--strategy", action="append")
    parser.add_argument(
        "--minutes",
        type=float,
        default=minutes,
        help="for all rows; what is left over is named",
    )
    return parser


def compare(
    models: Mapping[str, Model],
    engines: Sequence[str],
    precisions: Sequence[str],
    workers: Sequence[int],
    options: argparse.Namespace,
) -> None:
    """Run all programs `options.rounds` times, interleaved, and print their table."""
    print("\n".join(machine(options.device)), "\n", flush=True)
    rows: dict[tuple[str, str, str, int], Row] = {}
    with tempfile.TemporaryDirectory() as folder:
        every = [
            program
            for name, model in models.items()
            if name in (options.model or models)
            for program in programs(
                name, model, engines, precisions, workers, options, Path(folder)
            )
        ]
        end = time.monotonic() + 60 * options.minutes
        for number in range(options.rounds):
            for program in every:
                if time.monotonic() > end:
                    strategy, count = (
                        program.point.implementation,
                        program.point.workers,
                    )
                    what = f"{program.model}, {program.way}, {strategy} {count}"
                    print(
                        f"round {number + 1}, {what}: left out, since the time is over",
                        flush=True,
                    )
                    continue
                rate, phases = program.rate()
                strategy, count = program.point.implementation, program.point.workers
                named = {
                    "model": program.model,
                    "way": program.way,
                    "strategy": strategy,
                    "workers": count,
                }
                row = rows.setdefault(
                    (program.model, program.way, strategy, count), named | {"rates": []}
                )
                row["phases"] = phases
                row["rates"].append(rate)
                what = f"{program.model}, {program.way}, {strategy} {count}"
                print(f"round {number + 1}, {what}: {rate:.1f}/s", flush=True)
    rounds = f"{options.rounds} round{'s' * (options.rounds != 1)}"
    print("\n".join(table(rows.values(), options.device, rounds)))


def programs(
    name: str,
    model: Model,
    engines: Sequence[str],
    precisions: Sequence[str],
    workers: Sequence[int],
    options: argparse.Namespace,
    folder: Path,
) -> Iterator[Program]:
    """Yield all programs to time for one model."""
    source, prepared, split = data_of(name, model, folder)
    arrays = folder / f"{name}.npz"
    np.savez(
        arrays,
        inputs=prepared.inputs[split.train],
        targets=prepared.targets[split.train],
    )
    for precision in precisions:
        for engine in engines:
            tasks = {"ours": model.task} | (
                {"ours, module": MODULES[name]} if engine == "torch" else {}
            )
            for way, task in tasks.items():
                strategies = [
                    one
                    for one in STRATEGIES[engine]
                    if one != "horovod" or horovod_built()
                ]
                text = STUDY.format(
                    task=task,
                    source=source,
                    epochs=model.epochs,
                    batch=model.batch,
                    precision=precision,
                    device=options.device,
                    workers=", ".join(map(str, workers)),
                    strategies=", ".join(
                        f'"{one}"'
                        for one in strategies
                        if one in (options.strategy or strategies)
                    ),
                )
                file = folder / f"{Path(task).stem}-{engine}-{precision}.toml"
                file.write_text(text)
                study = load_study(file)
                gpus = devices.gpus() if options.device == "gpu" else 0
                points = [
                    point.with_files(str(prepared.path), str(split.path))
                    for point in expand(study, gpus=gpus, cores=len(cores.granted()))
                    if point.workers > 1 or point.implementation in ("single", "ddp")
                ]
                store = StudyFolder.create_or_open(
                    file.with_suffix(""), study, points, text
                )
                for point in points:
                    named, strategy = f"{name}, {precision}", point.implementation
                    if way == "ours":
                        others = {"bare loop": "loop"}
                        if engine == "tensorflow":
                            others["fused loop"] = "fused"
                        if strategy in WITH_FIT:
                            others["Keras fit"] = "fit"
                        for other_way, errand in others.items():
                            yield Program(
                                named,
                                other_way,
                                point,
                                store,
                                errand_of(errand, point, model, prepared, arrays),
                            )
                    yield Program(named, way, point, store)


def data_of(name: str, model: Model, folder: Path) -> tuple[str, Prepared, Split]:
    """Return data of the model's shape and its source's name; the content does not change the speed."""
    if name == "unet":
        source = f"indents:{model.images}"
        prepared = prepare(
            DataSettings(source=source, image_size=model.size, cache=str(folder))
        )
    else:
        source = str(folder / f"{name}-images.npz")
        rng = np.random.default_rng(0)
        depth = (3,) if name == "resnet50" else ()
        x = rng.integers(0, 256, (model.images, *model.size, *depth), np.uint8)
        np.savez(source, x_train=x, y_train=np.arange(model.images) % 10)
        prepared = prepare(DataSettings(source=source, cache=str(folder)))
    return source, prepared, ensure_split(prepared, None, 0)


def errand_of(
    way: str, point: Point, model: Model, prepared: Prepared, arrays: Path
) -> dict[str, Any]:
    """Arguments of `bare.py` or `bare_torch.py`: as many steps as our run takes."""
    steps = max(
        5, model.epochs * int(np.load(arrays)["inputs"].shape[0]) // point.global_batch
    )
    return {
        "way": way,
        "engine": point.engine,
        "strategy": point.implementation,
        "task": model.task,
        "arrays": str(arrays),
        "kind": prepared.kind,
        "classes": prepared.classes,
        "batch": model.batch,
        "steps": steps,
        "epochs": model.epochs,
        "workers": point.workers,
        "precision": point.train.precision,
        "device": point.launch.device,
    }


def ours(store: StudyFolder, point: Point) -> tuple[float, dict[str, float]]:
    """Steady throughput of a real run, and its phases in seconds."""
    for _ in run_steps(store, point):
        pass
    run = store.runs(point.name)[-1]
    if (result := run.result()) is None or result.throughput is None:
        sys.exit(f"{point.name} failed: {run.failure()}")
    return result.throughput, result.phases


if __name__ == "__main__":
    main()
