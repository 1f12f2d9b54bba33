"""Real parameter-server runs: one worker equals plain training; a run survives a lost worker."""

import contextlib
import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from data_settings import data_of
from local_run import run_point
from paths import SMALL_UNET
from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.data.split import ensure_split
from scalestudy.data.store.preparation import prepare
from scalestudy.launch import reserve
from scalestudy.store.study_folder import StudyFolder

pytestmark = pytest.mark.engine

TEXT = """
task = "{task}"
[data]
source = "indents:36"
[train]
epochs = {epochs}
batch_size = 3
augment = "flip"
[sweep]
strategy = {strategies}
workers = {workers}
seed = 0
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    data = prepare(data_of("indents:36", image_size=(32, 32), cache=tmp_path_factory.mktemp("cache")))
    return str(data.path), str(ensure_split(data, 8 / 36, 0).path)


@pytest.fixture
def points(prepared, tmp_path, monkeypatch):
    """Make a study's folder and its points; all workers share one core, which is not reserved."""
    monkeypatch.setattr(
        reserve, "cores", lambda found, count: contextlib.nullcontext(([found[0]] * count, True))
    )

    def make(strategies, workers, epochs=3):
        text = TEXT.format(task=SMALL_UNET, strategies=strategies, workers=workers, epochs=epochs)
        study = parse_study(text, Path("study.toml"))
        made = [point.with_files(*prepared) for point in expand(study, gpus=0, cores=8)]
        return StudyFolder.create_or_open(tmp_path / "study", study, made, text), made

    return make


def run_of(folder, point, *watch):
    return run_point(folder, point, *watch), folder.runs(point.name)[-1]


def process_of(run, rank: int) -> psutil.Process | None:
    """Return the process of a rank, once it has written a heartbeat."""
    return next((psutil.Process(sign.pid) for sign in run.signs() if sign.rank == rank), None)


def test_one_worker_of_a_server_computes_what_plain_training_does_bit_for_bit(points):
    folder, made = points(["single", "parameter-server"], [1])
    (_, plain), (failure, served) = (run_of(folder, point) for point in made)
    assert failure is None
    one, other = plain.result(), served.result()
    assert other.weights_digest == one.weights_digest
    assert (other.validation, other.updates, other.global_batch) == (one.validation, one.updates, 3)
    assert [epoch.loss for epoch in served.epochs()] == pytest.approx(
        [epoch.loss for epoch in plain.epochs()]
    )
    assert [rank.rank for rank in served.ranks()] == [0, 1, 2]
    assert other.hosts == one.hosts
    assert served.model.exists() and not served.causes() and other.workers_lost == 0


def test_a_lost_worker_is_survived_and_counted_and_a_lost_server_is_not(points):
    folder, (point,) = points(["parameter-server"], [2], epochs=400)
    ended: list[psutil.Process] = []

    def end(run, rank):
        ended.append(process_of(run, rank))
        os.kill(ended[-1].pid, signal.SIGKILL)

    def watch(run, progress):
        epochs = progress.epoch if progress else 0
        if not ended and epochs >= 2:
            end(run, 0)
        elif len(ended) == 1 and epochs >= 4 and run.causes():
            end(run, 2)

    failure, run = run_of(folder, point, watch)
    assert {0, 2} <= {cause.rank for cause in run.causes()}
    assert (failure.rank, failure.signal) == (2, "SIGKILL")
    assert "parameter server" in failure.reason
    assert not any(psutil.pid_exists(sign.pid) for sign in run.signs())


def test_a_run_that_was_asked_to_stop_goes_on_and_is_done_by_the_others_if_a_worker_is_lost(points):
    folder, (point,) = points(["parameter-server"], [2], epochs=6)

    def stop(run, progress):
        if progress is None:  # as soon as the run exists: its epochs may be shorter than a look at it
            run.ask_to_stop()

    failure, run = run_of(folder, point, stop)
    assert failure.rank is None and run.checkpoint.exists()
    left = time.monotonic() + 600
    while any(psutil.pid_exists(sign.pid) for sign in run.signs()):
        assert time.monotonic() < left
        time.sleep(0.05)

    ended: list[int] = []

    def end(run, progress):
        if not ended and progress and progress.restarts == 1 and progress.epoch >= 2:
            ended.append(process_of(run, 1).pid)
            os.kill(ended[0], signal.SIGKILL)

    failure, again = run_of(folder, point, end)
    assert failure is None
    result = again.result()
    assert (again, result.restarts, result.workers_lost, result.workers, result.epochs) == (run, 1, 1, 2, 6)
    assert result.updates == 6 * len(range(0, 28, 3))
    assert result.samples_processed == 6 * 28
