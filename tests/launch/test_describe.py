"""What a user's task file says, with the framework and without."""

import sys

import pytest

from scalestudy.errors import UserError
from scalestudy.launch import describe
from scalestudy.machine import installed

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
INFO = {"kind": "classes", "input_shape": [8, 8, 1], "classes": 10, "ignore": None}


@pytest.fixture
def task(tmp_path, monkeypatch):
    """A task whose model takes a file of weights, and an empty folder of Keras."""
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    (tmp_path / "served").write_text("weights")
    file = tmp_path / "task.py"
    file.write_text(TASK.format(url=(tmp_path / "served").as_uri()))
    return file


def test_what_stands_in_the_file_is_told_without_starting_a_framework(task, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nonexistent")
    assert describe.describe_task(task) == {"data": "digits", "kind": "classes"}


def test_without_the_framework_what_is_computed_stays_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr(installed, "has_tensorflow", lambda: False)
    (tmp_path / "t.py").write_text('import os\nkind = "masks"\ndata = os.environ["DATA"]\n')
    assert describe.describe_task(tmp_path / "t.py") == {"data": None, "kind": "masks"}


@pytest.mark.engine
def test_what_is_computed_in_the_file_is_asked_of_it(tmp_path):
    (tmp_path / "t.py").write_text('data = "/".join(["a", "b"])\nkind = "masks"\n')
    assert describe.describe_task(tmp_path / "t.py") == {"data": "a/b", "kind": "masks"}


@pytest.mark.engine
def test_building_a_model_fetches_its_weights_into_keras_folder(task, tmp_path):
    assert describe.build_task(task, INFO) == 650
    assert (tmp_path / "keras" / "datasets" / "head.weights").read_text() == "weights"


@pytest.mark.engine
def test_weights_that_cannot_be_fetched_are_told_in_the_tasks_own_words(task, tmp_path):
    (tmp_path / "served").unlink()
    with pytest.raises(UserError, match="served"):
        describe.build_task(task, INFO)


@pytest.mark.engine
@pytest.mark.parametrize(
    ("text", "received"),
    [
        ("import sys\nsys.exit(0)\n", r"sys\.exit\(0\) \(t\.py, line 2\)"),
        ("def model(data):\n    raise ValueError('no')\n", r"ValueError: no \(t\.py, line 2, in model\)"),
        ("import os\nos.kill(os.getpid(), 9)\n", "its process was ended by SIGKILL"),
    ],
)
def test_a_file_that_ends_the_program_is_told_so_and_where(tmp_path, text, received):
    rest = "loss = 'mse'\nmetrics = ['accuracy']\n"
    (tmp_path / "t.py").write_text(text + rest)
    with pytest.raises(UserError, match=received):
        describe.build_task(tmp_path / "t.py", INFO)


@pytest.mark.engine
def test_what_a_file_prints_when_it_is_read_or_at_exit_is_no_answer(tmp_path):
    text = "import atexit, sys\natexit.register(print, 'bye')\nprint('{}', end='')\ndata = str('x')\n"
    (tmp_path / "t.py").write_text(text)
    assert describe.describe_task(tmp_path / "t.py")["data"] == "x"
