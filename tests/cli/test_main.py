import re
import subprocess
import sys

import pytest

from scalestudy import __version__


def test_help_teaches_every_command_and_shows_examples(call) -> None:
    code, text, _ = call("--help")
    assert code == 0
    commands = {
        "Study": ["demo", "init", "run", "submit", "train", "status", "logs", "cancel"],
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
    assert text.count("    scalestudy ") == 6


def test_the_version_is_printed(call) -> None:
    assert call("--version") == (0, f"scalestudy {__version__}\n", "")


@pytest.mark.parametrize("arguments", [["nonsense"], ["run"], ["run", "a.toml", "--nonsense"], ["status"]])
def test_a_wrong_command_line_ends_with_2(call, arguments: list[str]) -> None:
    code, _, errors = call(*arguments)
    assert code == 2
    assert errors


@pytest.mark.parametrize(
    ("arguments", "received", "meant"),
    [
        (["run", "--dryrun"], "--dryrun", "--dry-run"),
        (["rnu"], "rnu", "run"),
        (["model", "predikt"], "predikt", "predict"),
        (["run", "--out"], "--out", "--help"),
        (["check", "-n", "x"], "-n", "--help"),
        (["run", "a.toml", "b.toml"], "b.toml", "--help"),
        (["compare"], "[NAME=]STUDY", "--help"),
    ],
)
def test_a_wrong_command_line_has_the_three_parts_of_an_error(call, arguments, received, meant) -> None:
    code, text, errors = call(*arguments)
    assert (code, text) == (2, "")
    first, expected, given, action = errors.splitlines()
    assert (first, expected.split()[0], given.split()[0]) == ("Error", "Expected", "Received")
    assert received in given and meant in action


def test_no_arguments_show_the_help(call) -> None:
    assert call() == (2, "", call("--help")[1])
    assert call("model") == (2, "", call("model", "--help")[1])


def test_an_error_is_three_lines_without_a_traceback(call, tmp_path) -> None:
    code, text, errors = call("run", str(tmp_path / "none.toml"))
    assert (code, text) == (2, "")
    assert [line.split()[0] for line in errors.splitlines()] == ["Error", "Expected", "Received", "Write"]


def test_an_interrupt_ends_with_130(call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("scalestudy.app.survey.load_study", interrupt)
    assert call("run", "a.toml")[0] == 130


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "scalestudy", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith(
        "scalestudy "
    )
