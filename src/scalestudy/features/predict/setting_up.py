"""An engine set up for the use of a model, and its trainer where a task is evaluated."""

import numpy as np

from scalestudy.cluster.placement import Placement
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.base import Engine, Trainer, engine_of
from scalestudy.engines.group import join
from scalestudy.hardware import cores
from scalestudy.study.engines import engine_traits
from scalestudy.study.model_record import ModelRecord
from scalestudy.study.point import Point
from scalestudy.study.strategies import references
from scalestudy.util.imports import without_unused

_ON_CPU = {"tf32": "float32"}
"""Arithmetic of GPUs, and what CPUs compute instead."""


def engine_for(record: ModelRecord, device: str) -> Engine:
    """The engine, set up in this process for a model, with the precision that it was trained with."""
    with without_unused(engine_traits(record.engine).unused):
        engine = engine_of(record.engine)
        engine.set_up(_point(record, device), threads=len(cores.granted()), device=device)
    return engine


def trainer_of(engine: Engine, record: ModelRecord, prepared: Prepared, device: str) -> Trainer:
    """The task of a model, built for a data set; its weights are still to be restored."""
    placement = Placement(0, 1, 0, 1, 0, ("localhost",), "alone")
    joined = join(_alone(record), placement, workers=1, device=device)
    return engine.trainer(_point(record, device), prepared, np.ones(1), joined)


def _alone(record: ModelRecord) -> str:
    """The strategy of a process that computes for itself."""
    return references(record.engine)[0]


def _point(record: ModelRecord, device: str) -> Point:
    train = record.rebuilt.model_dump() | {"deterministic": device == "cpu"}
    if device == "cpu":
        train["precision"] = _ON_CPU.get(train["precision"], train["precision"])
    alone = _alone(record)
    point = Point.model_validate({
        "name": "use", "study": "use", "task": record.task, "engine": record.engine, "strategy": alone,
        "workers": 1, "seed": 0,
        "data": {"source": "none", **{k: v for k, v in record.data.items() if k != "source"}},
        "train": train, "terms": {"implementation": alone, "launch": {"device": device}},
    })  # fmt: skip
    return point.with_files("", "", record.class_weights)
