"""Locks have one holder at a time, in this process or another, until it ends; some file systems have none."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scalestudy.util import locks as private
from scalestudy.util.errors import RunError, UserError
from scalestudy.util.locks import Timeout, private_folder, take

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


NOBODY = 65534
as_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can give a folder to another user"
)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The three possible places of the folder, by kind."""
    runtime, temporary, cache = (
        tmp_path / name for name in ("runtime", "temporary", "cache")
    )
    for folder in (runtime, temporary, cache):
        folder.mkdir(mode=0o700)
    temporary.chmod(0o1777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setattr(private, "RUNTIME", tmp_path / "no-systemd")
    return {
        "runtime": runtime / "scalestudy",
        "temporary": temporary / f"scalestudy-{os.geteuid()}",
        "cache": cache / "scalestudy" / f"on-{os.uname().nodename}",
    }


def plant_link(path: Path) -> None:
    (path.parent / "elsewhere").mkdir()
    path.symlink_to(path.parent / "elsewhere")


def plant_open(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


def plant_file(path: Path) -> None:
    path.write_text("in the way")


def plant_foreign(path: Path) -> None:
    path.mkdir(mode=0o700)
    os.chown(path, NOBODY, NOBODY)


PLANTED = [
    plant_link,
    plant_open,
    plant_file,
    pytest.param(plant_foreign, marks=as_root),
]


def test_it_is_in_the_runtime_folder_and_opens_to_nobody_else(
    places: dict[str, Path],
) -> None:
    assert private_folder() == places["runtime"] == private_folder()
    assert places["runtime"].stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("plant", PLANTED)
def test_what_is_planted_in_the_shared_folder_is_passed_over(
    places, plant, monkeypatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    plant(places["temporary"])
    assert private_folder() == places["cache"]
    assert not (places["temporary"].parent / "elsewhere").is_dir() or not any(
        (places["temporary"].parent / "elsewhere").iterdir()
    )


@pytest.mark.parametrize("value", [None, "", "relative", "/nowhere/at/all"])
def test_a_runtime_folder_that_is_none_is_passed_over(
    places, value, monkeypatch
) -> None:
    monkeypatch.setenv("LOGNAME", "../somebody")  # the folder is named by user ID
    monkeypatch.delenv("XDG_RUNTIME_DIR") if value is None else monkeypatch.setenv(
        "XDG_RUNTIME_DIR", value
    )
    assert private_folder() == places["temporary"]


def test_folders_that_others_can_write_to_are_passed_over(
    places: dict[str, Path],
) -> None:
    places["runtime"].parent.chmod(0o770)
    assert private_folder() == places["temporary"]
    places["temporary"].parent.chmod(0o777)  # anyone can rename entries here
    assert private_folder() == places["cache"]


@as_root
def test_another_users_runtime_folder_is_passed_over(places: dict[str, Path]) -> None:
    os.chown(places["runtime"].parent, NOBODY, NOBODY)
    assert private_folder() == places["temporary"]


def test_where_everything_is_planted_it_says_what_and_what_to_do(
    places: dict[str, Path],
) -> None:
    for path in places.values():
        path.parent.mkdir(exist_ok=True)
        plant_open(path)
    with pytest.raises(
        RunError, match=r"scalestudy-\d+: open to others \(mode 0777\).*XDG_RUNTIME_DIR"
    ):
        private_folder()


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
