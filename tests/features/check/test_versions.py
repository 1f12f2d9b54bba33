"""Versions that go together, and combinations that do not."""

import sys

import pytest

from scalestudy.engines.tensorflow.traits import ENGINE
from scalestudy.features.check.versions import judge, python_of, read

GOOD = {
    "scalestudy": "0.1.0",
    "tensorflow-cpu": "2.21.0",
    "keras": "3.15.1",
    "horovod": "0.28.1",
}


def lines(*, drop=(), libraries=("horovod",), built_for="2.21.0", python="3.11.7", **changes):
    packages = {name: version for name, version in (GOOD | changes).items() if name not in drop}
    found = {"python": python, "packages": packages, "built_for": {"horovod": built_for}}
    return judge(found, "login", ENGINE, libraries=libraries)


def problems(**arguments):
    return [(line.status, line.seen) for line in lines(**arguments) if line.status != "pass"]


def test_what_goes_together_is_one_line():
    (line,) = lines()
    assert line.status == "pass"
    for name in ("Python 3.11.7", "TensorFlow 2.21.0", "Keras 3.15.1"):
        assert name in line.seen


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"python": "3.14.0"}, "Python 3.14.0"),
        ({"tensorflow-cpu": "2.20.1"}, "TensorFlow 2.20.1"),
        ({"keras": "2.15.0"}, "Keras 2.15.0"),
        ({"drop": ["keras"]}, "Keras not installed"),
        ({"drop": ["tensorflow-cpu"]}, "TensorFlow not installed"),
        ({"drop": ["scalestudy"]}, "Scalestudy not installed"),
    ],
)
def test_a_version_outside_the_range_fails_by_name(arguments, named):
    assert [status for status, seen in problems(**arguments) if named in seen] == ["fail"]


def test_a_release_candidate_of_the_right_version_is_taken():
    assert problems(**{"tensorflow-cpu": "2.21.0rc1"}, built_for="2.21.0rc1") == []


def test_horovod_built_for_another_tensorflow_fails():
    assert problems(built_for="2.20.0") == [
        ("fail", "Horovod 0.28.1 built for TensorFlow 2.20.0, beside 2.21.0")
    ]


def test_horovod_built_without_tensorflow_fails():
    assert problems(built_for="none") == [("fail", "Horovod 0.28.1 built without TensorFlow")]


def test_horovod_is_missed_only_where_it_is_needed():
    assert problems(drop=["horovod"], libraries=("horovod",)) == [("fail", "Horovod not installed")]
    assert problems(drop=["horovod"], libraries=()) == []


def test_a_library_of_a_strategy_from_elsewhere_is_missed_by_its_name():
    assert problems(libraries=("mpi4py",)) == [("fail", "mpi4py not installed")]
    (line,) = lines(libraries=("mpi4py",), mpi4py="4.0.1")
    assert "mpi4py 4.0.1" in line.seen


def test_a_library_is_found_by_its_package():
    found = read(sys.executable, ENGINE, ("packaging", "no_such_package"))
    assert found["packages"]["packaging"] and "no_such_package" not in found["packages"]


def test_a_wrong_horovod_that_is_not_needed_warns():
    assert [status for status, _ in problems(built_for="2.20.0", libraries=())] == ["warn"]


def test_two_tensorflows_over_each_other_fail():
    assert problems(tensorflow="2.20.0")[0][1].endswith("overwrite each other")


def test_every_problem_says_what_to_do():
    found = lines(drop=["keras", "horovod"], **{"tensorflow-cpu": "2.0"})
    assert [line.seen for line in found if line.status != "pass" and not line.action] == []
    assert any("pip install 'tensorflow" in line.action for line in found)


def test_the_versions_of_this_python_are_read_without_importing_them():
    found = read(sys.executable, ENGINE)
    assert found["packages"]["scalestudy"]
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))


def test_a_python_that_is_not_there_fails_by_its_path(tmp_path):
    python = python_of(str(tmp_path / "venv"))
    (line,) = judge(read(python, ENGINE), "login", ENGINE, libraries=())
    assert line.status == "fail" and python in line.seen


def test_a_python_that_breaks_is_quoted(tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho cannot find libpython >&2; exit 1\n")
    broken.chmod(0o755)
    (line,) = judge(read(str(broken), ENGINE), "login", ENGINE, libraries=())
    assert "cannot find libpython" in line.seen


def test_the_environment_of_a_site_may_hold_variables(monkeypatch):
    monkeypatch.setenv("VENVS", "/apps")
    assert python_of("$VENVS/x") == "/apps/x/bin/python"
    assert python_of(None) == sys.executable
