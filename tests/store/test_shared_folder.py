"""A project folder of a group: what one account makes in it, another can go on with."""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from data_settings import data_of
from forked import Forked
from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.data.preparation import prepare
from scalestudy.data.split import ensure_split
from scalestudy.store.study_folder import StudyFolder
from scalestudy.training.checkpoint import read_position, write_checkpoint
from scalestudy.training.position import Position
from scalestudy.util.errors import UserError
from synthetic_result import epoch_of, progress_of, result_of

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can take two other accounts"
)
TEXT = 'task = "cnn"\n[sweep]\nworkers = [1, 2]\nseed = 0\n'
LAB, ANNA, BEN, EVE = 61_100, 61_101, 61_102, 61_103
"""A group, and three accounts without a name, each with a private group; Eve is not in the lab."""


@pytest.fixture
def project() -> Iterator[Path]:
    """A folder of the group lab with set-group-ID, where all accounts can reach it."""
    top = Path(tempfile.mkdtemp(prefix="scalestudy-lab-", dir="/var/tmp"))
    top.chmod(0o755)
    folder = top / "p"
    folder.mkdir()
    os.chown(folder, 0, LAB)
    folder.chmod(0o2775)
    for account in (ANNA, BEN, EVE):
        (top / str(account)).mkdir()
        os.chown(top / str(account), account, account)
    yield folder
    shutil.rmtree(top)


def act(
    project: Path, account: int, work: Callable[[], object], mask: int = 0o002
) -> None:
    """Call `work` as another account, which is in the group lab unless it is Eve's."""

    def as_account() -> int:
        os.setgroups([] if account == EVE else [LAB])
        os.setresgid(account, account, account)
        os.setresuid(account, account, account)
        os.umask(mask)
        work()
        return 0

    child = Forked(as_account, project.parent / str(account))
    assert child.wait() == 0, child.output()


def make_study(project: Path) -> StudyFolder:
    study = parse_study(TEXT, Path("study.toml"))
    return StudyFolder.create_or_open(
        project / "studies" / "shared", study, expand(study, gpus=0, cores=8), TEXT
    )


def begin(project: Path) -> None:
    """Create a study, run its first point up to a checkpoint, and leave the rest of a killed write."""
    folder = make_study(project)
    with folder.lock():
        run = folder.new_run(folder.points()[0])
        run.write_progress(progress_of())
        run.append_epoch(epoch_of(1))
        write_checkpoint(run.checkpoint, Position(epoch=1), [np.zeros(3)], "same")
        (run.path / ".checkpoint.npz.half").touch()
        run.log(0).write_text("begun\n")
        run.ask_to_stop("a time limit")


def go_on(project: Path) -> None:
    """Continue the run of another account and begin one of the other point."""
    folder = make_study(project)
    with folder.lock():
        (run,) = folder.runs(folder.points()[0].name)
        run.forget_stop()
        run.keep_epochs(1)
        run.append_epoch(epoch_of(2))
        write_checkpoint(run.checkpoint, Position(epoch=2), [np.zeros(3)], "same")
        with run.log(0).open("a") as log:
            log.write("continued\n")
        folder.new_run(folder.points()[1]).write_result(
            result_of(folder.points()[1], quality=0.5)
        )
    folder.updated(lambda study, points: (study, points[:1], TEXT))


def test_a_colleague_goes_on_with_a_study_of_a_shared_folder(project):
    act(project, ANNA, lambda: begin(project))
    act(project, BEN, lambda: go_on(project))
    folder = StudyFolder.open(project / "studies" / "shared")
    (run,) = folder.runs(folder.points()[0].name)
    assert [record.epoch for record in run.epochs()] == [1, 2]
    position = read_position(run.checkpoint, "same")
    assert position is not None and position.epoch == 2
    assert run.log(0).read_text() == "begun\ncontinued\n"
    for path in project.rglob("*"):
        found = path.stat()
        expected = 0o2775 if path.is_dir() else 0o664
        if path.name == "lock":
            expected = 0o660  # who could only read it could hold it for ever
        assert (path, stat.S_IMODE(found.st_mode), found.st_gid) == (
            path,
            expected,
            LAB,
        )


def test_a_colleague_draws_another_split_of_a_shared_cache(project):
    np.savez(
        project / "set.npz",
        x_train=np.zeros((8, 4, 4), np.uint8),
        y_train=np.arange(8) % 2,
    )
    # Imports all modules: the accounts may be unable to read root's Python.
    ensure_split(
        prepare(data_of(project / "set.npz", cache=project.parent / "cache")),
        0.25,
        seed=0,
    )
    data = data_of(project / "set.npz", cache=project / "cache")
    act(project, ANNA, lambda: ensure_split(prepare(data), 0.25, seed=0))
    act(project, BEN, lambda: ensure_split(prepare(data), 0.25, seed=1))
    splits = list((project / "cache").glob("*/split*"))
    assert {path.stat().st_uid for path in splits} == {ANNA, BEN}
    assert {path.stat().st_gid for path in (project / "cache").rglob("*")} == {LAB}


def test_who_cannot_write_there_can_read_but_not_hold_the_lock(project):
    act(project, ANNA, lambda: begin(project))

    def read_and_fail_to_lock() -> None:
        folder = StudyFolder.open(project / "studies" / "shared")
        with pytest.raises(UserError, match="Permission denied"), folder.lock():
            pass
        with pytest.raises(PermissionError):
            (folder.path / "lock").open()

    act(project, EVE, read_and_fail_to_lock)


@pytest.mark.parametrize(
    ("mask", "folder", "file"), [(0o022, 0o755, 0o644), (0o077, 0o700, 0o600)]
)
def test_without_set_group_id_the_umask_alone_decides(tmp_path, mask, folder, file):
    before = os.umask(mask)
    try:
        made = make_study(tmp_path)
    finally:
        os.umask(before)
    modes = (
        stat.S_IMODE(path.stat().st_mode)
        for path in (made.path, made.path / "study.json")
    )
    assert tuple(modes) == (folder, file)
