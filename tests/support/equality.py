"""Cases of the equality tests: `steps.py` computes them in processes of their own; compare their results."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from data_settings import data_of
from few_digits import few_digits
from paths import (
    CNN_WITHOUT_DROPOUT,
    OWN_TASK,
    SMALL_UNET,
    SOURCE,
    SUPPORT,
    TORCH_BUFFERS,
)
from scalestudy.cluster.private_files import new_secret
from scalestudy.data.preparation import prepare
from scalestudy.data.split import ensure_split
from scalestudy.data.store.prepared import Prepared
from scalestudy.plugins.strategies import traits

STEPS = 20
SECRET = new_secret()
GLOBAL_BATCH = 11  # of 34 training samples: the last step of an epoch has one sample for all workers
TASKS = {
    "cnn": "cnn",
    "plain": str(CNN_WITHOUT_DROPOUT),
    "buffers": str(TORCH_BUFFERS),
    "unet": str(SMALL_UNET),
    "own": str(OWN_TASK),
}
TOLERANCE = {"float64": 1e-8, "float32": 1e-4}
CHANGED = {
    "cnn": {"augment": "flip, rotate, crop, contrast, noise"},
    "unet": {"augment": "flip, rotate, crop, brightness, noise"},
}
"""Augmentation of the training samples, by task."""


def prepared_sets(
    cache: Path, tasks: Iterable[str] = TASKS
) -> dict[str, dict[str, str]]:
    """Prepared files of a small set and of its split, by task."""

    def of_task(task: str) -> tuple[Prepared, float]:
        if task == "unet":
            return prepare(
                data_of("indents:42", image_size=(40, 56), cache=cache)
            ), 8 / 42
        if task == "own":
            return prepare(data_of(OWN_TASK, read=OWN_TASK, cache=cache)), 14 / 48
        return prepare(data_of(few_digits(cache, 60), cache=cache)), 26 / 60

    sets = {task: of_task(task) for task in tasks}
    return {
        task: {
            "prepared": str(prepared.path),
            "split": str(ensure_split(prepared, share, 0).path),
        }
        for task, (prepared, share) in sets.items()
    }


def case(
    data: dict[str, dict[str, str]],
    task: str,
    implementation: str,
    workers: int,
    precision: str,
    sync: bool = True,
    xla: bool = False,
    changed: dict[str, Any] | None = None,
    label: str = "",
    orders: dict[str, Any] | None = None,
    initial: Path | None = None,
    **launch: str,
) -> dict[str, Any]:
    """A case; `changed` are keys of [train], `label` ends its name, `orders` further keys of `steps.py`.

    Cases with the same folder `initial` begin with the same weights on all engines.
    """
    label = label or "changed" * (changed is not None)
    name = f"{task}-{implementation}{workers}-{precision}-{'sync' if sync else 'own'}{'-xla' if xla else ''}"
    name += "".join(f"-{value}" for value in launch.values()) + f"-{label}" * bool(
        label
    )
    train = {
        "epochs": 5,
        "batch_size": GLOBAL_BATCH,
        "batch": "global",
        "optimizer": "momentum",
        "learning_rate": 0.05 if task in ("cnn", "plain", "buffers") else 0.001,
        "schedule": "constant",
        "precision": precision,
        "sync_batch_norm": sync,
        "xla": xla,
        **(changed or {}),
    }
    files = {}
    if initial is not None:
        files = {
            "initial": str(
                initial
                / f"{task}-{'double' if precision == 'float64' else 'single'}.npz"
            )
        }
    point = {
        "name": name,
        "study": "equality",
        "task": TASKS[task],
        "strategy": implementation,
        "engine": traits(implementation).engine,
        "workers": workers,
        "seed": 1,
        "train": train,
        "data": {"source": "digits"},
        "files": data[task] | files,
        "terms": {
            "implementation": implementation,
            "launch": {"communication": "ring" if xla else "auto", **launch},
        },
    }
    return {"name": name, "steps": STEPS, "point": point, **(orders or {})}


def start(
    cases: list[dict[str, Any]],
    size: int,
    port: int,
    out: Path,
    timeline: Path | None = None,
) -> list[subprocess.Popen[str]]:
    file = out / f"{cases[0]['name']}.json"
    file.write_text(json.dumps(cases))
    processes = []
    for rank in range(size):
        position = {
            "RANK": rank,
            "WORLD_SIZE": size,
            "LOCAL_RANK": rank,
            "LOCAL_WORLD_SIZE": size,
            "MASTER_ADDR": "localhost",
            "MASTER_PORT": port,
            "TF_CPP_MIN_LOG_LEVEL": 3,
            "PYTHONPATH": SOURCE,
            "SCALESTUDY_SECRET": SECRET,
        }
        if timeline is not None:
            position["HOROVOD_TIMELINE"] = timeline
        environment = os.environ | {key: str(value) for key, value in position.items()}
        command = [sys.executable, str(SUPPORT / "steps.py"), str(file), str(out)]
        processes.append(
            subprocess.Popen(
                command,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    return processes


def finish(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        output, _ = process.communicate(timeout=1200)
        assert process.returncode == 0, output[-3000:]


def weights(out: Path, name: str, rank: int = 0) -> tuple[list[Any], list[Any], Any]:
    stored = np.load(out / f"{name}-{rank}.npz")
    count = sum(key.startswith("after") for key in stored)
    return (
        [stored[f"before_{i}"] for i in range(count)],
        [stored[f"after_{i}"] for i in range(count)],
        stored,
    )


def assert_equal(out: Path, one: str, other: str, tolerance: float) -> None:
    before, after, stored = weights(out, one)
    before_other, after_other, stored_other = weights(out, other)
    largest_change = max(
        np.abs(a - b).max() for a, b in zip(after, before, strict=True)
    )
    assert largest_change > 1e-3, "the case trains nothing"
    assert all(np.array_equal(a, b) for a, b in zip(before, before_other, strict=True))
    difference = max(
        np.abs(a - b).max() for a, b in zip(after, after_other, strict=True)
    )
    assert difference <= tolerance * largest_change
    for measured in ("loss", "validation"):
        np.testing.assert_allclose(
            stored[measured], stored_other[measured], rtol=tolerance
        )
