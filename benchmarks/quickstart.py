"""Duration of the quickstart in a fresh folder, in seconds and relative to plain Keras.

`.venv/bin/python benchmarks/quickstart.py [--setup warm|cold] [--rounds 1]`. Every round runs the study
between two runs of plain Keras (the U-Net of `speed.py`: 256x256, batch 8, one core). The study's seconds
times Keras's samples per second give its cost in a unit that does not depend on the machine; the spread of
Keras's rates shows how quiet the machine was. Data are prepared anew. `--setup` first clones the committed
repository, sets the clone up and runs it: with the user's caches (warm) or with empty ones (cold), which
downloads every package and builds Horovod.
"""

import argparse
import csv
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from speed import SIZES, data_of, keras_fit

ROOT = Path(__file__).parents[1]
MOST_MINUTES = 6.0
LEAST_IOU = 0.6
COLUMNS = (
    "strategy",
    "workers",
    "runs",
    "throughput",
    "training_seconds",
    "efficiency",
    "quality",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--setup", choices=["warm", "cold"])
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fresh = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
        root, seconds = ROOT, 0.0
        if options.setup:
            fresh.pop("PYTHONPATH", None)  # the clone's own source, not this checkout
            root = folder / "clone"
            cold = fresh | {"PIP_NO_CACHE_DIR": "1"}
            seconds = set_up(
                root, cold if options.setup == "cold" else dict(os.environ)
            )
            print(f"set-up ({options.setup}): {seconds:.0f} s", flush=True)
        prepared, split = data_of("unet", folder)
        arrays = folder / "unet.npz"
        np.savez(
            arrays,
            inputs=prepared.inputs[split.train],
            targets=prepared.targets[split.train],
        )
        rates, studies = [keras(arrays)], []
        for number in range(options.rounds):
            place = folder / f"round-{number}"
            studies.append(
                study(root, place, fresh | {"XDG_CACHE_HOME": str(place / "cache")})
            )
            rates.append(keras(arrays))
            report(place / "studies" / "quickstart", root)
        summary(seconds, studies, rates)


def set_up(root: Path, environment: dict[str, str]) -> float:
    """Clone the committed repository to `root`, set it up, and return the seconds of the set-up."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(root)], check=True)
    start = time.perf_counter()
    subprocess.run([root / "environments" / "setup.sh"], env=environment, check=True)
    return time.perf_counter() - start


def keras(arrays: Path) -> float:
    """Samples per second of plain Keras on one core, with or without XLA, whichever is faster."""
    batch, epochs = SIZES["unet"]
    rate = max(
        keras_fit("unet", arrays, batch, epochs, 1, how) for how in ("auto", "plain")
    )
    print(f"plain Keras: {rate:.1f} samples/s", flush=True)
    return rate


def study(root: Path, place: Path, environment: dict[str, str]) -> float:
    """Run the quickstart of `root` in `place` and return its wall-clock seconds."""
    place.mkdir()
    for file in (root / "examples").glob("*"):
        if file.suffix in (".toml", ".py"):
            shutil.copy(file, place)
    start = time.perf_counter()
    command = [
        python(root),
        "-m",
        "scalestudy",
        "run",
        place / "quickstart.toml",
        "--until",
        "decided",
    ]
    subprocess.run(command, env=environment, check=True)
    return time.perf_counter() - start


def report(results: Path, root: Path) -> None:
    """Print every row and every run of the study."""
    done = subprocess.run(
        [python(root), "-m", "scalestudy", "report", results, "--format", "csv"],
        capture_output=True,
        text=True,
        check=True,
    )
    print("\n" + "  ".join(f"{column:>16}" for column in COLUMNS))
    for row in csv.DictReader(io.StringIO(done.stdout)):
        print("  ".join(f"{_short(row[column]):>16}" for column in COLUMNS))
        iou = float(row["quality"])
        if iou < LEAST_IOU:
            print(f"  IoU wanted {LEAST_IOU}: NOT reached ({iou:.3f})")
    print()
    for file in sorted(results.glob("points/*/run-*/result.json")):
        run = json.loads(file.read_text())
        wall, training = run["wall_seconds"], run["training_seconds"]
        quality = "" if run["quality"] is None else f", IoU {run['quality']:.4f}"
        print(
            f"  {run['name']:22} {run['updates']} updates, {training:6.1f} s of training, "
            f"{wall - training:5.1f} s besides{quality}"
        )
    print(flush=True)


def summary(setup: float, studies: list[float], rates: list[float]) -> None:
    """Print the cost of the quickstart, in seconds and in samples of plain Keras."""
    seconds, rate = median(studies), median(rates)
    print(f"study: {seconds:.0f} s [{min(studies):.0f}, {max(studies):.0f}]")
    print(f"plain Keras: {rate:.1f} samples/s [{min(rates):.1f}, {max(rates):.1f}]")
    print(
        f"the study costs as much as {seconds * rate:,.0f} training samples of plain Keras"
    )
    if setup:
        minutes = (setup + seconds) / 60
        verdict = "reached" if minutes <= MOST_MINUTES else "NOT reached"
        print(
            f"set-up and study: {minutes:.1f} min, wanted {MOST_MINUTES:.0f}: {verdict}"
        )


def python(root: Path) -> str:
    return sys.executable if root == ROOT else str(root / ".venv" / "bin" / "python")


def _short(text: str) -> str:
    try:
        return text if text.isdecimal() else f"{float(text):.3f}"
    except ValueError:
        return text or "n/a"


if __name__ == "__main__":
    main()
