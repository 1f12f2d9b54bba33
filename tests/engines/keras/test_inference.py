"""A trained model gives the same outputs from every file format, for each sample by itself."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from data_settings import data_of
from few_digits import few_digits
from scalestudy.data.preparation import prepare
from scalestudy.engines.keras.inference import KerasInference, open_inference
from scalestudy.engines.tensorflow.engine import ENGINE
from scalestudy.features.model import model_worker
from scalestudy.features.model.model_job import ModelJob
from scalestudy.store.model_record import ModelRecord
from scalestudy.tasks.load import load_task
from scalestudy.tasks.task import DataInfo
from scalestudy.util.errors import UserError

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    return prepare(data_of(few_digits(cache, 40), cache=cache))


@pytest.fixture(scope="module")
def model(framework, prepared, tmp_path_factory):
    """A `.keras` file of a model of the digits, its record, and the model."""
    keras.utils.set_random_seed(0)
    made = load_task("cnn", DataInfo("classes", prepared.input_shape, 10)).model
    path = tmp_path_factory.mktemp("model") / "model.keras"
    made.save(path)
    record = ModelRecord(
        task="cnn",
        kind="classes",
        input_shape=prepared.input_shape,
        dtype="uint8",
        scale=prepared.scale,
        class_names=list(prepared.class_names),
    )
    return path, record, made


def test_stored_and_scaled_images_have_the_same_outputs(model, prepared):
    path, record, made = model
    images = prepared.inputs[:5]
    scaled = images.astype(np.float32) * np.float32(prepared.scale)
    opened = open_inference(str(path), record, tf.function)
    for inputs, scale in ((images, prepared.scale), (scaled, 1.0)):
        assert np.allclose(
            opened.outputs(inputs, scale), np.asarray(made(scaled)), atol=1e-6
        )


def test_each_sample_has_its_loss(model, prepared):
    path, record, made = model
    images, targets = prepared.inputs[:6], prepared.targets[:6]
    losses = open_inference(str(path), record, tf.function).losses(
        images, targets, prepared.scale
    )
    outputs = np.asarray(made(images.astype("float32") * prepared.scale))
    assert np.allclose(losses, -np.log(outputs[np.arange(6), targets]), atol=1e-5)


TOLD = """
import keras

def model(data):
    assert data.inputs.shape == data.input_shape and data.targets.classes == data.classes
    dense = keras.layers.Dense(data.classes, "softmax")
    return keras.Sequential([keras.Input(data.input_shape), keras.layers.Flatten(), dense])

loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
"""


def test_a_task_learns_of_its_data_what_it_did_in_training(
    framework, model, prepared, tmp_path
):
    task = tmp_path / "told.py"
    task.write_text(TOLD)
    made = load_task(str(task), DataInfo.of(prepared)).model
    made.save(tmp_path / "model.keras")
    record = model[1].model_copy(update={"task": str(task)})
    opened = open_inference(str(tmp_path / "model.keras"), record, tf.function)
    losses = opened.losses(prepared.inputs[:3], prepared.targets[:3], prepared.scale)
    outputs = np.asarray(made(prepared.inputs[:3].astype("float32") * prepared.scale))
    assert np.allclose(
        losses, -np.log(outputs[np.arange(3), prepared.targets[:3]]), atol=1e-5
    )


def test_a_model_of_several_outputs_is_refused(framework):
    several = KerasInference(
        lambda inputs, training: {"a": inputs, "b": inputs}, lambda: None
    )
    with pytest.raises(UserError, match="one of 2 outputs"):
        several.outputs(np.zeros((1, 2, 2, 1), np.uint8), 1.0)


def test_an_evaluation_counts_each_sample_once(model, prepared, tmp_path, monkeypatch):
    path, record, made = model
    monkeypatch.setattr(model_worker, "EVALUATED_PIXELS", 64 * 5)
    rows = list(range(3, 40))
    job = ModelJob(
        action="evaluate",
        model=str(path),
        record=record,
        prepared=str(prepared.path),
        rows=rows,
    )
    answer = model_worker.evaluate_set(ENGINE, job)
    targets = prepared.targets[rows]
    outputs = np.asarray(made(prepared.inputs[rows].astype("float32") * prepared.scale))
    losses = -np.log(outputs[np.arange(len(rows)), targets])
    assert answer["samples"] == len(rows)
    assert answer["results"]["loss"] == pytest.approx(losses.mean(), rel=1e-5)
    assert answer["results"]["accuracy"] == pytest.approx(
        (outputs.argmax(1) == targets).mean(), abs=1e-6
    )
