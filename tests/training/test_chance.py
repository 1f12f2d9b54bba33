"""The quality of the best constant answer, compared with values counted by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from data_settings import data_of
from scalestudy.data.preparation import prepare
from scalestudy.training import chance
from scalestudy.training.chance import constant_quality

TASK = """
import keras
from keras import layers
from scalestudy.tasks.label_metrics import IoU
def model(data):
    return keras.Sequential([keras.Input(data.input_shape), {layers}])
loss = "mse"
metrics = [{metric}]
"""
SCORES = "layers.Flatten(), layers.Dense(3)"
VALUE = "layers.Flatten(), layers.Dense(1)"
PIXELS = "layers.Conv2D(1, 1)"
PLAIN = "layers.Conv2D(1, 1), layers.Reshape(data.input_shape[:2])"


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Ten labels of three classes, six of them 1; four masks with a quarter of foreground."""
    folder = tmp_path_factory.mktemp("sets")
    images = np.zeros((10, 4, 4), "uint8")
    images[np.arange(10), 0, 0] = np.arange(10)
    np.savez(
        folder / "labels.npz",
        x_train=images,
        y_train=np.array([0, 1, 1, 1, 2, 1, 1, 1, 2, 0]),
    )
    masks = np.zeros((4, 4, 4), "uint8")
    masks[:, 0] = 1
    np.savez(folder / "masks.npz", x_train=images[:4], y_train=masks)
    return {
        name: prepare(data_of(str(folder / f"{name}.npz"), cache=folder))
        for name in ("labels", "masks")
    }


@pytest.fixture
def quality(sets, framework, placement, tmp_path):
    """Return the quality of the best constant answer over a whole set: quality(set, layers, metric)."""
    from scalestudy.engines.group import join
    from scalestudy.engines.tensorflow.trainer import CompiledEvaluation
    from scalestudy.tasks.load import load_task
    from scalestudy.tasks.task import DataInfo

    def of(name: str, layers: str, metric: str) -> float | None:
        (tmp_path / "t.py").write_text(TASK.format(layers=layers, metric=metric))
        data = sets[name]
        task = load_task(
            str(tmp_path / "t.py"), DataInfo(data.kind, data.input_shape, data.classes)
        )
        alone = join("single", placement, workers=1, device="cpu")
        evaluation = CompiledEvaluation(task, alone.replicas, scale=1.0)
        trainer = SimpleNamespace(constant=evaluation.constant, sense=task.sense)
        return constant_quality(trainer, data, np.arange(data.count))

    return of


@pytest.mark.engine
@pytest.mark.parametrize(
    ("name", "layers", "metric", "expected"),
    [
        ("labels", SCORES, '"accuracy"', 0.6),
        ("masks", PIXELS, "IoU()", (16 + 1) / (64 + 1)),
        ("masks", PLAIN, 'keras.metrics.BinaryIoU([1], name="iou")', 0.25),
        ("masks", PIXELS, '"binary_accuracy"', 0.75),
        ("masks", PLAIN, '"mse"', 0.25 * 0.75),
    ],
)
@pytest.mark.parametrize("at_once", [chance.AT_ONCE, 1])
def test_it_is_the_best_that_one_answer_has(
    quality, monkeypatch, name, layers, metric, expected, at_once
):
    monkeypatch.setattr(chance, "AT_ONCE", at_once)
    assert quality(name, layers, metric) == pytest.approx(expected, abs=1e-6)


@pytest.mark.engine
def test_outputs_that_are_not_of_classes_have_none(quality):
    assert quality("labels", VALUE, '"mae"') is None
