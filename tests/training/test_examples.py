"""The example tasks are read, pass the trial, learn, and are trained equally."""

from pathlib import Path

import numpy as np
import pytest

from data_settings import data_of
from scalestudy.data.preparation import prepare
from scalestudy.data.split import ensure_split
from scalestudy.launch.environments import build_task

pytestmark = pytest.mark.engine

EXAMPLES = Path(__file__).parents[2] / "examples"


def add(sets, cache, name, **keys):
    """Prepare an example's data under its name."""
    file = EXAMPLES / f"{name}.py"
    prepared = prepare(data_of(keys.pop("source", file), cache=cache, **keys))
    sets[name] = prepared, ensure_split(prepared, 0.2, 0)
    return str(file), prepared


def weights(made):
    """Return the weights before and after an epoch, and the record of the epoch."""
    before = made.trainer.state.weights()[0]
    record = next(iter(made.epoch_records()))
    return before, made.trainer.state.weights()[0], record


def assert_trained_alike(one, other):
    """Two sessions start and end with the same weights, and they learn."""
    (before, after, record), (_, others, another) = weights(one), weights(other)
    change = max(np.abs(a - b).max() for a, b in zip(before, after, strict=True))
    assert change > 1e-3
    assert (
        max(np.abs(a - b).max() for a, b in zip(after, others, strict=True))
        <= 1e-8 * change
    )
    assert record.loss == pytest.approx(another.loss, rel=1e-8)
    assert record.validation == pytest.approx(another.validation, rel=1e-6)


def test_tabular_regression(sets, session, tmp_path):
    file, prepared = add(sets, tmp_path, "diabetes", read=EXAMPLES / "diabetes.py")
    assert build_task(file, {"prepared": str(prepared.path)}) == ()
    settings = {"precision": "float64", "batch_size": 50, "learning_rate": 1e-5}
    made = [
        session(file, *workers, data="diabetes", **settings)
        for workers in (("single", 1), ("virtual", 3))
    ]
    assert_trained_alike(*made)


def test_text_classification(sets, session, tmp_path):
    file, prepared = add(sets, tmp_path, "topics", read=EXAMPLES / "topics.py")
    assert prepared.class_names == (
        "linalg",
        "optimize",
        "signal",
        "sparse",
        "spatial",
        "stats",
    )
    split = sets["topics"][1]
    sides = [
        {prepared.groups[row] for row in rows.tolist()}
        for rows in (split.train, split.validation)
    ]
    assert not sides[0] & sides[1], "a file on both sides"
    settings = {"precision": "float64", "batch_size": 200, "learning_rate": 0.5}
    made = [
        session(file, *workers, data="topics", **settings)
        for workers in (("single", 1), ("virtual", 3))
    ]
    assert_trained_alike(*made)


def test_a_segmentation_model_of_another_library(sets, session, tmp_path):
    pytest.importorskip("keras_hub")
    file, _ = add(sets, tmp_path, "deeplab", source="indents:20", image_size=(32, 32))
    settings = {"precision": "float64", "batch_size": 5, "sync_batch_norm": True}
    made = [
        session(file, *workers, data="deeplab", **settings)
        for workers in (("single", 1), ("mirrored", 2))
    ]
    assert_trained_alike(*made)
