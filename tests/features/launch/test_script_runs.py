"""What `scalestudy launch` starts and refuses, and the workers that a script gets from its environment."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from scalestudy.cli.run_commands import script_arguments
from scalestudy.features.launch.join import start_of
from scalestudy.features.launch.script_process import print_from
from scalestudy.features.launch.script_runs import commands, script_of
from scalestudy.store.run_folder import RunFolder
from scalestudy.util.errors import UserError

TWO = {
    "RANK": "1",
    "WORLD_SIZE": "2",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "localhost",
}


@pytest.fixture
def file(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("raise SystemExit('it was run')\nimport torch")
    return script


def planned(file, **words):
    given = {"workers": 2, "launch": {"device": "cpu"}, **words}
    return script_of(file, ("--lr", "a b"), **given)


def test_each_process_is_given_its_place_and_settings(file, tmp_path):
    found = commands(
        planned(file),
        RunFolder(tmp_path),
        20_000,
        [0, 1],
        {"A": "1", "SLURM_PROCID": "5"},
    )
    assert [command.environment["RANK"] for command in found] == ["0", "1"]
    assert [command.log and command.log.name for command in found] == [
        None,
        "rank-1.log",
    ]
    said = {"SCALESTUDY_SCRIPT_DEVICE": "cpu", "SCALESTUDY_SCRIPT_SEED": "0", "A": "1"}
    for command in found:
        assert said.items() <= command.environment.items()
        assert "SLURM_PROCID" not in command.environment
        assert command.arguments[-3:] == [str(file), "--lr", "a b"]


def test_what_cannot_be_started_is_refused(file):
    with pytest.raises(UserError, match='"tpu"'):
        planned(file, launch={"device": "tpu"})
    for text, said in (
        ("import numpy", r"imports torch.*keras.*train\.py, which does not"),
        ("import keras, torch", r"distributes its training.*distributed-script"),
        ("import tensorflow", "--strategy"),
        ("import tensorflow as tf\ntf.distribute.TPUStrategy()", "TPUStrategy"),
    ):
        file.write_text(text)
        with pytest.raises(UserError, match=said):
            planned(file)
    with pytest.raises(UserError, match=r"--strategy .*\bhorovod\b.*native"):
        planned(file, strategy="native")
    with pytest.raises(UserError, match="mirrored\\?"):
        planned(file, strategy="mirored")


def test_a_script_may_leave_the_training_to_a_module_beside_it(file):
    file.write_text("import scalestudy, numpy, training")
    (file.parent / "training.py").write_text("import torch")
    assert planned(file).point.workers == 2
    (file.parent / "training.py").write_text("import keras")
    with pytest.raises(UserError, match="distributes its training"):
        planned(file)


def test_a_script_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match=r"nothing\.py"):
        planned(tmp_path / "nothing.py")


@pytest.mark.parametrize(
    "late", [["-n", "2", "--out=x"], ["--lr", "0.1", "--workers=2"], ["-n2"]]
)
def test_options_of_launch_after_the_script_are_refused_and_nothing_is_run(
    call, file, late
):
    code, out, err = call("launch", file, *late)
    assert (code, out) == (2, "") and "it was run" not in err
    assert late[-1] in err


def test_what_stands_after_two_dashes_is_the_scripts():
    assert script_arguments(Path("a.py"), ["--", "-n", "2"]) == ["-n", "2"]
    assert script_arguments(Path("a.py"), ["--lr", "2", "--", "x"]) == [
        "--lr",
        "2",
        "--",
        "x",
    ]


@pytest.mark.parametrize(
    ("text", "first"), [("for x in", '  File "{0}", line 1'), ("1 / 0", "Traceback")]
)
def test_an_error_of_a_script_is_printed_as_python_does(
    tmp_path: Path, capsys, text, first
) -> None:
    script = str(tmp_path / "script.py")
    Path(script).write_text(text)
    with pytest.raises((SyntaxError, ZeroDivisionError)) as caught:
        runpy.run_path(script)
    print_from(script, caught.value)
    printed = capsys.readouterr().err
    assert printed.startswith(first.format(script))
    assert "runpy" not in printed and f'"{script}", line 1' in printed


def test_importing_scalestudy_and_its_workers_imports_no_framework():
    program = "import scalestudy, sys; scalestudy.workers; print({'tensorflow', 'keras'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, (1, "auto", "alone")),
        (TWO | {"SCALESTUDY_SCRIPT_DEVICE": "cpu"}, (2, "cpu", "torchrun")),
    ],
)
def test_a_process_learns_its_part_from_its_environment(variables, expected):
    start = start_of(variables, {})
    assert (start.placement.size, start.device, start.placement.source) == expected
    assert start.placement.rank == int(variables.get("RANK", 0))
