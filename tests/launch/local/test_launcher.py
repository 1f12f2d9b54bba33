"""The launcher of this machine: its workers end with it, and it says only what is new."""

import os
import sys
import time
from pathlib import Path

import pytest

from scalestudy.launch.base import Moved, Options
from scalestudy.launch.local.launcher import LOCAL
from scalestudy.launch.local.workers import Command
from scalestudy.launch.look import look
from scalestudy.study.expand import expand
from scalestudy.study.parse import parse_study
from scalestudy.study.store import StudyFolder

TEXT = 'task = "cnn"\n[sweep]\nworkers = 1\nseed = [0, 1]\n'
SLEEPS = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    study = parse_study(TEXT, Path("study.toml"))
    return StudyFolder.create_or_open(tmp_path / "results", study, expand(study, gpus=0, cores=8), TEXT)


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch):
    """Have each worker run this program instead."""

    def be(program: str) -> None:
        def command(run, rank, size, port, cpus, environment, log) -> Command:
            return Command([sys.executable, "-c", program], dict(os.environ), (), log, run)

        monkeypatch.setattr("scalestudy.launch.local.run.worker_command", command)

    return be


def pid_of(run: Path) -> int:
    deadline = time.monotonic() + 30
    while not (run / "pid").exists() or not (run / "pid").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return int((run / "pid").read_text())


def test_an_interrupt_between_two_steps_ends_the_workers_and_is_written_down(folder, workers):
    workers(SLEEPS)
    steps = LOCAL.start(folder, folder.points(), Options())
    assert next(steps) == Moved("native-w1-s0")
    run = folder.runs("native-w1-s0")[0]
    pid = pid_of(run.path)
    with pytest.raises(KeyboardInterrupt):
        steps.throw(KeyboardInterrupt())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert run.failure().reason == "interrupted by the user"
    assert look(folder).states == {"native-w1-s0": "cancelled", "native-w1-s1": "missing"}


def test_whoever_stops_taking_steps_leaves_no_worker_behind(folder, workers):
    workers(SLEEPS)
    steps = LOCAL.start(folder, folder.points(), Options())
    next(steps)
    pid = pid_of(folder.runs("native-w1-s0")[0].path)
    steps.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_point_moves_when_it_begins_and_when_it_ends_and_the_next_one_follows(folder, workers):
    workers("raise SystemExit(3)")
    moved = [step.name for step in LOCAL.start(folder, folder.points(), Options())]
    assert list(dict.fromkeys(moved)) == ["native-w1-s0", "native-w1-s1"]
    assert 2 <= len(moved) <= 4
    assert [each.reason for each in look(folder).points] == ["rank 0 ended with exit code 3"] * 2
