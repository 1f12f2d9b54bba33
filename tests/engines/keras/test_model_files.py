"""An exported model loads without this package and computes the same outputs."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import keras
import numpy as np
import pytest

from scalestudy.engines.keras.export import export_model
from scalestudy.engines.keras.model_files import load_model
from scalestudy.store.model_record import ModelRecord
from scalestudy.tasks.load import load_task, module_of
from scalestudy.tasks.task import DataInfo
from scalestudy.util.errors import UserError

pytestmark = pytest.mark.engine

FORMS = {"m.keras": "keras", "m": "savedmodel"}
"""Names of exported models, and their forms."""
FRESH = """
import importlib.util, json, sys
sys.path.append(sys.argv[1])
import keras, numpy as np, tensorflow as tf
images = np.load(sys.argv[2])
model = keras.saving.load_model(sys.argv[3])
saved = tf.saved_model.load(sys.argv[4])
print(json.dumps({
    "scalestudy": "scalestudy" in sys.modules, "takes": [str(model.inputs[0].dtype), list(model.input_shape)],
    "keras": np.asarray(model(images)).tolist(), "savedmodel": np.asarray(saved.serve(images)).tolist(),
}))
"""


@pytest.fixture(scope="module")
def model(framework):
    keras.utils.set_random_seed(0)
    made = load_task("cnn", DataInfo("classes", (8, 8, 1), 10)).model
    made.set_weights([weight * 3 for weight in made.get_weights()])
    return made


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).integers(0, 256, (5, 8, 8, 1)).astype(np.uint8)


def record(**more):
    values = {
        "task": "cnn",
        "kind": "classes",
        "input_shape": (8, 8, 1),
        "dtype": "uint8",
        "scale": 1 / 255,
        "class_names": [str(digit) for digit in range(10)],
    }
    return ModelRecord.model_validate({**values, **more})


def expected(model, images):
    return np.asarray(model(images.astype("float32") / 255))


@pytest.fixture(scope="module")
def exported(model, tmp_path_factory):
    """A folder with the model as `m.keras`, and as a SavedModel in `m`."""
    folder = tmp_path_factory.mktemp("exported")
    for name, form in FORMS.items():
        export_model(model, record(), str(folder / name), form)
    return folder


def test_it_loads_where_this_package_is_not(model, images, exported, tmp_path):
    np.save(tmp_path / "images.npy", images)
    # -I excludes PYTHONPATH and the working folder, -S excludes editable installs.
    words = [
        "-I",
        "-S",
        "-c",
        FRESH,
        sysconfig.get_path("purelib"),
        str(tmp_path / "images.npy"),
    ]
    done = subprocess.run(
        [sys.executable, *words, *FORMS],
        cwd=exported,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["scalestudy"] is False
    assert answer["takes"] == ["uint8", [None, 8, 8, 1]]
    # Unlike our workers, a plain process lets CPUs round the factors of products.
    assert np.allclose(answer["keras"], expected(model, images), atol=2e-3)
    assert np.allclose(answer["savedmodel"], answer["keras"], atol=1e-5)


def test_its_scaling_is_inside(model, images, exported):
    whole = load_model(str(exported / "m.keras"), record())
    assert np.allclose(whole(images), expected(model, images), atol=1e-6)


def test_what_was_there_is_replaced_whole_and_nothing_half_written_stays(
    model, exported, monkeypatch
):
    for name, form in FORMS.items():
        export_model(model, record(), str(exported / name), form)
    assert sorted(path.name for path in exported.iterdir()) == ["m", "m.keras"]

    def fail(*_):
        raise ValueError("no counterpart of layer X")

    monkeypatch.setattr("scalestudy.engines.keras.export.with_scaling", fail)
    with pytest.raises(ValueError, match="no counterpart"):
        export_model(model, record(), str(exported / "m.keras"), "keras")
    assert sorted(path.name for path in exported.iterdir()) == ["m", "m.keras"]


def test_onnx_without_its_packages_is_refused_with_what_to_install(
    model, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    with pytest.raises(
        UserError, match=r"no tf2onnx.*pip install 'scalestudy\[onnx\]'"
    ):
        export_model(model, record(), str(tmp_path / "m.onnx"), "onnx")
    assert not list(tmp_path.iterdir())


def test_onnx_says_the_same(model, images, tmp_path):
    pytest.importorskip("tf2onnx")
    runtime = pytest.importorskip("onnxruntime")
    export_model(model, record(), str(tmp_path / "m.onnx"), "onnx")
    session = runtime.InferenceSession(tmp_path / "m.onnx")
    (given,) = session.get_inputs()
    assert given.type == "tensor(uint8)"
    (found,) = session.run(None, {given.name: images})
    assert np.allclose(found, expected(model, images), atol=1e-4)


OWN = """
import keras

