"""The command line: help, errors, bugs, and how commands find their study."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import synthetic
from scalestudy import __version__
from scalestudy.cli.options import open_study
from scalestudy.launch.stop_signal import stoppable
from scalestudy.util.errors import UserError


def test_help_teaches_every_command_and_shows_examples(call) -> None:
    code, text, _ = call("--help")
    assert code == 0
    commands = {
        "Study": ["demo", "init", "run", "submit", "status", "logs", "cancel"],
        "Results": ["report", "advise", "diagnose", "proposal", "compare"],
        "Models and data": ["model", "data", "launch"],
        "Machine": ["check", "site"],
    }
    sections = re.split(r"(?m)^(\S[^:\n]*):$", text)
    shown = dict(zip(sections[1::2], sections[2::2], strict=True))
    for group, names in commands.items():
        for name in names:
            assert re.search(rf"(?m)^  {name} +\S", shown[group]), name
    assert "..." not in "".join(sections[2::2])
    assert text.count("    scalestudy ") == 5


def test_the_version_is_printed(call) -> None:
    assert call("--version") == (0, f"scalestudy {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "received", "meant"),
    [
        (["run", "--dryrun"], "--dryrun", "--dry-run"),
        (["rnu"], "rnu", "run"),
        (["nonsense"], "nonsense", "--help"),
        (["run", "a.toml", "--nonsense"], "--nonsense", "--help"),
        (["run"], "study.toml", "Write"),
        (["status"], "no study in this folder", "Name a study file"),
        (["model", "predikt"], "predikt", "predict"),
        (["run", "--out"], "--out", "--help"),
        (["check", "-n", "x"], "-n", "--help"),
        (["run", "a.toml", "b.toml"], "b.toml", "--help"),
        (["compare"], "REFERENCE", "--help"),
        (
            ["model", "export", "--format", "onnx"],
            "--format",
            "was removed: the ending of --out tells",
        ),
        (["run", "--live"], "--live", "Other commands have it"),
    ],
)
def test_a_wrong_command_line_has_the_three_parts_of_an_error(
    call, arguments, received, meant
) -> None:
    code, text, errors = call(*arguments)
    assert (code, text) == (2, "")
    first, expected, given, action = errors.splitlines()
    assert (first, expected.split()[0], given.split()[0]) == (
        "Error",
        "Expected",
        "Received",
    )
    assert received in given and meant in action


def test_no_arguments_show_the_help(call) -> None:
    assert call() == (2, "", call("--help")[1])
    assert call("model") == (2, "", call("model", "--help")[1])


def test_an_interrupt_ends_with_130(call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("scalestudy.app.plan.load_study", interrupt)
    assert call("run", "a.toml")[0] == 130


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_with_the_code_that_shells_give_it(
    call, monkeypatch, number: int
) -> None:
    def stopped(_: object) -> None:
        with stoppable():
            signal.raise_signal(number)

    monkeypatch.setattr("scalestudy.app.plan.load_study", stopped)
    assert call("run", "a.toml")[0] == 128 + number


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "scalestudy", "--version"]
    assert subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.startswith("scalestudy ")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(path: Path) -> None:
        raise KeyError(f"of {path}")

    monkeypatch.setattr("scalestudy.app.plan.load_study", load)


def test_the_traceback_goes_to_a_file_of_this_user_alone_and_the_message_asks_for_a_report(
    call, broken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code, _, errors = call("run", "a.toml")
    assert code == 70
    assert "Traceback" not in errors
    assert "a bug in scalestudy: KeyError: 'of a.toml' (test_main.py, line" in errors
    (file,) = tmp_path.iterdir()
    assert f"in {file}: please report it" in errors
    text = file.read_text()
    assert "Traceback (most recent call last)" in text and text.startswith(
        "scalestudy "
    )
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_a_reader_that_has_had_enough_ends_it_quietly() -> None:
    command = f"{sys.executable} -m scalestudy check --strategies | head -c 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert done.stdout[1:].strip() in ("0", "1")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def study_at(folder, age=0):
    synthetic.write(folder, folder.name, [synthetic.run()])
    os.utime(folder / "study.json", (1e9 - age, 1e9 - age))
    return folder


def test_a_study_is_named_by_its_folder_or_by_its_file(here):
    folder = study_at(here / "studies" / "first")
    (here / "first.toml").write_text('task = "unet"\n')
    assert open_study(folder).path == folder
    assert open_study(Path("first.toml")).path.resolve() == folder


def test_without_a_name_it_is_the_newest_here(here, monkeypatch):
    study_at(here / "studies" / "old", age=100)
    newest = study_at(here / "studies" / "new")
    assert open_study(None).path.resolve() == newest
    monkeypatch.chdir(here / "studies" / "old")
    assert open_study(None).path.resolve() == here / "studies" / "old"


def test_a_file_that_was_not_run_and_a_folder_without_studies_are_refused(here):
    (here / "new.toml").write_text('task = "unet"\n')
    for given in (Path("new.toml"), None):
        with pytest.raises(UserError):
            open_study(given)


def test_an_unknown_choice_is_named_without_words_of_the_parser(call):
    code, _, errors = call("advise", "study", "--bill", "8")
    said = " ".join(errors.split())
    assert code == 2
    assert "'8' is not one of 'worker', 'gpu', 'core', 'node'" in said
    assert "Value error" not in said
