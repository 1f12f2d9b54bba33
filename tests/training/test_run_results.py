"""A run's models: tried ahead, the best epoch kept; results survive a model that cannot be saved."""

import errno
import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from data_settings import data_of
from linear import ALONE, Linear, LinearTrainer
from made_points import made_epoch, made_point
from scalestudy.app.verify import Verified, verify
from scalestudy.config.metric_senses import Sense
from scalestudy.data.preparation import prepare
from scalestudy.data.split import ensure_split
from scalestudy.measure.clock import PhaseClock
from scalestudy.store.model_record import BestRecord
from scalestudy.store.record_file import read_checksums
from scalestudy.store.records import EpochRecord, Failure, GpuUse
from scalestudy.store.run_folder import RunFolder, write_point
from scalestudy.store.state import state_of_runs
from scalestudy.training.device_setup import OwnPart
from scalestudy.training.position import Position
from scalestudy.training.rank_run import run_synchronous
from scalestudy.training.run_results import (
    BestKeeper,
    best_epoch,
    improves,
    mean_percent,
    model_record_of,
)
from scalestudy.util.errors import RunError, UserError


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    y = np.arange(30) % 3
    x = np.random.default_rng(0).integers(0, 160, (30, 3, 4)).astype("uint8")
    np.savez(folder / "rows.npz", x_train=x, y_train=y)
    prepared = prepare(data_of(str(folder / "rows.npz"), cache=folder))
    return prepared, ensure_split(prepared, 0.3, 0)


@pytest.fixture
def folder(data, tmp_path) -> RunFolder:
    prepared, split = data
    point = made_point(
        train={"optimizer": "momentum", "keep_best": "none"},
        data={"source": "rows.npz"},
    )
    path = tmp_path / "points" / point.name / "run-1"
    path.mkdir(parents=True)
    write_point(
        path / "point.json", point.with_files(str(prepared.path), str(split.path))
    )
    return RunFolder(path)


def engine_of(trainer: type[LinearTrainer]) -> Linear:
    class Other(Linear):
        def trainer(self, *arguments):
            return trainer(*arguments)

    return Other()


def computed(folder: RunFolder, trainer: type[LinearTrainer] = LinearTrainer) -> None:
    run_synchronous(
        OwnPart(
            folder,
            folder.point(),
            ALONE,
            PhaseClock(),
            "cpu",
            engine=engine_of(trainer),
        )
    )


def verified_run(folder: RunFolder) -> list[Verified]:
    return [file for file in verify(folder.path.parents[2]) if "/run-1/" in file.path]


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
            assert folder.result() is None
            full(path)

    computed(folder, Full)
    result = folder.result()
    assert result.model_missing == "OSError: [Errno 28] No space left on device"
    assert result.validation.keys() == {"loss", "accuracy"}
    assert state_of_runs([folder]) == "done"
    assert not folder.model.exists()
    assert not list(folder.path.glob(".half*"))
    assert "Traceback" in capsys.readouterr().err


def interrupt(*arguments):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "place",
    [
        "scalestudy.training.rank_run.save_model",
        "scalestudy.training.gallery.save_gallery",
        "scalestudy.store.run_folder.write_checksums",
        "scalestudy.store.run_folder.RunFolder.write_result",
    ],
)
def test_a_process_that_dies_while_it_saves_is_not_done_and_then_done_whole(
    folder, monkeypatch, place
):
    with monkeypatch.context() as patch:
        patch.setattr(place, interrupt)
        with pytest.raises(KeyboardInterrupt):
            computed(folder)
    folder.write_failure(Failure(rank=None, exit_code=None, reason="interrupted"))
    assert state_of_runs([folder]) == "failed"
    assert all(file.sound for file in verified_run(folder))
    computed(folder)
    assert state_of_runs([folder]) == "done"
    assert {"result.json", "model.keras"} <= read_checksums(folder.path).keys()
    assert all(file.sound for file in verified_run(folder))


def test_a_model_that_cannot_be_kept_is_refused_before_the_first_step(folder):
    class Unsavable(LinearTrainer):
        def prove_savable(self, path):
            raise UserError(
                "a model that can be saved", "Own", "Give it a get_config()."
            )

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

        def on_train_end(self, logs):
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
    record = model_record_of(folder.point(), prepared)
    assert (record.kind, record.input_shape) == ("custom", ())


def trainer(better: str = "higher", save=None):
    def write(path):
        Path(path).write_text("weights")

    file = SimpleNamespace(save=save or write, suffix=".keras")
    return SimpleNamespace(metrics=["iou"], sense=Sense(better), file=file)


def keeper(
    folder: RunFolder, wanted: str = "quality", *, rank: int = 0, made=None
) -> BestKeeper:
    session = SimpleNamespace(
        clock=PhaseClock(),
        trainer=made or trainer(),
        group=SimpleNamespace(rank=rank),
        evaluated=None,
        point=SimpleNamespace(train=SimpleNamespace(keep_best=wanted)),
    )
    found = BestKeeper(folder, session)
    assert session.evaluated == found.evaluated
    return found


def epoch(number: int, **values: float) -> EpochRecord:
    return made_epoch(number, values)


