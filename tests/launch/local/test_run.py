"""Which runs a launcher goes on with, and which it starts anew."""

import os
from pathlib import Path

import pytest

from scalestudy.launch.local.run import interrupted_run
from scalestudy.launch.status import look
from scalestudy.study.expand import expand
from scalestudy.study.parse import parse_study
from scalestudy.study.point import Point
from scalestudy.study.records import Failure, Silence
from scalestudy.study.run_folder import RunFolder
from scalestudy.study.settings import ResolvedLaunch
from scalestudy.study.store import StudyFolder

TEXT = 'task = "cnn"\n[sweep]\nworkers = 1\nseed = 0\n'


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    study = parse_study(TEXT, Path("study.toml"))
    return StudyFolder.create_or_open(tmp_path / "results", study, expand(study, gpus=0, cores=8), TEXT)


@pytest.fixture
def point(folder: StudyFolder) -> Point:
    return folder.points()[0]


@pytest.fixture
def kept(folder: StudyFolder, point: Point) -> RunFolder:
    run = folder.new_run(point)
    run.checkpoint.touch()
    return run


def by_the_user() -> Failure:
    return Failure(rank=None, exit_code=None, reason="interrupted by the user")


def test_a_run_whose_launcher_was_killed_goes_on(folder, point, kept):
    assert interrupted_run(folder, point) == kept


def test_a_run_that_the_user_interrupted_goes_on_as_ours_and_as_if_nothing_had_been(folder, point, kept):
    kept.write_failure(by_the_user())
    kept.stop.touch()
    kept.write_silence(Silence(rank=None, phase="step", epoch=1, step=2, seconds=120))
    point = point.on(launch=ResolvedLaunch(silent_after=900))
    kept.write_owner(kept.owner().model_copy(update={"pid": 1, "host": "elsewhere"}))
    assert interrupted_run(folder, point) == kept
    assert kept.owner().pid == os.getpid()
    assert kept.failure() is None
    assert not kept.stop.exists()
    assert kept.silence() is None
    assert kept.point().launch.silent_after == 900
    assert look(folder).states[point.name] == "running"


def test_without_a_checkpoint_it_starts_anew(folder, point):
    assert interrupted_run(folder, point) is None
    folder.new_run(point).write_failure(by_the_user())
    assert interrupted_run(folder, point) is None


def test_a_run_that_failed_on_its_own_starts_anew(folder, point, kept):
    kept.write_failure(Failure(rank=1, exit_code=1, reason="rank 1 ended with exit code 1"))
    assert interrupted_run(folder, point) is None
    assert kept.failure() is not None


def test_only_the_newest_run_goes_on(folder, point, kept):
    folder.new_run(point).write_failure(by_the_user())
    assert interrupted_run(folder, point) is None


@pytest.mark.parametrize(
    "terms",
    [{"oversubscribed": "cores shared with another study"}, {"launch": ResolvedLaunch(cpus_per_worker=2)}],
)
def test_other_timing_conditions_make_another_run(folder, point, kept, terms):
    assert interrupted_run(folder, point.on(**terms)) is None


def test_a_queues_run_is_left_to_the_queue(folder, point, kept):
    (kept.path / "job.json").touch()
    assert interrupted_run(folder, point) is None
