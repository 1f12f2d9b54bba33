"""What tests are shared out by names what is there."""

from pathlib import Path

import pytest

import lanes

HERE = Path(__file__).parent


@pytest.mark.parametrize("pattern", [each for patterns in lanes.TOGETHER.values() for each in patterns])
def test_files_that_go_together_exist(pattern):
    assert list(HERE.glob(pattern))


def test_groups_that_begin_first_exist():
    for name in lanes.LONGEST:
        assert name in lanes.TOGETHER or name == lanes.FRAMEWORK or (HERE / name).is_file(), name


def test_a_test_is_in_one_group_by_its_file_or_by_the_framework():
    assert lanes.group("slurm/test_new.py", []) == "slurm"
    assert lanes.group("training/test_new.py", ["framework"]) == lanes.FRAMEWORK
    assert lanes.group("study/test_point.py", ["tmp_path"]) == "study/test_point.py"
    assert lanes.position("slurm") < lanes.position(lanes.FRAMEWORK) < lanes.position("study/test_point.py")
