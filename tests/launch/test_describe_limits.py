"""A task file that does not return is stopped after a time limit, and with the process that asked."""

import subprocess
import sys
import time

import psutil
import pytest

from scalestudy.launch.environments import build_task
from scalestudy.tasks.task_file import REMEDY
from scalestudy.util.errors import UserError

pytestmark = [pytest.mark.slow, pytest.mark.engine]
WAITING = "import os\nos.path.exists('here')\n{}\nloss = 'mse'\nmetrics = ['mae']\n"


@pytest.fixture
def file(tmp_path):
    """Write a task file with this code in line 3."""

    def write(code):
        path = tmp_path / "my_task.py"
        path.write_text(WAITING.format(code))
        return path

    return write


def test_a_file_that_does_not_return_is_refused_with_its_line(file):
    path = file("while True: pass")
    with pytest.raises(UserError) as caught:
        build_task(path, {}, within=2)
    assert str(path) in caught.value.expected
    assert "line 3" in caught.value.received
    assert "progress_timeout" in caught.value.action


@pytest.mark.parametrize(("code", "received"), [("os._exit(7)", "7"), ("raise ValueError('no')", "no")])
def test_a_file_that_ends_the_process_is_refused(file, code, received):
    with pytest.raises(UserError) as caught:
        build_task(file(code), {})
    assert received in caught.value.received
    assert (caught.value.action == REMEDY) is code.startswith("raise")


def test_the_process_that_imports_it_ends_with_who_asked(file):
    asks = "import sys; from scalestudy.launch.environments import build_task; build_task(sys.argv[1], {})"
    with subprocess.Popen([sys.executable, "-c", asks, str(file("while True: pass"))]) as asker:
        while not (children := psutil.Process(asker.pid).children()):
            assert asker.poll() is None
            time.sleep(0.02)
        asker.kill()
    _, alive = psutil.wait_procs(children, timeout=300)
    assert not alive
