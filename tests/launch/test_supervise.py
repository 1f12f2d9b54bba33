"""The parent process records how a worker ended; the tests plant causes."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import supervised_call
from forked import Forked
from paths import SOURCE, SUPPORT
from scalestudy.launch.failures import sentence
from scalestudy.launch.supervise import STOPS
from scalestudy.store.records import Cause
from scalestudy.store.run_folder import RunFolder


def start(folder: Path, task: str, *, nohup: bool = False) -> Forked:
    """Start a worker of rank 1 with this task file."""
    (folder / "task.py").write_text(task)
    return Forked(lambda: supervised_call.main(str(folder)), folder, nohup=nohup)


def ended(folder: Path, task: str) -> tuple[int, str, Cause | None]:
    """Return the exit code, output and cause of a worker."""
    process = start(folder, task)
    return (
        process.wait(),
        process.output(),
        next(iter(RunFolder(folder).causes()), None),
    )


def cause_within(cgroup: tuple[str, ...], folder: Path, task: str) -> tuple[int, Cause]:
    """Return the exit code and cause of a worker in a cgroup, into which a fork would bring its memory."""
    (folder / "task.py").write_text(task)
    path = os.pathsep.join(map(str, (SOURCE, SUPPORT, folder)))
    command = [*cgroup, sys.executable, "-m", "supervised_call", str(folder)]
    variables = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, env=variables, cwd=folder, check=False, timeout=600)
    return done.returncode, RunFolder(folder).causes()[0]


def wait_for(condition) -> None:
    deadline = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("task", "code", "kind", "words"),
    [
        ("import sys\nsys.exit(0)\ndef model(): pass", 1, "sys.exit", "sys.exit(0)"),
        (
            "import sys\ndef model():\n    sys.exit('no data')",
            1,
            "sys.exit",
            "sys.exit('no data')",
        ),
        ("import os\ndef model():\n    os._exit(7)", 7, "os._exit", ""),
        (
            "def model():\n    raise ValueError('no such thing\\nand more')",
            1,
            "exception",
            "ValueError: no such thing",
        ),
        (
            "import ctypes\ndef model():\n    ctypes.string_at(0)",
            -signal.SIGSEGV,
            "signal",
            "",
        ),
        (
            "import os\ndef model():\n    os.kill(os.getpid(), 9)",
            -signal.SIGKILL,
            "signal",
            "",
        ),
    ],
)
def test_a_planted_end_is_named_with_its_place_in_the_users_file(
    tmp_path, task, code, kind, words
):
    exit_code, _, cause = ended(tmp_path, task)
    assert (exit_code, cause.rank, cause.kind, cause.words) == (code, 1, kind, words)
    line = 1 + next(
        number
        for number, text in enumerate(task.split("\n"))
        if "(" in text and "def" not in text
    )
    if kind != "os._exit" and code != -signal.SIGKILL:
        assert f"task.py, line {line}" in cause.frame
    if kind == "signal":
        assert cause.signal == signal.Signals(-code).name
    assert sentence(cause).startswith("rank 1 ")


def test_what_is_done_leaves_no_cause(tmp_path):
    assert ended(tmp_path, "def model(): return 0")[::2] == (0, None)


def test_an_error_of_the_projects_own_is_quoted_as_it_is(tmp_path):
    task = "from scalestudy.util.errors import UserError\ndef model(): raise UserError('a', 'b', 'Do c.')"
    code, output, cause = ended(tmp_path, task)
    assert code == 2 and "scalestudy: Expected a. Received b. Do c." in output
    assert (
        sentence(cause)
        == "rank 1 ended with exit code 2: Expected a. Received b. Do c."
    )


def test_a_device_without_space_is_named(tmp_path, small_disk):
    """Semaphores are in /dev/shm, and their error names no file."""
    fill = "with open('filler', 'wb', buffering=0) as file:\n        while True: file.write(b'0' * 4096)"
    task = (
        "import errno, os\n"
        "def model():\n"
        f"    os.chdir({str(small_disk)!r})\n"
        "    try:\n"
        f"        {fill.replace(chr(10), chr(10) + '    ')}\n"
        "    except OSError: raise OSError(errno.ENOSPC, 'No space left on device') from None"
    )
    assert str(small_disk) in ended(tmp_path, task)[2].words


def test_the_cause_of_the_last_start_is_forgotten_by_the_next(tmp_path):
    ended(tmp_path, "def model(): raise ValueError")
    assert ended(tmp_path, "def model(): return 0")[2] is None


def test_a_child_of_the_worker_that_holds_its_pipe_keeps_nobody_waiting(tmp_path):
    task = (
        "import os, time\n"
        "def model():\n"
        "    below = os.fork()\n"
        "    if below == 0:\n"
        "        os.close(1); os.close(2); time.sleep(600)\n"
        "    open('pid', 'w').write(str(below))\n"
        "    raise ValueError('parent')"
    )
    process = start(tmp_path, task)
    try:
        assert process.wait() == 1
        assert RunFolder(tmp_path).causes()[0].words == "ValueError: parent"
    finally:
        os.kill(pid_of(tmp_path), signal.SIGKILL)


SLEEPS = (  # short sleeps: Python handles a signal just before a sleep only after it
    "import os, time\ndef model():\n    open('pid', 'w').write(str(os.getpid()))\n"
    "    while True: time.sleep(0.05)"
)


def pid_of(folder: Path) -> int:
    file = folder / "pid"
    wait_for(lambda: file.exists() and file.read_text())
    return int(file.read_text())


def test_a_stopped_worker_is_named_as_long_as_it_is_stopped(tmp_path):
    process, run = start(tmp_path, SLEEPS), RunFolder(tmp_path)
    pid = pid_of(tmp_path)
    try:
        os.kill(pid, signal.SIGSTOP)
        wait_for(run.causes)
        assert sentence(run.causes()[0]) == (
            "rank 1 was stopped by SIGSTOP, and the others had to wait for it"
        )
        os.kill(pid, signal.SIGCONT)
        wait_for(lambda: not run.causes())
        os.kill(pid, signal.SIGSTOP)
        wait_for(run.causes)
    finally:
        os.kill(pid, signal.SIGKILL)
        process.wait()
    assert run.causes()[0].kind == "stopped", "that it was ended then is no news"
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGUSR1])
def test_a_signal_to_the_process_above_reaches_the_worker(tmp_path, number):
    task = SLEEPS.replace(
        "import os, time\n",
        f"import os, signal, sys, time\nsignal.signal({int(number)}, lambda *_: sys.exit('asked'))\n",
    )
    process = start(tmp_path, task)
    pid_of(tmp_path)
    process.send_signal(number)
    assert process.wait() == 1
    assert RunFolder(tmp_path).causes()[0].words == "sys.exit('asked')"


LEAVES = (
    "import os, pathlib, time\ndef model():\n    open('pid', 'w').write(str(os.getpid()))\n"
    + ("    while not pathlib.Path('stop').exists(): time.sleep(0.02)")
)


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_to_all_processes_of_a_rank_asks_it_to_stop_and_it_leaves_in_its_own_time(
    tmp_path, number
):
    process = start(tmp_path, LEAVES)
    worker = pid_of(tmp_path)
    for pid in (worker, process.pid, worker):
        with contextlib.suppress(ProcessLookupError):  # it may have ended already
            os.kill(pid, number)
    assert process.wait() == 0
    assert not RunFolder(tmp_path).causes()


def test_a_second_ctrl_c_ends_it_at_once(tmp_path):
    process, run = start(tmp_path, SLEEPS), RunFolder(tmp_path)
    pid_of(tmp_path)
    process.send_signal(signal.SIGINT)
    wait_for(lambda: run.stop.exists() and run.stop.read_text())
    assert run.stop.read_text() == "rank 1 received SIGINT"
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait() == -signal.SIGINT
    assert run.causes()[0].signal == "SIGINT"


def test_under_nohup_a_closed_terminal_is_nothing(tmp_path):
    process, run = start(tmp_path, LEAVES, nohup=True), RunFolder(tmp_path)
    pid_of(tmp_path)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGUSR2)  # this ends the process
    assert process.wait() == -signal.SIGUSR2
    assert not run.stop.exists()


@pytest.mark.parametrize(
    "end", ["return 0", "raise ValueError", "os.kill(os.getpid(), 9)"]
)
def test_what_a_worker_leaves_in_its_temporary_folder_is_gone_after_it(
    tmp_path, monkeypatch, end
):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    task = (
        "import os, tempfile\n"
        "def model():\n"
        "    handle, file = tempfile.mkstemp()\n"
        "    open('where', 'w').write(f'{os.path.dirname(file)} {os.environ[\"TMPDIR\"]}')\n"
        f"    {end}"
    )
    ended(tmp_path, task)
    folder, variable = (tmp_path / "where").read_text().split()
    assert folder == variable and Path(folder).parent == tmp_path / "temporary"
    assert not list((tmp_path / "temporary").iterdir())


def test_sigterm_ends_a_rank_once_another_one_has_failed(tmp_path):
    process, run = start(tmp_path, SLEEPS), RunFolder(tmp_path)
    pid_of(tmp_path)
    run.write_cause(Cause(rank=0, time=1.0, kind="exit", exit_code=1))
    process.send_signal(signal.SIGTERM)
    assert process.wait() == -signal.SIGTERM
    assert {cause.rank: cause.signal for cause in run.causes()} == {
        0: None,
        1: "SIGTERM",
    }
    assert not run.stop.exists()


def test_a_worker_under_nohup_ends_when_its_launcher_hangs_up(tmp_path, monkeypatch):
    monkeypatch.setenv("SCALESTUDY_LAUNCHER", str(os.getpid()))
    process = start(tmp_path, SLEEPS, nohup=True)
    pid_of(tmp_path)
    process.send_signal(signal.SIGHUP)
    assert process.wait() == -signal.SIGHUP


def test_an_end_is_not_put_down_to_a_signal_that_came_after_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SCALESTUDY_LAUNCHER", str(os.getpid()))
    process = start(tmp_path, SLEEPS)
    worker = psutil.Process(pid_of(tmp_path))
    process.send_signal(signal.SIGSTOP)
    worker.kill()
    wait_for(lambda: worker.status() == psutil.STATUS_ZOMBIE)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGCONT)
    assert process.wait() == -signal.SIGKILL
    assert RunFolder(tmp_path).causes()[0].signal == "SIGKILL"


@pytest.mark.slow
def test_a_worker_does_not_outlive_the_process_above_it(tmp_path):
    process = start(tmp_path, SLEEPS)
    worker = psutil.Process(pid_of(tmp_path))
    process.kill()
    process.wait()
    assert not psutil.wait_procs([worker], timeout=600)[1]


def test_a_folder_that_cannot_be_written_to_changes_no_exit_code(tmp_path):
    (tmp_path / "causes").write_text("a file, where a folder is wanted")
    code, output, _ = ended(tmp_path, "def model(): raise SystemExit(3)")
    assert code == 3
    assert "how this rank ended could not be written down" in output


def test_out_of_memory_is_told_from_a_kill_by_hand(tmp_path, small_cgroup):
    code, cause = cause_within(small_cgroup, tmp_path, "def model(): b'1' * (1 << 30)")
    assert code == -signal.SIGKILL
    assert cause.oom_kills == 1
    assert sentence(cause) == (
        "rank 1 was ended by SIGKILL: out of memory (the kernel killed 1 process of its cgroup for it)"
    )


@pytest.mark.slow
def test_a_kill_by_hand_in_a_cgroup_that_has_run_out_of_memory_before_is_one(
    tmp_path, small_cgroup
):
    cause_within(small_cgroup, tmp_path, "def model(): b'1' * (1 << 30)")
    _, cause = cause_within(
        small_cgroup, tmp_path, "import os\ndef model(): os.kill(os.getpid(), 9)"
    )
    assert cause.oom_kills == 0
