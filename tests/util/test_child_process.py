"""Processes that run a user's code and answer: what they print and leave behind."""

import contextlib
import time
from pathlib import Path

import psutil
import pytest

from scalestudy.util.child_process import ask_file
from scalestudy.util.errors import UserError

HELPER = """
import subprocess, sys
from pathlib import Path
helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
Path("helper").write_text(str(helper.pid))
"""
READ = """
import numpy as np

def read(data):
    return np.zeros((4, 2)), np.zeros(4)
"""


def wanted(folder: Path) -> dict[str, object]:
    return {
        "data": {},
        "folder": str(folder / "made"),
        "identity": "it",
        "fingerprint": "0",
    }


def await_end_of_helper(folder: Path) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int((folder / "helper").read_text())).wait(timeout=10)


@pytest.fixture
def task_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A task file that has started a helper process, such as a tracker or a server, when it is imported."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made").mkdir()
    file = tmp_path / "own.py"
    file.write_text(HELPER + READ)
    return file


def test_a_helper_process_of_a_task_file_holds_up_no_answer(
    task_file: Path, tmp_path: Path
) -> None:
    began = time.monotonic()
    answer = ask_file("read", str(task_file), wanted(tmp_path), 60.0)
    assert answer.code == 0 and time.monotonic() - began < 60
    await_end_of_helper(tmp_path)


def test_a_helper_process_does_not_lift_the_time_limit(
    task_file: Path, tmp_path: Path
) -> None:
    task_file.write_text(HELPER + "while True: pass\n")
    with pytest.raises(UserError) as caught:
        ask_file("read", str(task_file), wanted(tmp_path), 3.0)
    assert f"{task_file}" in caught.value.expected and "line 6" in caught.value.received
    await_end_of_helper(tmp_path)


def test_a_helper_process_that_prints_without_end_holds_up_no_answer(
    task_file: Path, tmp_path: Path
) -> None:
    chatty = HELPER.replace(
        "import time; time.sleep(600)", "while True: print('x' * 999)"
    )
    task_file.write_text(chatty + READ)
    assert ask_file("read", str(task_file), wanted(tmp_path), 60.0).code == 0
    await_end_of_helper(tmp_path)
