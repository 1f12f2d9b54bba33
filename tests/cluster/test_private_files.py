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


def test_processes_that_start_at_once_come_to_one_secret_and_leave_nothing(
    tmp_path: Path,
) -> None:
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


@pytest.mark.parametrize(("size", "given"), [(2, {SECRET: new_secret()}), (1, {})])
def test_what_the_launcher_has_passed_is_taken_and_one_process_alone_needs_none(
    tmp_path, size, given
):
    variables = dict(given)
    with secret_set(tmp_path, place(size=size), variables):
        assert variables == given
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", ["", "guessable", "0" * 63])
def test_a_variable_that_holds_no_secret_is_replaced(
    value: str, tmp_path: Path
) -> None:
    variables = {SECRET: value}
    with secret_set(tmp_path, place(), variables):
        assert variables[SECRET] not in ("", value)


def test_what_a_killed_run_has_left_serves_the_next(tmp_path: Path) -> None:
    first: dict[str, str] = {}
    second: dict[str, str] = {}
    with secret_set(tmp_path, place(rank=1), first):
        pass  # rank 0 was killed, so the file stays
    with secret_set(tmp_path, place(rank=0), second):
        assert second == first
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "changed", ["a link", "readable by all", "other words", "another user's"]
)
def test_a_planted_secret_is_refused(changed, tmp_path: Path) -> None:
    file = tmp_path / SECRET_FILE
    target = tmp_path / "elsewhere" if changed == "a link" else file
    target.write_text("known to all" if changed == "other words" else new_secret())
    target.chmod(0o644 if changed == "readable by all" else 0o600)
    if changed == "a link":
        file.symlink_to(target)
    elif changed == "another user's":
        if os.geteuid() != 0:
            pytest.skip("needs root")
        os.chown(file, NOBODY, NOBODY)
    with (
        pytest.raises(RunError, match=r"only you can read as .*\.secret.*Remove it"),
        secret_set(tmp_path, place(rank=1), {}),
    ):
        pass
