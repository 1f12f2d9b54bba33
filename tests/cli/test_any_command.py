"""What holds for every command: empty values, and standard streams that are closed or full."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import scalestudy.cli
from paths import SOURCE
from scalestudy.cli.printing import out


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Words and parser of every command."""
    whole: Any = typer.main.get_command(scalestudy.cli.app)
    for name, command in whole.commands.items():
        for inner, parser in getattr(command, "commands", {}).items():
            yield (name, inner), parser
        if not hasattr(command, "commands"):
            yield (name,), command


def takes_value(parameter: Any) -> bool:
    return not getattr(parameter, "is_flag", False) and parameter.name != "help"


def empty_values() -> Iterator[Any]:
    """A command line for each value of each command, in which this value is empty and others are not."""
    for words, parser in commands():
        arguments = [
            each for each in parser.params if each.param_type_name == "argument"
        ]
        others = ["some"] * len(arguments)
        for parameter in filter(takes_value, parser.params):
            if words == ("launch",) and parameter.name == "arguments":
                continue  # those of the user's script
            if parameter in arguments:
                place = arguments.index(parameter)
                line = [*others[:place], "", *others[place + 1 :]]
            else:
                line = [parameter.opts[0], *[""] * parameter.nargs, *others]
            yield pytest.param(
                [*words, *line], id=f"{'-'.join(words)}-{parameter.name}"
            )


@pytest.mark.parametrize("line", list(empty_values()))
def test_an_empty_value_is_refused(
    call, line: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, text, errors = call(*line)
    assert (code, text) == (2, "")
    option = next((word for word in line if word.startswith("-")), "")
    _, expected, received, action = errors.splitlines()
    assert option in expected and received.endswith('""') and action.strip()
    assert not list(tmp_path.iterdir())


def test_an_empty_argument_of_a_script_is_passed_on(call, tmp_path: Path) -> None:
    script = tmp_path / "own.py"
    script.write_text(
        "import sys\nassert sys.argv[1:] == ['', 'b']\nif False:\n    import torch\n"
    )
    assert call("launch", script, "", "b")[0] == 0


WITHOUT_STREAMS = {
    "demo": (),
    "init": (),
    "run": ("{study}", "--dry-run"),
    "submit": ("{study}", "--dry-run"),
    "recipe": ("{study}", "--dry-run"),
    "status": ("{folder}",),
    "logs": ("{folder}",),
    "cancel": ("{folder}",),
    "report": ("{folder}",),
    "advise": ("{folder}",),
    "diagnose": ("{folder}", "--point", "none"),
    "proposal": ("--list",),
    "compare": ("{folder}", "{folder}"),
    "export": ("{folder}", "--to", "tensorboard", "--out", "logs"),
    "docs": ("imported",),
    "model predict": ("{folder}", "images", "--out", "predicted"),
    "model evaluate": ("{folder}",),
    "model samples": ("{folder}",),
    "model export": ("--out", "model.onnx", "{folder}"),
    "data show": ("digits",),
    "data prepare": ("digits",),
    "launch": ("none.py",),
    "check": ("--strategies",),
    "site init": ("here",),
}
"""Arguments for every command, which ends at once with them."""


def run_line(line: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command line of the shell."""
    environment = os.environ | {
        "PYTHONPATH": str(SOURCE),
        "PROGRAM": f"{sys.executable} -m scalestudy",
        "XDG_CONFIG_HOME": str(folder),
    }
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_command_is_tried_without_streams() -> None:
    assert set(WITHOUT_STREAMS) == {" ".join(words) for words, _ in commands()}


@pytest.mark.slow
@pytest.mark.parametrize("command", WITHOUT_STREAMS)
def test_no_command_takes_closed_streams_for_a_bug(
    command: str, study: Path, folder_of_runs: Path
) -> None:
    words = " ".join((command, *WITHOUT_STREAMS[command])).format(
        study=study, folder=folder_of_runs
    )
    assert run_line(f"$PROGRAM {words} <&- >&- 2>&-", folder_of_runs).returncode in (
        0,
        1,
        2,
    )


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_a_closed_stream_goes_to_no_file(
    closed: str, folder_of_runs: Path, tmp_path: Path
) -> None:
    done = run_line(
        f"$PROGRAM report {folder_of_runs} --out page.csv {closed}", tmp_path
    )
    assert done.returncode == 0
    assert (tmp_path / "page.csv").read_text().startswith("strategy,")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("status . 2>/dev/full", 2),
        pytest.param("check --strategies >/dev/full", 2, marks=pytest.mark.slow),
        ("--help >/dev/full", 2),
    ],
)
def test_a_full_disk_behind_a_stream_is_no_bug(
    line: str, code: int, tmp_path: Path
) -> None:
    done = run_line(f"$PROGRAM {line}", tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)


def test_a_reader_that_leaves_early_ends_a_command_without_a_word(
    folder_of_runs: Path,
) -> None:
    done = run_line(
        f"$PROGRAM report {folder_of_runs} | true; exit ${{PIPESTATUS[0]}}",
        folder_of_runs,
    )
    assert done.returncode in (0, 1) and done.stderr == ""


def test_piped_output_is_as_wide_as_columns_says(monkeypatch):
    for columns, width in (("72", 72), ("", 160)):
        monkeypatch.setenv("COLUMNS", columns)
        assert out().width == width
