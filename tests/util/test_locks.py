"""Locks have one holder at a time, in this process or another, until it ends; some file systems have none."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scalestudy.util.errors import UserError
from scalestudy.util.locks import Timeout, take

HOLD = """
import subprocess, sys
from pathlib import Path
from scalestudy.util.locks import take
held = take(Path(sys.argv[1]))
Path(sys.argv[1]).write_text("me")
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) if len(sys.argv) > 2 else None
print(child.pid if child else 0, flush=True)
sys.stdin.readline()
"""


def holder(path: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLD, str(path), *more]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_a_lock_is_held_against_this_process_too_and_free_again_afterwards(
    tmp_path: Path,
) -> None:
    for _ in range(2):
        with take(tmp_path / "lock"), pytest.raises(Timeout):
            take(tmp_path / "lock")
    assert (
        tmp_path / "lock"
    ).stat().st_mode & 0o777 == 0o600  # others can hold a file that they can open


def test_a_lock_ends_with_its_holder_though_a_worker_of_it_lives_on_and_keeps_what_was_written(
    tmp_path,
):
    with holder(tmp_path / "lock", "with a worker") as other:
        worker = int(other.stdout.readline())
        try:
            with pytest.raises(Timeout):
                take(tmp_path / "lock")
            other.kill()
            other.wait()
            with take(tmp_path / "lock"):
                os.kill(worker, 0)
                assert (tmp_path / "lock").read_text() == "me"
        finally:
            os.kill(worker, 9)


WAIT = """
import sys
from pathlib import Path
from scalestudy.util.locks import take
print("asks", flush=True)
with take(Path(sys.argv[1]), wait=True):
    print(Path(sys.argv[1]).read_text(), flush=True)
"""


def test_who_waits_gets_the_lock_once_it_is_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with take(path):
        second = subprocess.Popen(
            [sys.executable, "-c", WAIT, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert second.stdout.readline() == "asks\n"
        path.write_text("left by the first")
    with second:
        assert second.stdout.readline() == "left by the first\n"
    assert second.returncode == 0


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK])
def test_a_file_system_without_locks_gives_none(
    tmp_path: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("fcntl.flock", no_locks)
    assert take(tmp_path / "lock") is None
    assert take(tmp_path / "lock", wait=True) is None


def test_a_planted_link_is_refused_and_what_it_points_to_is_as_it_was(
    tmp_path: Path,
) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(UserError, match=r"symbolic link to .*precious"):
        take(tmp_path / "lock")
    (tmp_path / "dangling").symlink_to(tmp_path / "new")
    with pytest.raises(UserError, match="symbolic link"):
        take(tmp_path / "dangling", wait=True)
    assert (tmp_path / "precious").read_text() == "precious"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("make", "found"), [(Path.mkdir, "a folder"), (os.mkfifo, "no regular file")]
)
def test_what_is_no_regular_file_is_no_lock(tmp_path: Path, make, found: str) -> None:
    make(tmp_path / "lock")
    with pytest.raises(UserError) as caught:
        take(tmp_path / "lock")
    assert (
        caught.value.received == found
        and str(tmp_path / "lock") in caught.value.expected
    )
