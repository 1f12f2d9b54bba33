"""Real processes in which ranks hang: the run ends and names the first rank and its position."""

import json
import re
import time
from pathlib import Path

import psutil
import pytest

from local_run import run_point
from paths import SUPPORT
from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.launch import local_run as launcher
from scalestudy.measure import hang_detection
from scalestudy.measure.hang_detection import HangDetector
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util import modules

pytestmark = pytest.mark.slow

TEXT = 'task = "cnn"\n[launch]\nprogress_timeout = {}\n[sweep]\nstrategy = "{}"\nworkers = {}\nseed = 0\n'
PROGRESS_TIMEOUT = 2.5


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return how a run ends and its folder; ended(strategy, workers, rank=1, step=3, does="block")."""
    monkeypatch.setattr(modules, "WORKER", "silent_worker")
    monkeypatch.setattr(hang_detection, "HANG_EVERY", 0.1)
    monkeypatch.setattr(hang_detection, "HANG_GRACE", 0.5)
    # Waits for the first heartbeats as long as the machine needs; these name their own limits.
    monkeypatch.setattr(
        launcher, "HangDetector", lambda run, size, _: HangDetector(run, size, 600)
    )
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT), prepend=":")

    def run(
        strategy: str, workers: int, progress_timeout: float = PROGRESS_TIMEOUT, **plan
    ):
        monkeypatch.setenv("PLAN", json.dumps(plan))
        text = TEXT.format(progress_timeout, strategy, workers)
        study = parse_study(text, Path("study.toml"))
        (point,) = expand(study, gpus=0, cores=8)
        folder = StudyFolder.create_or_open(tmp_path / "results", study, [point], text)
        pids: set[int] = set()
        failure = run_point(
            folder, point, lambda run, progress: pids.update(s.pid for s in run.signs())
        )
        assert len(pids) == point.processes
        assert not [pid for pid in pids if psutil.pid_exists(pid)]
        (run,) = folder.runs(point.name)
        return failure, run

    return run


def log(run, rank: int) -> str:
    return run.log(rank).read_text()


def test_a_rank_that_blocks_is_named_with_its_place_and_all_stacks_are_in_the_logs(
    ended,
):
    failure, run = ended("horovod", 2, rank=1, step=3, does="block")
    assert failure.rank == 1
    assert "rank 1 on" in failure.reason
    assert (
        "fell silent in epoch 1 after step 4 (callbacks), and it stands still"
        in failure.reason
    )
    assert " in hang\n" in log(run, 1)
    assert " in work\n" in log(run, 0)
    assert (
        "Expected progress of every rank" in failure.tail[-1]
        and "progress_timeout" in failure.tail[-1]
    )
    assert run.failure() == failure


def test_a_rank_that_is_stopped_is_named_by_the_others_and_ended(ended):
    failure, run = ended("horovod", 2, rank=1, step=3, does="stop")
    assert failure.rank == 1
    assert "its process is stopped, or its node is gone" in failure.reason
    assert " in work\n" in log(run, 0)
    assert "most recent call first" not in log(
        run, 1
    )  # a stopped process cannot write it


@pytest.mark.parametrize("does", ["stop", "hold"])
def test_a_process_alone_that_can_do_nothing_is_ended_from_outside(ended, does):
    failure, _ = ended("mirrored", 2, rank=0, step=3, does=does)
    assert failure.rank == 0
    step = re.search(r"fell silent in epoch 1 after step (\d+) ", failure.reason)
    assert 1 <= int(step[1]) <= 4  # from its last heartbeat, before it was stopped


def test_a_library_that_gives_up_on_a_stopped_rank_does_not_hide_which_one_it_was(
    ended,
):
    failure, run = ended(
        "horovod", 2, progress_timeout=300, rank=1, step=3, does="stop", gives_up=True
    )
    assert "connection closed by peer" in log(run, 0)
    assert failure.rank == 1
    assert "its process is stopped" in failure.reason


def test_a_run_that_goes_on_is_not_ended_however_long_it_takes(ended):
    began = time.monotonic()
    failure, run = ended("horovod", 2)
    assert (run.path / "trained").exists()
    assert time.monotonic() - began > 2 * PROGRESS_TIMEOUT
    assert run.hang() is None
    assert "there is no result" in failure.reason
