"""No command overwrites a study's records or the files that it reads."""

import os
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

import pytest

from scalestudy.features.diagnose.diagnosis_record import make_diagnosis_folder
from scalestudy.launch.worker_processes import Command, WorkerProcesses
from scalestudy.report.study_document import write_report
from scalestudy.store.records import Sign
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder
from scalestudy.training.run_results import save_model
from scalestudy.util.errors import ScalestudyError
from synthetic_result import epoch_of

RESULT = "points/native-w1-s0/run-1/result.json"
COMMANDS = {
    "report": ("report", "{study}", "--format", "json", "--out"),
    "report --from": ("report", "--from", "{file}", "--format", "csv", "--out"),
    "compare": ("compare", "{study}", "{study}", "--format", "json", "--out"),
    "proposal": ("proposal", "{study}", "--panel", "csc", "--format", "html", "--out"),
    "data show": ("data", "show", "digits", "--out"),
    "model predict": ("model", "predict", "{study}", "images", "--force", "--out"),
    "model samples": ("model", "samples", "{study}", "--out"),
    "model export": ("model", "export", "{study}", "--force", "--out"),
    "check": ("check", "--out"),
    "init": ("init", "--force"),
    "site init": ("site", "init", "--force", "--out"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_record_of_a_study_is_no_target(
    call, folder_of_runs: Path, name: str
) -> None:
    words = [
        word.format(study=folder_of_runs, file=folder_of_runs / RESULT)
        for word in COMMANDS[name]
    ]
    before = {
        file: file.read_bytes() for file in folder_of_runs.rglob("*") if file.is_file()
    }
    ending = ".html" if name in ("data show", "model samples") else ""
    for target in ("study.json", "study.toml", RESULT, f"new{ending}"):
        assert call(*words, folder_of_runs / target)[0] == 2, target
    assert {
        file: file.read_bytes() for file in folder_of_runs.rglob("*") if file.is_file()
    } == before


def test_the_study_file_and_what_is_imported_are_no_targets(
    call, folder_of_runs: Path, study: Path
) -> None:
    table = study.parent / "table.csv"
    assert call("report", study, "--out", table)[0] == 0
    for words in (
        ("report", study, "--out", study),
        ("report", "--from", table, "--out", table),
    ):
        assert call(*words, "--format", "csv")[0] == 2
    (folder_of_runs / "report").mkdir()
    assert (
        call("report", study, "--out", folder_of_runs / "report" / "table.csv")[0] == 0
    )


@pytest.mark.parametrize(
    "name",
    [
        "report",
        "report --from",
        "compare",
        "proposal",
        "data show",
        "demo",
        "share",
        "model samples",
        "init",
        "site init",
    ],
)
def test_an_existing_file_is_replaced_only_by_force(
    call, folder_of_runs: Path, tmp_path: Path, name
) -> None:
    commands = COMMANDS | {
        "demo": ("demo", "--out"),
        "share": ("report", "{study}", "--share"),
    }
    words = [
        word.format(study=folder_of_runs, file=folder_of_runs / RESULT)
        for word in commands[name]
    ]
    old = tmp_path / "old.html"
    old.write_text("of the user")
    code, _, said = call(*(word for word in words if word != "--force"), old)
    assert code == 2 and str(old) in said
    assert old.read_text() == "of the user"
    if "--force" in words:
        assert call(*words, old)[0] == 0
        assert old.read_text() != "of the user"


LINKED = {
    **COMMANDS,
    "demo": ("demo", "--out"),
    "share": ("report", "{study}", "--share"),
    "proposal, markdown": (
        "proposal",
        "{study}",
        "--panel",
        "csc",
        "--format",
        "markdown",
        "--out",
    ),
}


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("leads", ["to nothing", "to a file", "to itself"])
@pytest.mark.parametrize("name", LINKED)
def test_nothing_is_written_through_a_link_nor_is_it_replaced(
    call, folder_of_runs: Path, tmp_path: Path, name: str, leads: str, force: bool
) -> None:
    words = [
        word.format(study=folder_of_runs, file=folder_of_runs / RESULT)
        for word in LINKED[name]
    ]
    if force and name != "check":
        words = words if "--force" in words else [*words[:-1], "--force", words[-1]]
    link, target = tmp_path / "link.html", tmp_path / "target.html"
    link.symlink_to(link if leads == "to itself" else target)
    if leads == "to a file":
        target.write_text("of the user")
    code, _, said = call(*words, link)
    assert code == 2 and "link" in said
    assert link.is_symlink()
    assert target.exists() == (leads == "to a file")
    assert not target.exists() or target.read_text() == "of the user"


def test_a_link_to_a_folder_is_followed_and_a_device_written_to(
    call, folder_of_runs: Path, tmp_path: Path
) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    assert (
        call("report", folder_of_runs, "--out", tmp_path / "link" / "table.csv")[0] == 0
    )
    table = (tmp_path / "kept" / "table.csv").read_text()
    assert "workers" in table
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_text)
        assert call("report", folder_of_runs, "--out", pipe)[0] == 0
        assert read.result() == table
    assert pipe.is_fifo()
    assert (
        call("report", folder_of_runs, "--format", "csv", "--out", "/dev/full")[0] == 2
    )
    assert (
        call("report", folder_of_runs, "--format", "csv", "--out", "/dev/stdout")[0]
        == 0
    )
    assert Path("/dev/full").is_char_device()


SIGN = {
    "rank": 0,
    "host": "h",
    "pid": 1,
    "phase": "step",
    "marks": 1,
    "moved": 0,
    "due": 1,
    "written": 0,
}


def save(run: RunFolder) -> None:
    trainer = Mock(file=Mock(suffix=".keras"))
    trainer.file.save.side_effect = lambda path: Path(path).write_text("model")
    save_model(run, trainer)


def log(run: RunFolder) -> None:
    command = Command(
        [sys.executable, "-c", "print()"],
        {},
        (),
        run.path / "logs" / "rank-0.log",
        run.path,
    )
    with WorkerProcesses([command]) as workers:
        workers.wait()


def new_run(run: RunFolder) -> None:
    folder = study_of(run)
    folder.new_run(folder.points()[0])


def study_of(run: RunFolder) -> StudyFolder:
    return StudyFolder.open(run.path.parents[2])


OF_A_RUN: dict[str, Callable[[RunFolder], object]] = {
    "points": new_run,
    "points/native-w1-s0": new_run,
    "diagnosis": lambda run: make_diagnosis_folder(run.path.parents[2], "native-w1-s0"),
    "diagnosis/native-w1-s0": lambda run: make_diagnosis_folder(
        run.path.parents[2], "native-w1-s0"
    ),
    "report": lambda run: write_report(study_of(run)),
    "lock": lambda run: study_of(run).lock().__enter__(),
    "points/native-w1-s0/run-1/logs": lambda run: run.log(0),
    "points/native-w1-s0/run-1/logs/rank-0.log": log,
    "points/native-w1-s0/run-1/signs": lambda run: run.write_sign(
        Sign.model_validate(SIGN)
    ),
    "points/native-w1-s0/run-1/signs/0.new": lambda run: run.write_sign(
        Sign.model_validate(SIGN)
    ),
    "points/native-w1-s0/run-1/signs/released": lambda run: run.release(),
    "points/native-w1-s0/run-1/epochs.jsonl": lambda run: run.append_epoch(epoch_of()),
    "points/native-w1-s0/run-1/.half.model.keras": save,
}
"""Files and folders in a results folder, and what writes there."""


@pytest.mark.parametrize("to_folder", [False, True])
@pytest.mark.parametrize("name", OF_A_RUN)
def test_nothing_is_written_through_a_link_in_a_results_folder(
    folder_of_runs: Path, tmp_path: Path, name: str, to_folder: bool
) -> None:
    place, target = folder_of_runs / name, tmp_path / "target"
    if to_folder:
        target.mkdir()
    run = StudyFolder.open(folder_of_runs).runs("native-w1-s0")[0]
    place.parent.mkdir(exist_ok=True)
    if place.is_dir():
        shutil.move(place, tmp_path / "before")
    place.unlink(missing_ok=True)
    place.symlink_to(target)
    with suppress(OSError, ScalestudyError):
        OF_A_RUN[name](run)
    assert not any(target.iterdir()) if to_folder else not target.exists()


@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can make links of another user"
)
@pytest.mark.parametrize("name", ["init", "report", "data show"])
def test_a_folder_behind_another_users_link_in_a_folder_for_everybody_is_refused(
    call, folder_of_runs: Path, tmp_path: Path, name: str
) -> None:
    common, target = tmp_path / "tmp", tmp_path / "target"
    for folder in (common, target):
        folder.mkdir()
    common.chmod(0o1777)
    (common / "link").symlink_to(target)
    words = [word.format(study=folder_of_runs) for word in COMMANDS[name]]
    file = common / "link" / "new" / "study.html"
    os.chown(common / "link", 65534, 65534, follow_symlinks=False)
    code, _, said = call(*words, file)
    assert code == 2 and "65534" in said
    assert not any(target.iterdir())
    os.chown(common / "link", os.geteuid(), -1, follow_symlinks=False)
    (target / "new").mkdir()
    assert call(*words, file)[0] == 0
    assert (target / "new" / "study.html").exists()


def test_a_target_that_cannot_be_written_is_refused_before_the_work(
    call, tmp_path: Path, monkeypatch
) -> None:
    def work() -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr(
        "scalestudy.features.imported.published.published_findings", work
    )
    (tmp_path / "file").touch()
    for target in ("/proc/new/page.html", tmp_path / "file" / "page.html"):
        code, _, said = call("demo", "--out", target)
        assert code == 2 and f"{target}:" in said
