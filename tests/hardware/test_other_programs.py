"""CPU time of other programs is seen and named; that of this process's own children is not theirs."""

import os
import subprocess
import sys

import pytest

from scalestudy.hardware.cores import core_use, granted, other_programs

COMPUTE = "import time\nwhile time.process_time() < 0.5: pass"


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch):
    """Cores on which only this process's children compute, whatever else this machine does."""
    import scalestudy.hardware.cores as module

    def set_busy(seconds: float) -> None:
        monkeypatch.setattr(module, "_busy", lambda cores: seconds)

    return set_busy


def test_a_program_that_computes_is_named_with_its_user(idle, monkeypatch: pytest.MonkeyPatch) -> None:
    import psutil

    import scalestudy.hardware.cores as module

    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        process, every = psutil.Process(other.pid), psutil.process_iter
        # Whatever else this machine computes, and however little of it this program gets.

        def only_this(info: list[str]) -> list[psutil.Process]:
            return [process for process in every(info) if process.pid == other.pid]

        monkeypatch.setattr(psutil, "process_iter", only_this)
        monkeypatch.setattr(module, "LEAST_NAMED", 0.0)
        idle(0.0)
        before = core_use([0])
        used = sum(process.cpu_times()[:2])
        while sum(process.cpu_times()[:2]) < used + 0.3:
            pass
        idle(10_000.0)
        found = other_programs(before, [0])
        other.kill()
    assert f"of {process_user()} ({other.pid})" in found.names
    assert found.share == 1.0


def process_user() -> str:
    import psutil

    return psutil.Process().username()


def test_what_own_children_used_counts_as_theirs(idle) -> None:
    idle(0.0)
    before = core_use(granted())
    start = os.times()
    subprocess.run([sys.executable, "-c", COMPUTE], check=True)
    end = os.times()
    idle(end.children_user + end.children_system - start.children_user - start.children_system)
    assert other_programs(before, granted()).share == pytest.approx(0, abs=1e-9)


def test_busy_time_of_a_core_grows_while_it_computes() -> None:
    import time

    from scalestudy.hardware.cores import _busy

    before, start = _busy(granted()), time.process_time()
    while time.process_time() < start + 0.3:
        pass
    assert _busy(granted()) - before >= 0.2
