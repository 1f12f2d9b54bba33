"""Small studies for the tests' clusters: their files and results."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import paths
from clusters import Cluster
from scalestudy.analysis.costs import cost_columns
from scalestudy.analysis.study_table import columns
from scalestudy.plugins.strategies import traits

TIMES = (
    "throughput",
    "training_seconds",
    "speedup",
    "efficiency",
    "speedup_training",
    "efficiency_training",
    "wall_seconds",
    "planned_seconds",
    "speedup_wall",
    "useful",
)
"""Columns of the report that are measured times or derived from them."""
PAID = columns()[columns().index("cost") : columns().index("worst_quality")]
ABOUT_TIMES = {
    "oversubscribed",
    "baseline",
    "speedup_note",
    "speedup_basis",
    *cost_columns(),
    *PAID,
} - {"flops_per_sample"}
"""Columns that qualify those times, or report resources used."""

SMALL_UNET = paths.SMALL_UNET.read_text()

DENSE_TASK = '''
"""One layer: what is shown of jobs does not depend on the model, and this one compiles at once."""
import keras

loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]


def model(data):
    return keras.Sequential([keras.Input(data.input_shape), keras.layers.Flatten(),
                             keras.layers.Dense(data.classes, activation="softmax")])
'''
SLOW_TASK = (
    DENSE_TASK
    + """
import os
import time


class Slow(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if "SLURM_JOB_ID" in os.environ and "SLURM_RESTART_COUNT" not in os.environ:
            time.sleep(1)


def callbacks():
    return [Slow()]
"""
)
"""In a job, each epoch takes a second longer until the job is requeued."""
HELD_TASK = (
    DENSE_TASK
    + """
import os
import time
from pathlib import Path

HERE = Path(__file__).parent


class Held(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if "SLURM_JOB_ID" in os.environ and (HERE / f"hold-{epoch + 1}").exists():
            (HERE / f"held-{epoch + 1}").touch()
            while (HERE / f"hold-{epoch + 1}").exists():
                time.sleep(0.1)


def callbacks():
    return [Held()]
"""
)
"""In a job, epoch E does not end while a file `hold-E` exists beside the task; `held-E` marks the wait."""


def write_site(folder: Path, **keys: Any) -> Path:
    """Write a site profile beside a study: two workers per node, no GPUs, the account `research`."""
    given = {
        "account": "research",
        "cpus_per_node": 4,
        "tasks_per_node": 2,
        "time_limit": "00:10:00",
        "exclusive": True,
    }
    file = folder / "site.toml"
    file.write_text(
        "".join(f"{key} = {_toml(value)}\n" for key, value in (given | keys).items())
    )
    return file


def write_study(
    cluster: Cluster,
    folder: Path,
    *,
    name: str = "study",
    on: str = "slurm",
    task: str | None = None,
    data: Mapping[str, Any] | None = None,
    epochs: int = 2,
    batch_size: int = 64,
    **sweep: Sequence[Any],
) -> Path:
    """Write a study file; `sweep` overrides strategy, workers and seed.

    Its data are prepared, once for all studies of a cluster. The default task has one layer.
    """
    file = folder / f"{name}.toml"
    task = task or shared_task(cluster, "dense", DENSE_TASK)
    sections = {
        "data": {
            "source": "digits",
            "cache": str(cluster.root / "cache"),
            **(data or {}),
        },
        "train": {"epochs": epochs, "batch_size": batch_size},
        "launch": {"on": on} | ({"site": "site.toml"} if on == "slurm" else {}),
        "sweep": {"strategy": ["native"], "workers": [1], "seed": [0], **sweep},
    }
    lines = [f"task = {_toml(task)}"]
    for title, keys in sections.items():
        lines += [
            f"[{title}]",
            *(f"{key} = {_toml(value)}" for key, value in keys.items()),
        ]
    file.write_text("\n".join(lines) + "\n")
    own = folder / task if task.endswith(".py") else task
    engines = {
        traits(name).engine for name in sections["sweep"]["strategy"]
    }  # each engine builds the model
    what = str(own), _toml(sections["data"]), *sorted(engines)
    if what not in cluster.prepared:
        cluster.scalestudy("data", "prepare", file)
        cluster.prepared.add(what)
    return file


def shared_task(cluster: Cluster, name: str, text: str) -> str:
    """Write a task file that several studies of a cluster share, so that data are prepared once."""
    file = cluster.root / f"{name}.py"
    file.write_text(text)
    return str(file)


def results_of(study: Path) -> Path:
    return study.parent / "studies" / study.stem


def newest_run(study: Path, point: str) -> Path:
    return sorted((results_of(study) / "points" / point).glob("run-*"))[-1]


def job_of(study: Path, point: str) -> str:
    job: str = json.loads((newest_run(study, point) / "job.json").read_text())["job"]
    return job


def result(study: Path, point: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (newest_run(study, point) / "result.json").read_text()
    )
    return found


def epochs(study: Path, point: str) -> list[dict[str, Any]]:
    lines = (newest_run(study, point) / "epochs.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def log(study: Path, point: str, name: str = "job") -> str:
    file = newest_run(study, point) / "logs" / f"{name}.log"
    return file.read_text() if file.exists() else ""


def rows(cluster: Cluster, study: Path) -> dict[tuple[str, int], dict[str, str]]:
    """The report's rows without times, by implementation and workers."""
    text = cluster.run_quietly("report", results_of(study), "--format", "csv")
    table = {}
    for row in csv.DictReader(io.StringIO(text)):
        kept = {
            key: value
            for key, value in row.items()
            if not _is_time(key) and key not in ABOUT_TIMES
        }
        table[row["implementation"], int(row["workers"])] = kept
    return table


def _is_time(column: str) -> bool:
    return column.removesuffix("_low").removesuffix("_high") in TIMES


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items())
            + "}"
        )
    return json.dumps(value)
