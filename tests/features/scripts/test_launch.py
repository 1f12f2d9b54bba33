"""What `scalestudy launch` starts, and what it refuses."""

import runpy
from pathlib import Path

import pytest

from scalestudy.cli.run_commands import script_arguments
from scalestudy.features.scripts.launch import commands, script_of, start_lines
from scalestudy.features.scripts.script_process import print_from
from scalestudy.store.run_folder import RunFolder
from scalestudy.util.errors import UserError


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
    for command in found:
        assert command.environment["SCALESTUDY_SCRIPT_STRATEGY"] == "horovod"
        assert command.environment["SCALESTUDY_SCRIPT_WORKERS"] == "2"
        assert command.environment["A"] == "1"
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
