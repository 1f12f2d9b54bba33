"""The secret of a run: shared by all of its processes and readable by no one else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.private_files import SECRET, SECRET_FILE, new_secret, secret_set
from scalestudy.util.errors import RunError

NOBODY = 65534
READ = """
import os, sys
from pathlib import Path
from scalestudy.cluster.placement import Placement
from scalestudy.cluster.private_files import SECRET, secret_set
rank, size = int(sys.argv[2]), int(sys.argv[3])
with secret_set(Path(sys.argv[1]), Placement(rank, size, rank, size, 0, ("n",) * size, "test")):
    print(os.environ[SECRET], flush=True)
    sys.stdin.read()
"""


def place(rank: int = 0, size: int = 2) -> Placement:
    return Placement(rank, size, rank, size, 0, ("n1",) * size, "slurm")


def test_processes_that_start_at_once_come_to_one_secret_and_leave_nothing(tmp_path: Path) -> None:
    size = 4
    started = [
        subprocess.Popen(
            [sys.executable, "-c", READ, str(tmp_path), str(rank), str(size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    told = {each.stdout.readline().strip() for each in started}
    assert (tmp_path / SECRET_FILE).stat().st_mode & 0o777 == 0o600
    for each in reversed(started):  # rank 0 last, because it removes the file
        each.communicate()
    assert len(told) == 1
    assert len(told.pop()) == 64
    assert not list(tmp_path.iterdir())


def test_what_the_launcher_has_passed_is_taken_and_no_file_is_made(tmp_path: Path) -> None:
    given = new_secret()
    variables = {SECRET: given}
    with secret_set(tmp_path, place(), variables):
        assert variables == {SECRET: given}
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", ["", "guessable", "0" * 63])
def test_a_variable_that_holds_no_secret_is_replaced(value: str, tmp_path: Path) -> None:
    variables = {SECRET: value}
    with secret_set(tmp_path, place(), variables):
        assert variables[SECRET] not in ("", value)


def test_one_process_alone_needs_none(tmp_path: Path) -> None:
    variables: dict[str, str] = {}
    with secret_set(tmp_path, place(size=1), variables):
        assert not variables
        assert not list(tmp_path.iterdir())


def test_what_a_killed_run_has_left_serves_the_next(tmp_path: Path) -> None:
    first: dict[str, str] = {}
    second: dict[str, str] = {}
    with secret_set(tmp_path, place(rank=1), first):
        pass  # rank 0 was killed, so the file stays
    with secret_set(tmp_path, place(rank=0), second):
        assert second == first
    assert not list(tmp_path.iterdir())


def plant_link(file: Path) -> None:
    elsewhere = file.with_name("elsewhere")
    elsewhere.write_text(new_secret())
    elsewhere.chmod(0o600)
    file.symlink_to(elsewhere)


def plant_open(file: Path) -> None:
    file.write_text(new_secret())
    file.chmod(0o644)


def plant_other(file: Path) -> None:
    file.write_text("known to all")
    file.chmod(0o600)


def plant_foreign(file: Path) -> None:
    file.write_text(new_secret())
    file.chmod(0o600)
    os.chown(file, NOBODY, NOBODY)


@pytest.mark.parametrize(
    "plant",
    [
        plant_link,
        plant_open,
        plant_other,
        pytest.param(plant_foreign, marks=pytest.mark.skipif(os.geteuid() != 0, reason="needs root")),
    ],
)
def test_a_planted_secret_is_refused(plant, tmp_path: Path) -> None:
    plant(tmp_path / SECRET_FILE)
    with (
        pytest.raises(RunError, match=r"only you can read as .*\.secret.*Remove it"),
        secret_set(tmp_path, place(rank=1), {}),
    ):
        pass
