"""Owners: a process is identified by its ID, start time and boot; on other hosts by its heartbeats."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scalestudy.store import launcher_process as owner
from scalestudy.store.launcher_process import LauncherProcess, is_alive, this_process


def test_a_recycled_process_number_is_not_the_owner() -> None:
    me = this_process()
    assert is_alive(me)
    assert not is_alive(me.model_copy(update={"started": "another-boot/1"}))
    assert not is_alive(me.model_copy(update={"pid": 2**22 + 1}))


def test_an_owner_elsewhere_lives_by_its_signs() -> None:
    now = time.time()
    on_another_host = LauncherProcess(
        pid=1, host=socket.gethostname() + "-x", started="", written=now - 3600
    )
    assert not is_alive(on_another_host)
    assert not is_alive(on_another_host, now - 61)
    assert is_alive(on_another_host, now - 30)
    assert is_alive(on_another_host.model_copy(update={"written": now}))


def test_the_start_is_the_one_that_the_kernel_tells() -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    ticks = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    assert this_process().started == f"{boot}/{ticks}"


def test_setting_the_clock_makes_no_other_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    me, boot = this_process(), owner.psutil.boot_time()
    monkeypatch.setattr(owner.psutil._psplatform, "boot_time", lambda: boot + 3600)
    assert is_alive(me)


def test_a_process_that_has_ended_is_not_alive_though_nobody_reaped_it() -> None:
    program = (
        "from scalestudy.store.launcher_process import this_process\n"
        "print(this_process().model_dump_json()); input()"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        known = LauncherProcess.model_validate_json(other.stdout.readline())
        assert is_alive(known)
        other.kill()
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        assert Path(f"/proc/{other.pid}").exists()
        assert not is_alive(known)
    assert not is_alive(known)
