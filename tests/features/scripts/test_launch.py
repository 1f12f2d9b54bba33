"""What `scalestudy launch` starts and refuses, and the workers that a script gets from its environment."""

import math
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from scalestudy.cli.run_commands import script_arguments
from scalestudy.cluster.placement import Placement
from scalestudy.features.scripts.join import Start, start_of
from scalestudy.features.scripts.launch import commands, script_of, start_lines
from scalestudy.features.scripts.script_process import print_from
from scalestudy.features.scripts.script_workers import Workers
from scalestudy.store.run_folder import RunFolder
from scalestudy.util.errors import UserError

TWO = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "localhost"}


@pytest.fixture
def file(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("raise SystemExit('it was run')")
    return script


def planned(file, **words):
    given = {"strategy": "horovod", "workers": 2, "launch": {"device": "cpu"}, **words}
    return script_of(file, ("--lr", "a b"), **given)


def test_a_dry_run_shows_each_rank_and_the_line_for_srun(file):
    lines = start_lines(planned(file))
    assert lines[0] == "2 workers by horovod, 1 core per worker, device cpu"
    assert lines[1] == f"rank 0: python {file} --lr 'a b'  (output: this terminal)"
    assert "rank-1.log" in lines[2]
    assert lines[3] == (
        "Through Slurm: SCALESTUDY_SCRIPT_STRATEGY=horovod srun --kill-on-bad-exit=1 --ntasks=2 "
        f"--cpus-per-task=1 python {file} --lr 'a b'"
    )
    assert len(start_lines(planned(file, strategy="virtual"))) == 3  # one process


def test_each_process_is_given_its_place_and_the_strategy(file, tmp_path):
    found = commands(planned(file), RunFolder(tmp_path), 20_000, [0, 1], {"A": "1", "SLURM_PROCID": "5"})
    assert [command.environment["RANK"] for command in found] == ["0", "1"]
    assert [command.log and command.log.name for command in found] == [None, "rank-1.log"]
    said = {"SCALESTUDY_SCRIPT_STRATEGY": "horovod", "SCALESTUDY_SCRIPT_WORKERS": "2", "A": "1"}
    for command in found:
        assert said.items() <= command.environment.items()
        assert "SLURM_PROCID" not in command.environment
        assert command.arguments[-3:] == [str(file), "--lr", "a b"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"strategy": "single"}, "one worker"),
        ({"strategy": "mirrored"}, "one device per process"),
        ({"strategy": "horovd"}, "'horovd'"),
        ({"launch": {"device": "tpu"}}, '"tpu"'),
    ],
)
def test_what_cannot_be_started_is_refused(file, words, told):
    with pytest.raises(UserError) as refused:
        planned(file, **words)
    assert told in str(refused.value)


def test_a_script_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match=r"nothing\.py"):
        planned(tmp_path / "nothing.py")


@pytest.mark.parametrize("late", [["-n", "2", "--dry-run"], ["--lr", "0.1", "--workers=2"], ["-n2"]])
def test_options_of_launch_after_the_script_are_refused_and_nothing_is_run(call, file, late):
    code, out, err = call("launch", file, *late)
    assert (code, out) == (2, "") and "it was run" not in err
    assert late[-1].removeprefix("2 ") in err


def test_a_dry_run_runs_nothing(call, file):
    code, out, err = call("launch", "-n", "2", "--strategy", "virtual", "--dry-run", file, "--epochs", "3")
    assert code == 0 and "it was run" not in err
    assert f"python {file} --epochs 3" in out


def test_what_stands_after_two_dashes_is_the_scripts():
    assert script_arguments(Path("a.py"), ["--", "-n", "2"]) == ["-n", "2"]
    assert script_arguments(Path("a.py"), ["--lr", "2", "--", "x"]) == ["--lr", "2", "--", "x"]


@pytest.mark.parametrize(("text", "first"), [("for x in", '  File "{0}", line 1'), ("1 / 0", "Traceback")])
def test_an_error_of_a_script_is_printed_as_python_does(tmp_path: Path, capsys, text, first) -> None:
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
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def told(strategy, workers, device=""):
    """Variables by which `scalestudy launch` tells its processes what to do."""
    values = {"STRATEGY": strategy, "WORKERS": workers, "DEVICE": device}
    return {f"SCALESTUDY_SCRIPT_{name}": value for name, value in values.items() if value}


@pytest.mark.parametrize(
    ("variables", "asked", "expected"),
    [
        ({}, "horovod", (1, "single", "auto", "alone")),
        # The launcher takes precedence over the script.
        (TWO | told("horovod", "2", "cpu"), "multiworker", (2, "horovod", "cpu", "torchrun")),
        # Processes that a cluster has started are a worker each.
        (TWO, None, (2, "multiworker", "auto", "torchrun")),
        (TWO, "horovod", (2, "horovod", "auto", "torchrun")),
        # One process holds several workers where the strategy does.
        (told("virtual", "3"), None, (3, "virtual", "auto", "alone")),
    ],
)
def test_a_process_learns_its_part_from_its_environment(variables, asked, expected):
    start = start_of(variables, asked, {})
    assert (start.workers, start.strategy, start.device, start.placement.source) == expected
    assert start.placement.rank == int(variables.get("RANK", 0))


def test_an_unknown_strategy_and_another_backend_are_refused():
    for name in ("horovd", "mirrored"):
        with pytest.raises(UserError, match=name):
            start_of(TWO, name, {})
    torch = type("keras", (), {"config": type("c", (), {"backend": staticmethod(lambda: "torch")})})
    with pytest.raises(UserError, match="KERAS_BACKEND=tensorflow"):
        start_of(TWO, None, {"keras": torch})


def test_a_rate_is_scaled_by_the_workers_as_asked_and_misspelt_words_are_refused():
    alone = Workers(Start(Placement(0, 1, 0, 1, 0, ("here",), "alone"), 1, "single", "auto"))
    with pytest.raises(UserError, match="batch='worker'"):
        alone.fit(None, batch="worker")
    alone.size = 4
    assert alone.scaled(0.1) == pytest.approx(0.4)
    assert alone.scaled(0.1, "sqrt") == pytest.approx(0.1 * math.sqrt(4))
    assert alone.scaled(0.1, "none") == 0.1
    with pytest.raises(UserError, match="'cube'"):
        alone.scaled(0.1, "cube")
