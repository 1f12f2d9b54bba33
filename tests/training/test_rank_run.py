"""The progress that a run reports while it trains."""

from types import SimpleNamespace

import pytest

from made_points import made_epoch
from scalestudy.store.run_folder import RunFolder
from scalestudy.training import rank_run

SESSION = SimpleNamespace(
    metric="accuracy", epochs=4, steps=10, gpu_percent=lambda: None
)


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path)


def record(epoch):
    seconds = {
        "train_seconds": 20.0,
        "evaluation_seconds": 5.0,
        "elapsed_training_seconds": 20.0 * epoch,
    }
    return made_epoch(epoch, steps=10, samples=80, **seconds)


def test_the_time_left_has_all_that_an_epoch_takes(folder, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(rank_run.time, "monotonic", lambda: now[0])
    reporter = rank_run.Reporter(folder, SESSION, None)
    now[0] = 100.0
    reporter.epoch(record(1))
    assert folder.progress().seconds_left == 3 * 25
    now[0] = (
        132.0  # 20 s of training and 12 s of everything else since the first epoch ended
    )
    reporter.epoch(record(2))
    assert folder.progress().seconds_left == 2 * 32
    now[0] = 140.0
    reporter.moment(
        SimpleNamespace(epoch=3, step=5, steps=10, samples=40, seconds=10.0)
    )
    assert folder.progress().seconds_left == 15 * 2 + 2 * 12


def test_every_start_from_a_checkpoint_is_a_restart(folder):
    position = SimpleNamespace(epoch=0, step=0, restarts=0)
    for restarts in (1, 2, 3):
        reporter = rank_run.Reporter(folder, SESSION, position)
        assert reporter.restarts == restarts
        reporter.phase("training")
    assert rank_run.Reporter(folder, SESSION, None).restarts == 0
