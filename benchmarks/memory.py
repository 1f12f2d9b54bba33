"""How often a node holds the prepared set in memory: pages of the mapped file, summed over its workers.

`.venv/bin/python benchmarks/memory.py` runs 1, 2 and 4 workers with Horovod, or multiworker if Horovod is not
installed. From the second epoch on it reads the kernel's figures for the file's pages in each process: Rss
(all pages mapped by a process) and Pss (each page divided by the number of processes that share it). The sum
of Pss is the memory used on the node.
"""

import tempfile
from pathlib import Path

import numpy as np
import psutil

from scalestudy.config.expand import expand
from scalestudy.config.parse import load_study
from scalestudy.config.settings import DataSettings
from scalestudy.data.preparation import prepare
from scalestudy.data.split import ensure_split
from scalestudy.engines.tensorflow.installation import library_file as horovod_built
from scalestudy.launch.local_run import run_steps
from scalestudy.store.study_folder import StudyFolder

STUDY = """
task = "linear.py"
[train]
epochs = 8
batch_size = 512
batch = "global"
[sweep]
strategy = ["{strategy}"]
workers = [1, 2, 4]
seed = [0]
"""
LINEAR = """
import keras
data = "images.npz"
def model(data):
    return keras.Sequential([keras.Input(data.input_shape), keras.layers.Flatten(),
                             keras.layers.Dense(data.classes, activation="softmax")])
loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
"""  # so small a model that reading dominates


def pages(file: Path) -> tuple[int, int]:
    """Sum of Rss and of Pss of the file's pages over all worker processes, in bytes."""
    rss = pss = 0
    for process in psutil.process_iter(["cmdline"]):
        if "scalestudy.worker" not in (process.info["cmdline"] or []):
            continue
        try:
            for mapped in process.memory_maps():
                if mapped.path == str(file):
                    rss += mapped.rss
                    pss += mapped.pss
        except psutil.Error:
            continue
    return rss, pss


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "linear.py").write_text(LINEAR)
        rng = np.random.default_rng(0)
        x = rng.integers(0, 256, (100_000, 28, 28)).astype("uint8")
        np.savez(folder / "images.npz", x_train=x, y_train=rng.integers(0, 10, len(x)))
        prepared = prepare(
            DataSettings(source=str(folder / "images.npz"), cache=str(folder))
        )
        split = ensure_split(prepared, None, 0)
        file = folder / "study.toml"
        file.write_text(
            STUDY.format(strategy="horovod" if horovod_built() else "multiworker")
        )
        study = load_study(file)
        points = expand(study, gpus=0, cores=2)
        store = StudyFolder.create_or_open(
            folder / "study", study, points, file.read_text()
        )
        array = (prepared.path / "inputs.npy").resolve()
        size = array.stat().st_size
        print(
            f"prepared inputs: {size / 2**20:.1f} MiB (as float32: {size * 4 / 2**20:.1f} MiB a worker)"
        )
        for point in points:
            seen = (0, 0)
            for _ in run_steps(
                store, point.with_files(str(prepared.path), str(split.path))
            ):
                run = store.runs(point.name)[-1]
                if (progress := run.progress()) is not None and progress.epoch >= 2:
                    seen = max(seen, pages(array), key=lambda pair: pair[1])
            assert run.result(), run.failure()
            print(
                f"{point.workers} workers: held by the node {seen[1] / size:.2f} x the set (Pss), "
                f"seen by its processes {seen[0] / size:.2f} x (Rss)",
                flush=True,
            )


if __name__ == "__main__":
    main()
