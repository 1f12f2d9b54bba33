"""`scalestudy recommend` on made studies, as a user calls it."""

import json
import sys
from pathlib import Path

import pytest

from scalestudy.cli import main

sys.path.insert(0, str(Path(__file__).parents[1] / "analysis"))

import made


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    made.write(folder / "before", "before", made.seeded((1, 2, 4), ("horovod",)))
    return folder


def called(capsys, *arguments):
    with pytest.raises(SystemExit) as exit_:
        main([str(argument) for argument in arguments])
    return exit_.value.code or 0, capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["recommend", "{before}", "--deadline", "soon"], "a time above 0"),
        (["recommend", "{before}", "--deadline", "2h", "--energy"], "one goal"),
        (["recommend", "{before}", "--efficiency", "70"], "an efficiency above 0"),
    ],
)
def test_wrong_input_is_refused_with_what_to_do(studies, capsys, arguments, expected):
    code, told = called(capsys, *(argument.format(before=studies / "before") for argument in arguments))
    assert code == 2
    assert expected in told.err


def test_a_count_is_recommended_for_a_deadline(studies, capsys):
    text = called(capsys, "recommend", studies / "before", "--deadline", "2min")[1].out
    assert "Ask for horovod on" in text
    record = json.loads(
        called(capsys, "recommend", studies / "before", "--deadline", "2min", "--format", "json")[1].out
    )
    (found,) = record["recommended"]
    assert found["job_seconds"] <= 120
    assert record["goal"] == {"aim": "deadline", "value": 120.0, "charge": 1.0}


def test_two_counts_are_too_few_to_recommend_by(tmp_path, capsys):
    made.write(tmp_path / "two", "two", made.seeded((1, 2), ("horovod",)))
    code, told = called(capsys, "recommend", tmp_path / "two")
    assert code == 2
    assert "three numbers of workers or more" in told.err
