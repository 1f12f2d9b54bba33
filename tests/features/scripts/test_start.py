"""What `scalestudy launch` would start, and what it refuses."""

import pytest

from scalestudy.errors import UserError
from scalestudy.features.scripts.launch import commands, start_lines
from scalestudy.features.scripts.start import script_of
from scalestudy.study.run_folder import RunFolder


@pytest.fixture
def file(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("")
    return script


def made(file, **words):
    given = {"strategy": "horovod", "workers": 2, "launch": {"device": "cpu"}, **words}
    return script_of(file, ("--lr", "a b"), **given)


def test_a_dry_run_tells_each_rank_and_the_line_for_srun(file):
    lines = start_lines(made(file))
    assert lines[0] == "2 workers by horovod, 1 core a worker, device cpu"
    assert lines[1] == f"rank 0: python {file} --lr 'a b'  (output: this terminal)"
    assert "rank-1.log" in lines[2]
    assert lines[3] == (
        "Through Slurm: SCALESTUDY_SCRIPT_STRATEGY=horovod srun --kill-on-bad-exit=1 --ntasks=2 "
        f"--cpus-per-task=1 python {file} --lr 'a b'"
    )
    assert len(start_lines(made(file, strategy="mirrored"))) == 3  # one process


def test_each_process_is_told_its_place_and_the_strategy(file, tmp_path):
    found = commands(made(file), RunFolder(tmp_path), 20_000, [0, 1], {"A": "1", "SLURM_PROCID": "5"})
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
        ({"on": "slurm"}, "SCALESTUDY_SCRIPT_STRATEGY=horovod srun"),
        ({"strategy": "single"}, "Take mirrored, multiworker or horovod"),
        ({"strategy": "horovd"}, 'Received "horovd"'),
        ({"launch": {"device": "tpu"}}, '"tpu"'),
    ],
)
def test_what_cannot_be_started_is_refused_with_what_to_do(file, words, told):
    with pytest.raises(UserError) as refused:
        made(file, **words)
    assert told in str(refused.value)


def test_a_script_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match=r"nothing\.py, which is no file"):
        made(tmp_path / "nothing.py")
