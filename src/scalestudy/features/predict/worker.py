"""`python -m scalestudy.features.predict.worker JOB RANK`: one process that uses a model; JOB is a file.

It writes what the job (`job.ModelJob`) asks for, then `done-RANK.json` beside it; or `error-RANK.json`.
"""

import json
import os
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.cluster.placement import Placement
from scalestudy.data.loading.reader import reader_of
from scalestudy.data.loading.slices import Slice
from scalestudy.data.store.prepared import Prepared
from scalestudy.data.types import IGNORE
from scalestudy.engines.base import Engine, Trainer, engine_of
from scalestudy.engines.group import join
from scalestudy.features.predict.job import ENDS_WITH, ModelJob
from scalestudy.features.predict.predict_share import predict_share
from scalestudy.hardware import cores
from scalestudy.hardware.process import end_with
from scalestudy.study.engines import engine_traits
from scalestudy.study.model_record import ModelRecord
from scalestudy.study.point import Point
from scalestudy.study.strategies import references
from scalestudy.training.gallery import gallery_of
from scalestudy.training.reading import in_channels, read_rows
from scalestudy.util.errors import explained
from scalestudy.util.files import write_atomically
from scalestudy.util.imports import without_unused

PIXELS_AT_ONCE = 2**20
"""Most pixels of inputs that are evaluated together."""
_ON_CPU = {"tf32": "float32"}
"""Arithmetic of GPUs, and what CPUs compute instead."""


def main(arguments: list[str]) -> int:
    """Do this process's share."""
    path, rank = Path(arguments[0]), int(arguments[1])
    if ENDS_WITH in os.environ:
        end_with(int(os.environ[ENDS_WITH]))
    try:
        answer = _done(ModelJob.model_validate_json(path.read_bytes()), rank, path.parent)
    except Exception as error:
        traceback.print_exc()
        reason = explained(error)
        words: dict[str, object] = {"received": repr(error)}
        if reason:
            words = {"expected": reason.expected, "received": reason.received, "action": reason.action}
            words["code"] = reason.exit_code
        _write(path.parent / f"error-{rank}.json", words)
        return reason.exit_code if reason else 1
    _write(path.parent / f"done-{rank}.json", answer)
    return 0


def _done(job: ModelJob, rank: int, folder: Path) -> dict[str, Any]:
    with without_unused(engine_traits(job.record.engine).unused):
        engine = engine_of(job.record.engine)
        engine.set_up(_point(job.record, job.device), threads=len(cores.granted()), device=job.device)
    if job.action == "export":
        engine.export(job.model, job.record, job.out, job.form)
        return {}
    if job.action == "evaluate":
        return evaluated(engine, job, folder)
    model = engine.inference(job.model, job.record)
    if job.action == "gallery":
        rows, prepared = np.array(job.rows, np.int64), Prepared.open(job.prepared)
        gallery = gallery_of(
            model, job.record, prepared, rows, count=job.samples, better=job.better, of=len(rows)
        )
        return gallery.model_dump(mode="json")
    predict_share(model, job, rank, folder)
    return {}


def evaluated(engine: Engine, job: ModelJob, folder: Path) -> dict[str, Any]:
    """Results, confusion matrices and the number of samples; how far it is stands in `folder`."""
    prepared = Prepared.open(job.prepared)
    reader = reader_of(prepared)
    trainer = _trainer(engine, job, prepared)
    rows = np.array(job.rows, np.int64)
    size = max(1, min(64, PIXELS_AT_ONCE // int(np.prod(prepared.input_shape[:2]))))
    sums: list[NDArray[np.float64]] = []
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        inputs, targets = read_rows(prepared, part, reader)
        inputs = in_channels(inputs, job.record.input_shape[2])
        targets = renumbered(targets, job.classes, masks=prepared.kind == "masks")
        more = trainer.evaluate((Slice(inputs[None], targets[None], 0, len(part), len(part)),))
        sums = [a + b for a, b in zip(sums, more, strict=True)] if sums else more
        write_atomically(folder / "progress", str(start + len(part)), durable=False)
    return {"results": trainer.results(sums), "matrices": trainer.matrices(sums), "samples": len(rows)}


def renumbered(targets: NDArray[Any], classes: list[int], *, masks: bool) -> NDArray[Any]:
    """Class indices of a set as those of a model; what is ignored stays so."""
    if classes == sorted(range(len(classes))):
        return targets
    table = np.arange(256 if masks else len(classes), dtype=np.int64)
    table[: len(classes)] = classes
    if masks:
        table[IGNORE] = IGNORE
    return np.ascontiguousarray(table[targets].astype(targets.dtype))


def _trainer(engine: Engine, job: ModelJob, prepared: Prepared) -> Trainer:
    """The task of a model, built for a data set, with the model's weights."""
    record = job.record
    # The task sees the model's channels and classes, whatever those of the set are.
    seen = replace(
        prepared, input_shape=(*prepared.input_shape[:2], record.input_shape[2]), classes=record.classes,
        class_names=tuple(record.class_names),
    )  # fmt: skip
    alone = Placement(0, 1, 0, 1, 0, ("localhost",), "alone")
    joined = join(references(record.engine)[0], alone, workers=1, device=job.device)
    trainer = engine.trainer(_point(record, job.device), seen, np.ones(1), joined)
    trainer.restore(job.model)
    return trainer


def _point(record: ModelRecord, device: str) -> Point:
    """One worker alone, with the precision that the model was trained with."""
    train = record.rebuilt.model_dump() | {"deterministic": device == "cpu"}
    if device == "cpu":
        train["precision"] = _ON_CPU.get(train["precision"], train["precision"])
    alone = references(record.engine)[0]
    point = Point.model_validate({
        "name": "use", "study": "use", "task": record.task, "engine": record.engine, "strategy": alone,
        "workers": 1, "seed": 0,
        "data": {"source": "none", **{k: v for k, v in record.data.items() if k != "source"}},
        "train": train, "terms": {"implementation": alone, "launch": {"device": device}},
    })  # fmt: skip
    return point.with_files("", "", record.class_weights)


def _write(path: Path, answer: dict[str, Any]) -> None:
    write_atomically(path, json.dumps(answer), durable=False)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # the framework's threads are not waited for
