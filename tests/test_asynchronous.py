"""Real parameter-server runs: one worker equals plain training, and two update by themselves."""

import contextlib
import os
import signal
from pathlib import Path

import pytest

from data_settings import data_of
from local_run import run_point
from paths import SMALL_UNET
from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.data.preparation import prepare
from scalestudy.data.split import ensure_split
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
    data = prepare(
        data_of(
            "indents:36", image_size=(32, 32), cache=tmp_path_factory.mktemp("cache")
        )
    )
    return str(data.path), str(ensure_split(data, 8 / 36, 0).path)


@pytest.fixture
def points(prepared, tmp_path, monkeypatch):
    """Make a study's folder and its points; all workers share one core, which is not reserved."""
    monkeypatch.setattr(
        reserve,
        "cores",
        lambda found, count: contextlib.nullcontext(([found[0]] * count, True)),
    )

    def make(strategies, workers, epochs=2):
        text = TEXT.format(
            task=SMALL_UNET, strategies=strategies, workers=workers, epochs=epochs
        )
        study = parse_study(text, Path("study.toml"))
        made = [point.with_files(*prepared) for point in expand(study, gpus=0, cores=8)]
        return StudyFolder.create_or_open(tmp_path / "study", study, made, text), made

    return make


def run_of(folder, point, *watch):
    return run_point(folder, point, *watch), folder.runs(point.name)[-1]


def test_one_worker_of_a_server_computes_what_plain_training_does_bit_for_bit(points):
    folder, made = points(["single", "parameter-server"], [1])
    (_, plain), (failure, served) = (run_of(folder, point) for point in made)
    assert failure is None
    one, other = plain.result(), served.result()
    assert other.weights_digest == one.weights_digest
    assert (other.validation, other.updates, other.global_batch) == (
        one.validation,
        one.updates,
        3,
    )
    assert [epoch.loss for epoch in served.epochs()] == pytest.approx(
        [epoch.loss for epoch in plain.epochs()]
    )
    assert served.model.exists()


def test_two_workers_update_by_themselves_stop_and_go_on_and_end_with_the_first_that_is_lost(
    points,
):
    folder, (point,) = points(["parameter-server"], [2], epochs=3)

    def stop(run, progress):
        if (
            progress is None
        ):  # as soon as the run exists: its epochs may be shorter than a look at it
            run.ask_to_stop()

    failure, stopped = run_of(folder, point, stop)
    assert failure.rank is None
    assert stopped.checkpoint.exists()
    ended = []

    def end(run, progress):
        pid = next((sign.pid for sign in run.signs() if sign.rank == 1), None)
        if not ended and pid and progress and progress.phase == "training":
            ended.append(pid)
            os.kill(pid, signal.SIGKILL)

    failure, lost = run_of(folder, point, end)
    assert (failure.rank, failure.signal) == (1, "SIGKILL")
    failure, done = run_of(folder, point)
    assert failure is None
    result = done.result()
    assert lost == done == stopped
    assert (result.workers, result.epochs) == (2, 3)
    assert result.restarts >= 1, "it may have been killed before it trained"
    assert result.updates == 3 * len(range(0, 28, 3)), (
        "each batch is an update of its own"
    )
    assert result.samples_processed == 3 * 28
    assert [rank.rank for rank in done.ranks()] == [0, 1]
