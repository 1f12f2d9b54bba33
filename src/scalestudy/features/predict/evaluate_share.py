"""One process's share of an evaluation: sums over its rows; the first adds up those of all, and divides."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.data.loading.order import worker_slice
from scalestudy.data.loading.reader import reader_of
from scalestudy.data.loading.slices import Slice
from scalestudy.data.store.prepared import Prepared
from scalestudy.data.types import IGNORE
from scalestudy.engines.base import Engine
from scalestudy.features.predict.job import Job
from scalestudy.features.predict.setting_up import trainer_of
from scalestudy.training.reading import in_channels, read_rows
from scalestudy.util.files import write_atomically

PIXELS_AT_ONCE = 2**20
"""Most pixels of inputs that are computed together."""
POLL = 0.05


def evaluate_share(engine: Engine, job: Job, rank: int, folder: Path) -> dict[str, Any]:
    """Sum loss and metrics over this process's rows; on the first process those of all rows.

    Returns:
        {"results": values by name} on the first process; {} on others, which leave their sums in `folder`.
    """
    found = Prepared.open(job.prepared)
    reader = reader_of(found)
    # The task sees the model's channels and classes, whatever those of the set are.
    channels = job.record.input_shape[2]
    seen = replace(
        found,
        input_shape=(*found.input_shape[:2], channels),
        classes=job.record.classes,
        class_names=tuple(job.record.class_names),
    )
    trainer = trainer_of(engine, job.record, seen, job.device)
    trainer.restore(job.model)
    rows = np.array(job.rows, np.int64)
    mine = rows[slice(*worker_slice(len(rows), rank, job.size))]
    size = max(1, min(64, PIXELS_AT_ONCE // int(np.prod(found.input_shape[:2]))))
    sums: list[NDArray[np.float64]] = []
    for start in range(0, len(mine), size):
        part = mine[start : start + size]
        inputs, targets = read_rows(found, part, reader)
        inputs = in_channels(inputs, channels)
        targets = renumbered(targets, job.classes, masks=found.kind == "masks")
        call = (Slice(inputs[None], targets[None], 0, len(part), len(part)),)
        more = trainer.evaluate(call)
        sums = [a + b for a, b in zip(sums, more, strict=True)] if sums else more
        _progress(folder, rank, start + len(part))
    if rank:
        texts = json.dumps([np.asarray(each).tolist() for each in sums])
        write_atomically(folder / f"sums-{rank}.json", texts, durable=False)
        return {}
    for other in range(1, job.size):
        file = folder / f"sums-{other}.json"
        while not file.exists():  # whoever started us ends us if that process fails
            time.sleep(POLL)
        sums = [a + np.array(b) for a, b in zip(sums, json.loads(file.read_text()), strict=True)]
    return {"results": trainer.results(sums), "matrices": trainer.matrices(sums), "samples": len(rows)}


def renumbered(targets: NDArray[Any], classes: list[int], *, masks: bool) -> NDArray[Any]:
    """Class indices of a set as those of a model; what is ignored stays so."""
    if classes == sorted(range(len(classes))):
        return targets
    table = np.arange(256, dtype=np.int64) if masks else np.arange(len(classes), dtype=np.int64)
    table[: len(classes)] = classes
    if masks:
        table[IGNORE] = IGNORE
    return np.ascontiguousarray(table[targets].astype(targets.dtype))


def _progress(folder: Path, rank: int, done: int) -> None:
    write_atomically(folder / f"progress-{rank}", str(done), durable=False)
