"""Workers never download; the files that a task needs are fetched before."""

import pytest

from scalestudy.util.errors import UserError

pytestmark = pytest.mark.engine

TASK = """
import keras

kept = keras.utils.get_file("head.weights", {url!r})
model = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(10)])
loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
"""


@pytest.fixture
def load(framework, tmp_path, monkeypatch):
    """Load a task as a worker does, into an empty Keras folder; a file serves its weights."""
    from keras.src.backend import config
    from keras.src.utils import file_utils

    from scalestudy.engines.keras.private import forbid_downloads
    from scalestudy.tasks.load import load_task
    from scalestudy.tasks.task import DataInfo

    monkeypatch.setattr(file_utils, "urlretrieve", file_utils.urlretrieve)
    monkeypatch.setattr(config, "_KERAS_DIR", str(tmp_path / "keras"))
    forbid_downloads()
    (tmp_path / "served").write_text("weights")
    file = tmp_path / "task.py"
    file.write_text(TASK.format(url=(tmp_path / "served").as_uri()))
    return lambda: load_task(str(file), DataInfo("classes", (8, 8, 1), 10))


def test_a_task_whose_weights_are_not_there_is_refused_with_what_to_do(load, tmp_path):
    with pytest.raises(UserError, match=r"served in a worker.*scalestudy data prepare STUDY"):
        load()
    assert not list((tmp_path / "keras").rglob("head*"))


def test_a_task_whose_weights_are_there_is_built(load, tmp_path):
    kept = tmp_path / "keras" / "datasets" / "head.weights"
    kept.parent.mkdir(parents=True)
    kept.write_text("weights")
    assert load().model.count_params() == 650
