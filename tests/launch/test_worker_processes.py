import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from scalestudy.launch import worker_processes as workers_module
from scalestudy.launch.worker_processes import Command, WorkerProcesses


@pytest.fixture(autouse=True)
def _short_grace(monkeypatch):
    monkeypatch.setattr(workers_module, "GRACE", 0.3)


def command(tmp_path: Path, program: str, rank: int = 0, cpus=()) -> Command:
    log = tmp_path / "logs" / f"rank-{rank}.log"
    return Command(
        [sys.executable, "-c", program], dict(os.environ), cpus, log, tmp_path
    )


def wait(workers: WorkerProcesses) -> None:
    deadline = time.monotonic() + 600
    while workers.running() and workers.first_failure() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def printed(one: Command) -> int:
    """Wait until a program has printed a process id, and return it."""
    deadline = time.monotonic() + 600
    while not one.log.exists() or not one.log.read_text().strip():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return int(one.log.read_text())


def test_output_goes_to_the_log_of_its_rank(tmp_path):
    programs = ["print('zero')", "import sys; print('one', file=sys.stderr)"]
    with WorkerProcesses(
        [command(tmp_path, text, rank) for rank, text in enumerate(programs)]
    ) as workers:
        wait(workers)
        assert workers.first_failure() is None
    assert [
        (tmp_path / "logs" / f"rank-{rank}.log").read_text() for rank in (0, 1)
    ] == ["zero\n", "one\n"]


def test_the_first_failure_is_named_by_rank_and_code(tmp_path):
    programs = ["import time; time.sleep(60)", "raise SystemExit(3)"]
    with WorkerProcesses(
        [command(tmp_path, text, rank) for rank, text in enumerate(programs)]
    ) as workers:
        wait(workers)
        assert workers.first_failure() == (1, 3)


@pytest.mark.slow
def test_no_process_outlives_its_run_not_even_a_grandchild(tmp_path):
    program = (
        "import subprocess, sys, signal, time\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)"
    )
    one = command(tmp_path, program)
    with WorkerProcesses([one]):
        grandchild = psutil.Process(printed(one))
    _gone, alive = psutil.wait_procs([grandchild], timeout=300)
    assert not alive


@pytest.mark.parametrize("number", [signal.SIGSTOP, None])
def test_what_computes_below_a_process_is_gone_before_that_is_said_to_have_ended(
    tmp_path, number
):
    program = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "below = os.fork()\n"
        "if below == 0:\n"
        "    time.sleep(600)\n"
        "print(below, flush=True)\n"
        "os.waitpid(below, 0)"
    )
    one = command(tmp_path, program)
    with WorkerProcesses([one]):
        below = printed(one)
        if number:
            os.kill(below, number)
    assert not psutil.pid_exists(below), (
        "not even as a zombie, which others would have to reap"
    )


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="cores can be granted on Linux only"
)
def test_a_worker_runs_on_its_own_cores_and_the_launcher_keeps_its_own(tmp_path):
    before = os.sched_getaffinity(0)
    core = max(before)
    one = command(
        tmp_path, "import os; print(sorted(os.sched_getaffinity(0)))", cpus=[core]
    )
    with WorkerProcesses([one]) as workers:
        wait(workers)
    assert one.log.read_text().strip() == f"[{core}]"
    assert os.sched_getaffinity(0) == before


def test_a_program_that_cannot_start_leaves_no_others_behind(tmp_path):
    first = command(
        tmp_path, "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    )
    second = Command(
        ["/no/such/program"], {}, (), tmp_path / "logs" / "1.log", tmp_path
    )
    workers = WorkerProcesses([first, second])
    with pytest.raises(FileNotFoundError), workers:
        pass
    assert all(process.poll() is not None for process in workers._processes)
