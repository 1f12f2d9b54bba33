"""A task file that does not return is stopped after a time limit, and with the process that asked."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from data_settings import data_of
from few_digits import few_digits
from scalestudy.data.store.prepare import prepare
from scalestudy.launch import describe
from scalestudy.tasks.file import REMEDY
from scalestudy.util.errors import UserError

pytestmark = pytest.mark.slow
ENDLESS = """import os
from pathlib import Path

data = os.environ.get("DATA")
Path(__file__).with_name("pid").write_text(str(os.getpid()))
{hang}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write a task file that hangs in line 6."""
    monkeypatch.setattr(describe, "any_installed", lambda: True)

    def write(hang: str) -> Path:
        path = tmp_path / "my_task.py"
        path.write_text(ENDLESS.format(hang=hang))
        return path

    return write


def gone(pid: Path) -> bool:
    return not psutil.pid_exists(int(pid.read_text()))


@pytest.mark.parametrize("hang", ["while True: pass", "__import__('socket').create_server(('', 0)).accept()"])
def test_a_file_that_does_not_return_is_refused_with_its_line(file, hang):
    path = file(hang)
    with pytest.raises(UserError) as caught:
        describe.describe_task(path, within=2)
    assert caught.value.expected == f"a task file that can be imported within 2 s: {path}"
    assert caught.value.received == "it did not finish: line 6 (in <module>) does not return"
    assert "progress_timeout" in caught.value.action
    assert gone(path.with_name("pid"))


def test_the_model_of_a_file_that_does_not_return_is_not_built(file, tmp_path):
    prepared = prepare(data_of(few_digits(tmp_path, 20), cache=tmp_path))
    with pytest.raises(UserError, match="line 6"):
        describe.build_task(file("while True: pass"), {"prepared": str(prepared.path)}, within=2)


def test_a_file_that_ends_the_process_is_told_without_a_traceback_that_is_not_there(file):
    with pytest.raises(UserError) as caught:
        describe.describe_task(file("os._exit(7)"))
    assert "7" in caught.value.received and "os._exit" in caught.value.action
    with pytest.raises(UserError) as caught:
        describe.describe_task(file("raise ValueError"))
    assert caught.value.action == REMEDY


def test_a_file_that_is_stopped_is_ended_from_outside(file, monkeypatch):
    monkeypatch.setattr(describe, "FRAMEWORK_WITHIN", 3)
    path = file("os.kill(os.getpid(), 19)")
    with pytest.raises(UserError, match="it did not finish"):
        describe.describe_task(path, within=3)
    assert gone(path.with_name("pid"))


def test_the_process_that_imports_it_ends_with_who_asked(file):
    path = file("while True: pass")
    asks = (
        "import sys; from pathlib import Path; from scalestudy.launch import describe\n"
        "describe.any_installed = lambda: True\n"
        "describe.describe_task(Path(sys.argv[1]))"
    )
    pid = path.with_name("pid")
    with subprocess.Popen([sys.executable, "-c", asks, str(path)]) as asker:
        while not pid.exists() or not pid.read_text():
            assert asker.poll() is None
            time.sleep(0.02)
        child = psutil.Process(int(pid.read_text()))
        asker.kill()
    _, alive = psutil.wait_procs([child], timeout=300)
    assert not alive
