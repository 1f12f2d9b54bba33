"""`scalestudy launch` at the command line."""

import pytest


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "train.py"
    file.write_text("")
    return file


def test_options_of_ours_behind_the_script_are_noted(call, script):
    code, output, errors = call("launch", "--dry-run", script, "-n", "4", "--lr", "1")
    assert code == 0
    assert "-n 4 --lr 1" in output
    assert "-n went to train.py: options of launch stand before the script" in errors


@pytest.mark.parametrize("arguments", [["--dry-run", "{}"], ["--dry-run", "-n", "2", "{}", "--workers", "8"]])
def test_nothing_is_noted_where_they_stand_before_it(call, script, arguments):
    _, _, errors = call("launch", *[each.format(script) for each in arguments])
    assert "went to" not in errors