@pytest.mark.parametrize(
    ("value", "before", "better", "said"),
    [
        (0.5, None, "higher", True),
        (0.5, 0.5, "higher", False),
        (0.6, 0.5, "higher", True),
        (0.6, 0.5, "lower", False),
        (float("nan"), None, "higher", False),
        (np.inf, 1.0, "higher", False),
    ],
)
def test_only_what_is_better_and_finite_improves(value, before, better, said):
    assert improves(value, before, better) is said


def test_the_best_epoch_is_kept_and_the_first_of_equals(tmp_path):
    folder = RunFolder(tmp_path)
    best = keeper(folder)
    for number, value in enumerate([0.2, 0.6, 0.4, 0.6], start=1):
        best.evaluated(epoch(number, iou=value))
    record = folder.best_record()
    assert (record.epoch, record.metric, record.value) == (2, "iou", 0.6)
    assert folder.best.read_text() == "weights"
    assert not list(tmp_path.glob(".half*"))


def test_the_time_it_takes_is_never_counted_as_training(tmp_path):
    other = keeper(RunFolder(tmp_path), rank=1)
    other.evaluated(epoch(1, iou=0.5))
    assert set(other._clock.phases()) == {
        "saving",
        "other",
    }  # other ranks enter the phase but write nothing
    keeper(RunFolder(tmp_path), "none").evaluated(epoch(1, iou=0.5))
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_the_best_before_and_the_run_going_on(tmp_path, capsys):
    folder = RunFolder(tmp_path)
    keeper(folder).evaluated(epoch(1, iou=0.5))

    def full(path):
        raise OSError(errno.ENOSPC, "No space left on device")

    best = keeper(folder, made=trainer(save=full))
    best.begin(Position(epoch=1))
    best.evaluated(epoch(2, iou=0.9))
    assert folder.best_record().epoch == 1
    assert folder.best.read_text() == "weights"
    assert "the model of epoch 2 is not kept" in capsys.readouterr().out


def test_a_run_that_goes_on_keeps_what_was_best_before(tmp_path):
    folder = RunFolder(tmp_path)
    keeper(folder).evaluated(epoch(3, iou=0.7))
    later = keeper(folder)
    later.begin(Position(epoch=4))
    later.evaluated(epoch(5, iou=0.6))
    assert folder.best_record().epoch == 3
    later.evaluated(epoch(6, iou=0.8))
    assert folder.best_record().epoch == 6


@pytest.mark.parametrize("position", [None, Position(epoch=0, step=3)])
def test_a_run_that_starts_anew_forgets_it(tmp_path, position):
    folder = RunFolder(tmp_path)
    folder.best.write_text("of an earlier process")
    folder.write_best_record(BestRecord(epoch=9, metric="iou", value=0.99))
    keeper(folder).begin(position)
    assert folder.best_record() is None
    assert not folder.best.exists()


def test_the_file_holds_the_weights_that_were_measured_before_callbacks_changed_them(
    data, folder
):
    prepared, split = data
    point = folder.point()
    train = point.train.model_copy(update={"epochs": 4, "keep_best": "quality"})
    write_point(folder.path / "point.json", point.model_copy(update={"train": train}))

    class Spoiling(LinearTrainer):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.has_callbacks = True

        def epoch_end(self, epoch, logs):
            self.weight = self.weight * (
                1 if epoch < 1 else -1
            )  # worse and worse from the second epoch on
            return False

    computed(folder, Spoiling)
    values = [record.validation["accuracy"] for record in folder.epochs()]
    best = folder.best_record()
    assert best.epoch == 1 + int(np.argmax(values))
    assert best.value == max(values)
    weight = np.array(json.loads(folder.best.read_text()))
    rows = prepared.inputs[split.validation].reshape(len(split.validation), -1) / 255
    scores = rows @ weight
    assert (scores.argmax(1) == prepared.targets[split.validation]).mean() == best.value
    assert folder.model_record().class_names == list(prepared.class_names)


def records(*values: float | None) -> list[EpochRecord]:
    found = [
        {} if value is None else {"loss": 1.0, "quality": value} for value in values
    ]
    return [
        made_epoch(number, validation)
        for number, validation in enumerate(found, start=1)
    ]


@pytest.mark.parametrize(
    ("values", "better", "epoch"),
    [
        ((0.5, 0.1, None, 0.9, 0.1), "lower", 2),
        ((0.5, 0.1, None, 0.9, 0.1), "higher", 4),
        *(
            ((wild, 0.5, wild), way, 2)
            for wild in (math.nan, math.inf, -math.inf)
            for way in ("lower", "higher")
        ),
        ((math.nan, math.nan), "higher", 2),
    ],
)
def test_the_best_epoch_is_that_of_the_best_finite_quality_else_the_last(
    values, better, epoch
):
    assert best_epoch(records(*values), "quality", Sense(better)).epoch == epoch


def test_the_utilisation_of_a_rank_is_that_of_its_gpus_that_tell_it():
    uses = [
        GpuUse(rank=0, device=0, percent=40),
        GpuUse(rank=0, device=1),
        GpuUse(rank=0, device=2, percent=80),
    ]
    assert mean_percent(uses) == 60
    assert mean_percent(uses[1:2]) is None and mean_percent([]) is None
