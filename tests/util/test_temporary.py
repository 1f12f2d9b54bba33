"""Temporary folders: who removes them, and when."""

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from paths import SOURCE
from scalestudy.util.temporary import temporary_folder

HOLD = """
import signal
from scalestudy.util.temporary import temporary_folder
with temporary_folder("made-") as folder:
    (folder / "large").write_text("x")
    print(folder, flush=True)
    signal.pause()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


@pytest.fixture
def holder(place: Path):
    """A process that holds a temporary folder, and its folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
    )
    with process:
        yield process, Path(process.stdout.readline().decode().strip())
        process.kill()


def test_a_folder_lives_as_long_as_its_context(place: Path) -> None:
    with temporary_folder("made-") as folder:
        (folder / "file").touch()
        assert list(place.iterdir()) == [folder]
    assert not list(place.iterdir())


def test_the_next_folder_removes_those_of_killed_processes_and_of_no_others(
    place: Path, holder
) -> None:
    process, folder = holder
    for name in ("other-node-1", f"made-other{os.uname().nodename}-2"):
        (place / name).mkdir()
    (place / f"made-{os.uname().nodename}-link").symlink_to(place / "other-node-1")
    with temporary_folder("made-"):
        assert folder.exists()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (folder / "large").exists()
    with temporary_folder("made-"):
        assert not folder.exists()
    assert len(list(place.iterdir())) == 3


def test_a_forked_child_leaves_the_folder_to_its_owner(place: Path) -> None:
    with ExitStack() as held:
        folder = held.enter_context(temporary_folder("made-"))
        child = os.fork()
        if child == 0:
            held.close()
            os._exit(0)
        os.waitpid(child, 0)
        with temporary_folder("made-"):
            assert folder.exists()
    assert not list(place.iterdir())
