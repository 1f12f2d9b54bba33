"""The names by which tests are divided into groups exist."""

import re
from pathlib import Path

import lanes

TESTS = Path(__file__).parent


def test_files_that_go_together_exist():
    patterns = [pattern for patterns in lanes.GROUPS.values() for pattern in patterns]
    assert [pattern for pattern in patterns if not list(TESTS.glob(pattern))] == []


def test_a_file_is_in_one_group_and_alone_if_none_names_it():
    assert lanes.group("slurm/test_check.py") == "slurm: checks"
    assert (
        lanes.group("engines/tensorflow/test_new.py")
        == lanes.group("tasks/test_new.py")
        == "framework"
    )
    assert lanes.group("training/test_new.py") == "training"
    assert lanes.group("training/test_equality.py") == "equality"
    assert lanes.group("engines/tensorflow/test_mpirun.py") == "mpirun"
    assert lanes.group("engines/torch/test_equality.py") == "PyTorch"
    assert lanes.group("config/test_point.py") == "config/test_point.py"


def test_tests_on_a_cluster_share_it_with_others():
    for file in (TESTS / "slurm").glob("test_*.py"):
        assert lanes.group(f"slurm/{file.name}").startswith("slurm: ")


def test_long_groups_begin_before_all_others():
    files = ("config/test_point.py", "tasks/test_iou.py", "slurm/test_check.py")
    assert sorted(files, key=lanes.position)[-1] == "config/test_point.py"


def test_within_a_group_files_begin_as_they_are_named():
    files = list(lanes.GROUPS["slurm: runs"])
    assert files != sorted(files)
    assert sorted(sorted(files), key=lanes.position) == files


def test_what_takes_the_framework_of_the_process_is_in_a_group_that_does():
    for file in TESTS.rglob("test_*.py"):
        if re.search(r"\ndef \w+\([^)]*\bframework\b", file.read_text()):
            assert lanes.group(str(file.relative_to(TESTS))) in (
                "training",
                "framework",
            ), file
