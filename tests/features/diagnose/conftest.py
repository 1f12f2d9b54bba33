"""A study of two workers whose loader is slow."""

from collections.abc import Callable
from pathlib import Path

import pytest

from few_digits import few_digits
from scalestudy.app.follow import Listener
from scalestudy.app.prepare import prepare_points, with_task_data
from scalestudy.config.parse import load_study
from scalestudy.launch.local import points_here
from scalestudy.store.study_folder import StudyFolder
from scalestudy.store.trained_code import add_trained

# A trivial model with a slow loader: the loader is slower under any load of the machine.
TASK = """
import keras
train = {"epochs": 2, "batch_size": 32, "optimizer": "sgd", "learning_rate": 0.1, "schedule": "constant"}
loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
def model(data):
    dense = keras.layers.Dense(data.classes, activation="softmax")
    return keras.Sequential([keras.Input(data.input_shape), keras.layers.Flatten(), dense])
"""
STUDY = """
task = "{task}"
[data]
source = "{source}"
image_size = [64, 64]
[train]
batch = "global"
steps_per_call = 1
augment = "crop, rotate(15), noise(0.1), contrast(0.2)"
[launch]
device = "cpu"
[sweep]
strategy = ["mirrored"]
workers = [1, 2]
"""


@pytest.fixture
def begun_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., StudyFolder]:
    """Make a study folder in which a run of the one-worker point has begun, so that its data is prepared."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("scalestudy.hardware.cores.granted", lambda: [0, 1])

    def make(task: str = "cnn", *, run: bool = True, on: str = "local") -> StudyFolder:
        (tmp_path / "slow_loader.py").write_text(TASK)
        file = tmp_path / "study.toml"
        file.write_text(STUDY.format(task=task, source=few_digits(tmp_path, 200)))
        study, kind = with_task_data(load_study(file))
        points = points_here(study)
        if run:
            points = prepare_points(points, kind, tmp_path, study, Listener())
        kept = [
            point.on(launch=point.launch.model_copy(update={"on": on}))
            for point in points
        ]
        add_trained(points[0].task, points[0].sources)
        folder = StudyFolder.create_or_open(
            tmp_path / "studies" / "study", study, kept, file.read_text()
        )
        if run:
            folder.new_run(points[0])
        return folder

    return make
