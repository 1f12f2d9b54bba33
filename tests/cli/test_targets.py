"""No command overwrites a study's records or the files that it reads."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

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
def test_a_record_of_a_study_is_no_target(call, folder_of_runs: Path, name: str) -> None:
    words = [word.format(study=folder_of_runs, file=folder_of_runs / RESULT) for word in COMMANDS[name]]
    before = {file: file.read_bytes() for file in folder_of_runs.rglob("*") if file.is_file()}
    ending = ".html" if name in ("data show", "model samples") else ""
    for target in ("study.json", "study.toml", RESULT, f"new{ending}"):
        assert call(*words, folder_of_runs / target)[0] == 2, target
    assert {file: file.read_bytes() for file in folder_of_runs.rglob("*") if file.is_file()} == before


def test_the_study_file_and_what_is_imported_are_no_targets(call, folder_of_runs: Path, study: Path) -> None:
    table = study.parent / "table.csv"
    assert call("report", study, "--out", table)[0] == 0
    for words in (("report", study, "--out", study), ("report", "--from", table, "--out", table)):
        assert call(*words, "--format", "csv")[0] == 2
    (folder_of_runs / "report").mkdir()
    assert call("report", study, "--out", folder_of_runs / "report" / "table.csv")[0] == 0


@pytest.mark.parametrize("name", [*[*COMMANDS][:5], "demo", "share", "model samples", "init", "site init"])
def test_an_existing_file_is_replaced_only_by_force(call, folder_of_runs: Path, tmp_path: Path, name) -> None:
    commands = COMMANDS | {"demo": ("demo", "--out"), "share": ("report", "{study}", "--share")}
    words = [word.format(study=folder_of_runs, file=folder_of_runs / RESULT) for word in commands[name]]
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
    "proposal, markdown": ("proposal", "{study}", "--panel", "csc", "--format", "markdown", "--out"),
}


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("leads", ["to nothing", "to a file", "to itself"])
@pytest.mark.parametrize("name", LINKED)
def test_nothing_is_written_through_a_link_nor_is_it_replaced(
    call, folder_of_runs: Path, tmp_path: Path, name: str, leads: str, force: bool
) -> None:
    words = [word.format(study=folder_of_runs, file=folder_of_runs / RESULT) for word in LINKED[name]]
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
    assert call("report", folder_of_runs, "--out", tmp_path / "link" / "table.csv")[0] == 0
    table = (tmp_path / "kept" / "table.csv").read_text()
    assert "workers" in table
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_text)
        assert call("report", folder_of_runs, "--out", pipe)[0] == 0
        assert read.result() == table
    assert pipe.is_fifo()
    assert call("report", folder_of_runs, "--format", "csv", "--out", "/dev/full")[0] == 2
    assert call("report", folder_of_runs, "--format", "csv", "--out", "/dev/stdout")[0] == 0
    assert Path("/dev/full").is_char_device()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make links of another user")
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

    monkeypatch.setattr("scalestudy.features.imported.gather.published_findings", work)
    (tmp_path / "file").touch()
    for target in ("/proc/new/page.html", tmp_path / "file" / "page.html"):
        code, _, said = call("demo", "--out", target)
        assert code == 2 and f"{target}:" in said
