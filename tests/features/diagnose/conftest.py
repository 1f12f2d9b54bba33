"""Made studies of the tests of analysis, and a study of two workers whose loader is slow."""

from collections.abc import Callable
from pathlib import Path

import pytest

from few_digits import few_digits

# A model that costs nothing, and a loader that does: no load of the machine turns that around.
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
task = "slow_loader.py"
[data]
source = "{source}"
image_size = [64, 64]
[train]
batch = "global"
steps_per_call = 1
augment = "elastic(4), rotate(15), noise(0.1), contrast(0.2)"
[launch]
device = "cpu"
{launch}
[sweep]
strategy = ["mirrored"]
workers = [1, 2]
"""


@pytest.fixture
def write_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes the study, with lines for [launch]; its file."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("SLURM_JOB_ID", "PBS_JOBID"):
        monkeypatch.delenv(name, raising=False)

    def write(launch: str = "", name: str = "study.toml") -> Path:
        (tmp_path / "slow_loader.py").write_text(TASK)
        (tmp_path / name).write_text(STUDY.format(source=few_digits(tmp_path, 200), launch=launch))
        return tmp_path / name

    return write
