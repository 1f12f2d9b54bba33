"""Points and records of epochs with the values that a test does not care about."""

from typing import Any

from scalestudy.config.point import Point
from scalestudy.store.records import EpochRecord

TRAIN = {
    "epochs": 2,
    "batch_size": 8,
    "optimizer": "sgd",
    "learning_rate": 0.1,
    "schedule": "constant",
}


def made_point(
    strategy: str = "single", train: dict[str, Any] | None = None, **changes: Any
) -> Point:
    """Return a point; `train` changes settings of the training, `changes` replace other fields."""
    values = {
        "name": "single-w1-s0",
        "study": "test",
        "task": "cnn",
        "strategy": strategy,
        "workers": 1,
        "seed": 0,
        "data": {"source": "digits"},
        "train": TRAIN | (train or {}),
        "terms": {"implementation": strategy},
    }
    return Point.model_validate(values | changes)


def made_epoch(
    number: int, validation: dict[str, float] | None = None, **changes: Any
) -> EpochRecord:
    """Return the record of an epoch of one step in one second."""
    values = {
        "epoch": number,
        "steps": 1,
        "samples": 1,
        "learning_rate": 0.1,
        "loss": 1.0,
        "train_seconds": 1.0,
        "input_seconds": 0.0,
        "elapsed_training_seconds": number,
        "validation": validation or {},
    }
    return EpochRecord.model_validate(values | changes)
