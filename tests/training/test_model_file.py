"""A run's model is tried ahead, and what is measured outlives one that cannot be written."""

import errno
import json
from pathlib import Path

import numpy as np
import pytest

from data_settings import data_of
from linear import ALONE, Linear, LinearTrainer
from scalestudy.data.splits.split import stored_split
from scalestudy.data.store.prepare import prepare
from scalestudy.measure.clock import PhaseClock
from scalestudy.study.point import Point
from scalestudy.study.run_folder import RunFolder, write_point
from scalestudy.study.state import state_of_runs
from scalestudy.training.model_file import record_of
from scalestudy.training.run import run
from scalestudy.util.errors import RunError, UserError


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    y = np.arange(30) % 3
    x = np.random.default_rng(0).integers(0, 160, (30, 3, 4)).astype("uint8")
    np.savez(folder / "rows.npz", x_train=x, y_train=y)
    prepared = prepare(data_of(str(folder / "rows.npz"), cache=folder))
    return prepared, stored_split(prepared, 0.3, 0)


@pytest.fixture
def folder(data, tmp_path) -> RunFolder:
    prepared, split = data
    train = {
        "epochs": 2, "batch_size": 8, "optimizer": "momentum", "learning_rate": 0.1, "schedule": "constant",
        "keep_best": "none",
    }  # fmt: skip
    point = Point.model_validate({
        "name": "single-w1-s0", "study": "test", "task": "cnn", "strategy": "single", "workers": 1, "seed": 0,
        "data": {"source": "rows.npz"}, "train": train, "terms": {"implementation": "single"},
        "files": {"prepared": str(prepared.path), "split": str(split.path)},
    })  # fmt: skip
    write_point(tmp_path / "point.json", point)
    return RunFolder(tmp_path)


def engine_of(trainer: type[LinearTrainer]) -> Linear:
    class Other(Linear):
        def trainer(self, *arguments):
            return trainer(*arguments)

    return Other()


def computed(folder: RunFolder, trainer: type[LinearTrainer] = LinearTrainer) -> None:
    run(folder, folder.point(), ALONE, PhaseClock(), device="cpu", engine=engine_of(trainer))


def full(path: str) -> None:
    Path(path).write_text("half of a")
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_model_that_is_saved_is_whole_and_alone(folder):
    computed(folder)
    assert folder.result().model_missing is None
    assert np.isfinite(json.loads(folder.model.read_text())).all()
    assert not list(folder.path.glob(".half*"))


def test_a_disk_that_is_full_at_the_end_loses_the_model_alone(folder, capsys):
    class Full(LinearTrainer):
        def prove_savable(self, path):
            pass

        def save(self, path):
            assert folder.result().saving, "no result before the model"
            full(path)

    computed(folder, Full)
    result = folder.result()
    assert result.model_missing == "OSError: [Errno 28] No space left on device"
    assert result.validation.keys() == {"loss", "accuracy"}
    assert state_of_runs([folder]) == "done"
    assert not folder.model.exists()
    assert not list(folder.path.glob(".half*"))
    assert "Traceback" in capsys.readouterr().err


def test_a_process_that_dies_while_it_saves_leaves_its_result_with_the_reason(folder):
    class Killed(LinearTrainer):
        def prove_savable(self, path):
            pass

        def save(self, path):
            Path(path).write_text("half of a")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        computed(folder, Killed)
    assert folder.result().saving
    assert not list(folder.path.glob("*half*"))
    assert state_of_runs([folder]) == "done"


def test_a_model_that_cannot_be_kept_is_refused_before_the_first_step(folder):
    class Unsavable(LinearTrainer):
        def prove_savable(self, path):
            raise UserError("a model that can be saved", "Own", "Give it a get_config().")

        def train(self, call):
            raise AssertionError("trained")

    with pytest.raises(UserError, match="Own"):
        computed(folder, Unsavable)
    assert folder.result() is None


def test_a_folder_without_room_is_refused_before_the_first_step(folder):
    class Full(LinearTrainer):
        def prove_savable(self, path):
            full(path)

        def train(self, call):
            raise AssertionError("trained")

    with pytest.raises(RunError, match="No space left on device at "):
        computed(folder, Full)
    assert not list(folder.path.glob(".half*"))


def test_the_result_is_of_the_weights_that_callbacks_leave(folder):
    class Spoiling(LinearTrainer):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.has_callbacks = True

        def end(self, logs):
            self.weight = np.zeros_like(self.weight)

    computed(folder, Spoiling)
    result = folder.result()
    assert np.all(np.array(json.loads(folder.model.read_text())) == 0)
    assert result.validation["loss"] == pytest.approx(np.log(3))
    assert folder.epochs()[-1].validation["loss"] != pytest.approx(np.log(3), rel=1e-6)
    assert result.quality == result.validation["accuracy"]


def test_the_model_of_sequences_that_a_task_reads_itself_has_a_record(folder, tmp_path):
    reader = tmp_path / "reader.py"
    reader.write_text(
        'sequences = ["inputs"]\n'
        "def read(data):\n"
        "    return [[1] * (1 + row % 3) for row in range(12)], [row % 2 for row in range(12)]\n"
    )
    prepared = prepare(data_of(str(reader), cache=tmp_path / "custom", read=reader))
    record = record_of(folder.point(), prepared, "accuracy")
    assert (record.kind, record.input_shape) == ("custom", ())
