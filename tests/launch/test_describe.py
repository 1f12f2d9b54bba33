"""The contents of a user's task file, with and without the framework."""

import pytest

from data_settings import data_of
from few_digits import few_digits
from scalestudy.data.store.preparation import prepare
from scalestudy.launch.environments import build_task
from scalestudy.util.errors import UserError

TASK = """
import keras

data = "digits"
kind: str = "classes"
kind = "classes"


def model(data):
    data = "not this one"
    path = keras.utils.get_file("head.weights", {url!r})
    made = keras.Sequential([keras.Input(data and (8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(10)])
    open(path).close()
    return made


loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
"""
SILENT = """
import keras


class Silent(keras.Model):
    def __init__(self, units):
        super().__init__()
        self.last = keras.layers.Dense(units)

    def call(self, inputs):
        return self.last(keras.ops.reshape(inputs, (-1, 64)))


def model(data):
    made = Silent(data.classes)
    made(keras.ops.zeros((1, *data.input_shape)))
    return made


loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
"""


@pytest.fixture(scope="module")
def info(tmp_path_factory):
    """Prepared digits."""
    cache = tmp_path_factory.mktemp("cache")
    return {"prepared": str(prepare(data_of(few_digits(cache, 20), cache=cache)).path)}


@pytest.fixture
def task(tmp_path, monkeypatch):
    """A task whose model needs a file of weights, and an empty Keras folder."""
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    (tmp_path / "served").write_text("weights")
    file = tmp_path / "task.py"
    file.write_text(TASK.format(url=(tmp_path / "served").as_uri()))
    return file


@pytest.mark.engine
def test_building_a_model_fetches_its_weights_into_keras_folder(task, tmp_path, info):
    build_task(task, info)
    assert (tmp_path / "keras" / "datasets" / "head.weights").read_text() == "weights"


@pytest.mark.engine
def test_weights_that_cannot_be_fetched_are_told_in_the_tasks_own_words(task, tmp_path, info):
    (tmp_path / "served").unlink()
    with pytest.raises(UserError, match="served"):
        build_task(task, info)


@pytest.mark.engine
def test_a_model_that_could_not_be_saved_is_refused_before_any_run(tmp_path, info):
    (tmp_path / "silent.py").write_text(SILENT)
    with pytest.raises(UserError, match="Received Silent: ") as caught:
        build_task(tmp_path / "silent.py", info)
    assert "get_config()" in caught.value.action


@pytest.mark.engine
@pytest.mark.parametrize(
    ("text", "received"),
    [
        ("import sys\nsys.exit(0)\n", r"sys\.exit\(0\) \(t\.py, line 2\)"),
        ("def model(data):\n    raise ValueError('no')\n", r"ValueError: no \(t\.py, line 2, in model\)"),
        ("import os\nos.kill(os.getpid(), 9)\n", "its process was ended by SIGKILL"),
    ],
)
def test_a_file_that_ends_the_program_is_told_so_and_where(tmp_path, text, received, info):
    rest = "loss = 'mse'\nmetrics = ['accuracy']\n"
    (tmp_path / "t.py").write_text(text + rest)
    with pytest.raises(UserError, match=received):
        build_task(tmp_path / "t.py", info)
