"""What `scalestudy launch` says of scripts that fail, are interrupted, or end with an exit code."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.engine


def launch(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "scalestudy", "launch", *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


TORCH = "if False:\n    import torch\n"
"""Lines by which a script counts as one of PyTorch, without the time that its import takes."""


def test_the_rank_that_failed_is_named_with_its_last_lines_and_all_others_are_ended(
    tmp_path,
):
    script = tmp_path / "train.py"
    script.write_text(
        TORCH + "import os, signal\n"
        "if os.environ['RANK'] == '1':\n"
        "    raise ValueError('file 17 cannot be read')\n"
        "signal.pause()\n"
    )
    done = launch(tmp_path, "-n", 2, script)
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert (
        "rank 1 ended with exit code 1: ValueError: file 17 cannot be read (train.py, line 5)"
        in said
    )
    assert "| ValueError: file 17 cannot be read" in done.stderr
    assert "scripts/script_process.py" not in done.stderr


@pytest.mark.slow
def test_a_script_that_is_interrupted_is_named_with_where_its_logs_are(tmp_path):
    script, begun = tmp_path / "train.py", tmp_path / "begun"
    script.write_text(
        TORCH + f"import signal\nopen({str(begun)!r}, 'w')\nsignal.pause()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "scalestudy", "launch", "-n", "2", str(script)],
        stderr=subprocess.PIPE,
        text=True,
    )
    while not begun.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    stopped = "".join(said.splitlines()[-1:])
    assert str(script) in stopped
    assert Path(stopped.split()[-1], "rank-1.log").exists()


def test_what_a_script_ends_with_is_told(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(f"{TORCH}import sys\nsys.exit(int(sys.argv[1]))\n")
    assert launch(tmp_path, script, 0).returncode == 0
    failed = launch(tmp_path, script, 3)
    assert failed.returncode == 1
    assert "the script ended the program by sys.exit(3) (train.py, line 4)" in " ".join(
        failed.stderr.split()
    )
