"""Real runs of several processes that are stopped, interrupted and resumed."""

import contextlib
import importlib.util
import json
import shutil
import socket
import time
from pathlib import Path

import pytest

from data_settings import data_of
from local_run import run_point
from paths import SMALL_UNET
from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.data.preparation import prepare
from scalestudy.data.split import ensure_split
from scalestudy.engines.tensorflow.installation import library_file as horovod_built
from scalestudy.launch import reserve
from scalestudy.store.records import EpochRecord, Result
from scalestudy.store.study_folder import StudyFolder
from scalestudy.training.position import Position

pytestmark = pytest.mark.engine

SEVERAL = [
    "multiworker",
    *(["horovod"] if horovod_built() else []),
    *(["ddp"] if importlib.util.find_spec("torch") else []),
]
TEXT = """
task = "{task}"
[data]
source = "{source}"
[train]
epochs = 3
batch_size = {batch}
steps_per_call = 1
[sweep]
strategy = "{strategy}"
workers = {workers}
seed = 0
"""


@pytest.fixture(autouse=True, scope="module")
def _cores_of_its_own():
    """Grant the same cores every time: a run resumes only under the conditions of its start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            reserve,
            "cores",
            lambda found, count: contextlib.nullcontext((list(found[:count]), True)),
        )
        yield


class Runs:
    """A study of one point, launched by this process."""

    def __init__(self, path: Path, cache: Path, strategy: str) -> None:
        alone = strategy == "single"
        task, source, workers = (
            ("cnn", "digits", 1) if alone else (SMALL_UNET, "indents:36", 2)
        )
        text = TEXT.format(
            task=task,
            source=source,
            strategy=strategy,
            workers=workers,
            batch=6 // workers,
        )
        study = parse_study(text, Path("study.toml"))
        (point,) = expand(study, gpus=0, cores=8)
        if alone:
            prepared = prepare(data_of(source, cache=cache))
            split = ensure_split(prepared, 1 - 28 / prepared.count, 0)
        else:
            prepared = prepare(data_of(source, image_size=(32, 32), cache=cache))
            split = ensure_split(prepared, 8 / 36, 0)
        self.point = point.with_files(str(prepared.path), str(split.path))
        self.folder = StudyFolder.create_or_open(path, study, [self.point], text)

    def run(self, watch=lambda run, progress: None):
        """Run the point; `watch` sees only the progress of this execution, at first None."""
        started = time.time()

        def fresh(run, progress):
            if progress is None or progress.updated > started:
                watch(run, progress)

        return run_point(self.folder, self.point, fresh)

    def only_run(self):
        (run,) = self.folder.runs(self.point.name)
        return run


def stop_before_the_first_step(run, progress):
    """Ask as soon as the run exists; its epochs may be shorter than the detection of a phase."""
    if progress is None:
        run.stop.touch()


def interrupt_after_two_epochs(run, progress):
    if len(run.epochs()) >= 2:
        raise KeyboardInterrupt


def position_of(run) -> Position:
    import numpy as np

    with np.load(run.checkpoint) as file:
        return Position(**json.loads(str(file["place"])))


def learnt(result: Result, epochs: list[EpochRecord]) -> list:
    told = [
        (item.epoch, item.steps, item.samples, item.loss, item.validation)
        for item in epochs
    ]
    return [
        result.weights_digest,
        result.quality,
        result.test,
        result.updates,
        result.samples_processed,
        told,
    ]


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, cache):
    """Return what an uninterrupted run learns, by strategy; each is run once."""
    known = {}

    def of(strategy: str) -> list:
        if strategy not in known:
            runs = Runs(tmp_path_factory.mktemp("whole") / "r", cache, strategy)
            assert runs.run() is None
            known[strategy] = learnt(runs.only_run().result(), runs.only_run().epochs())
        return known[strategy]

    return of


@pytest.mark.parametrize("strategy", SEVERAL)
def test_a_run_stopped_within_an_epoch_ends_as_if_it_had_not_been(
    tmp_path, cache, undisturbed, strategy
):
    runs = Runs(tmp_path / "r", cache, strategy)
    assert "stopped on request" in runs.run(stop_before_the_first_step).reason
    run = runs.only_run()
    position = position_of(run)
    assert (position.epoch, position.restarts) == (0, 0)
    assert 0 < position.step < 5
    assert run.result() is None
    logs = sorted((run.path / "logs").iterdir())
    assert len(logs) == 2
    assert all("stopped on request in epoch 1" in log.read_text() for log in logs)

    assert runs.run() is None
    run = runs.only_run()
    result = run.result()
    assert learnt(result, run.epochs()) == undisturbed(strategy)
    assert result.restarts == 1
    assert [record.resumed for record in run.epochs()] == [True, False, False]
    assert result.steady_epochs == 2
    assert result.wall_seconds > position.wall
    assert result.began == position.began < run.ranks()[0].began
    assert result.hosts == [socket.gethostname()]
    assert sum(result.phases.values()) == pytest.approx(result.wall_seconds, rel=0.02)
    assert result.training_seconds == pytest.approx(
        sum(item.train_seconds for item in run.epochs())
    )
    assert not run.checkpoint.exists()
    assert not run.stop.exists()
    assert all("(restart 1)" in log.read_text() for log in logs)


@pytest.fixture(scope="module")
def left(tmp_path_factory, cache):
    """Return copies of a run that was stopped before its second step; it is made once."""
    path = tmp_path_factory.mktemp("left") / "r"
    Runs(path, cache, "single").run(stop_before_the_first_step)

    def copy(to: Path) -> Runs:
        shutil.copytree(path, to)
        return Runs(to, cache, "single")

    return copy


def test_a_run_interrupted_after_its_checkpoint_repeats_what_came_after_and_counts_it_once(
    tmp_path, left, undisturbed
):
    runs = left(tmp_path / "r")
    with pytest.raises(KeyboardInterrupt):
        runs.run(interrupt_after_two_epochs)
    assert len(runs.only_run().epochs()) >= 2
    assert runs.run() is None
    run = runs.only_run()
    assert learnt(run.result(), run.epochs()) == undisturbed("single")
    assert run.result().restarts == 2  # both resumed from the same checkpoint


def test_a_torn_checkpoint_is_named_and_the_run_begins_again(
    tmp_path, left, undisturbed
):
    runs = left(tmp_path / "r")
    run = runs.only_run()
    run.checkpoint.write_bytes(run.checkpoint.read_bytes()[:100])
    assert runs.run() is None
    assert runs.only_run().result().restarts == 0
    assert "is ignored: it cannot be read" in run.log(0).read_text()
    assert learnt(run.result(), run.epochs()) == undisturbed("single")