class Half(keras.layers.Layer):
    def call(self, inputs):
        return inputs / 2

def model(data):
    return keras.Sequential([
        keras.Input(data.input_shape), keras.layers.Flatten(),
        Half(), keras.layers.Dense(4), keras.layers.Lambda(lambda values: values * 3),
        keras.layers.Dense(data.classes, activation="softmax"),
    ])

loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
"""


@pytest.fixture
def own(framework, tmp_path):
    """A task file with a layer and a Lambda of its own."""
    task = tmp_path / "own.py"
    task.write_text(OWN)
    return task


def save_model_with_code(folder, *, shape):
    """Write a model whose Lambda would leave the file `mark`, and return its path."""
    mark = str(folder / "mark")
    attack = lambda values: (open(mark, "w").close(), values * 1.0)[1]  # noqa: E731 (stored as its bytecode)
    inputs = keras.Input(shape)
    outputs = keras.layers.Lambda(attack)(keras.layers.Flatten()(inputs))
    made = keras.Model(inputs, keras.layers.Dense(10, activation="softmax")(outputs))
    made.save(folder / "planted.keras")
    Path(mark).unlink()  # building it ran the code, too
    return folder / "planted.keras"


def test_a_model_of_a_task_with_code_of_its_own_is_built_by_the_task_and_only_weighted_by_the_file(
    own, images, tmp_path
):
    known = record(task=str(own))
    made = load_task(str(own), DataInfo.of_record(known)).model
    made.save(tmp_path / "m.keras")
    again = load_model(str(tmp_path / "m.keras"), known)
    assert np.array_equal(expected(again, images), expected(made, images))


@pytest.mark.parametrize(
    "change",
    [
        (
            'keras.layers.Dense(data.classes, activation="softmax")',
            'keras.layers.Activation("softmax")',
        ),
        ("Dense(4)", "Dense(16)"),
        ("Half()", "Half(), keras.layers.Dense(64)"),
    ],
)
def test_weights_of_another_model_are_refused(own, tmp_path, change):
    known = record(task=str(own))
    load_task(str(own), DataInfo.of_record(known)).model.save(tmp_path / "m.keras")
    own.write_text(OWN.replace(*change))
    with pytest.raises(UserError, match=r"do not change its task file"):
        load_model(str(tmp_path / "m.keras"), known)


def test_code_in_a_model_file_never_runs_whatever_its_record_names(own, tmp_path):
    path = save_model_with_code(tmp_path, shape=(8, 8, 1))
    keras.saving.load_model(path, safe_mode=False)(np.zeros((1, 8, 8, 1)))
    assert (tmp_path / "mark").exists(), "the attack would be seen"
    (tmp_path / "mark").unlink()
    for task in ("", "cnn", str(own)):
        with pytest.raises(UserError):
            load_model(str(path), record(task=task))
    assert not (tmp_path / "mark").exists()
    with pytest.raises(UserError, match="--task"):
        module_of("")


def test_a_torn_file_is_refused(own, tmp_path):
    (tmp_path / "m.keras").write_bytes(b"half of a")
    for task in ("cnn", str(own)):
        with pytest.raises(UserError, match="See that the file is whole"):
            load_model(str(tmp_path / "m.keras"), record(task=task))
