"""What a host offers, compared with the requirements: cores, GPUs, folders, versions and builds."""

import sys

import pytest

from scalestudy.engines.tensorflow.traits import ENGINE
from scalestudy.features.check import host_checks
from scalestudy.features.check.check_files import CheckPlan, Facts, RankAnswer
from scalestudy.features.check.host_checks import (
    cause,
    collectives_to_try,
    judge_builds,
    judge_versions,
    read_versions,
)
from scalestudy.features.check.strategy_records import refuse_unloadable
from scalestudy.plugins.engines import StrategyLibrary


def folder(path):
    return host_checks.judge_folder("n1", str(path), "cache")


@pytest.mark.parametrize(
    ("place", "status", "word"),
    [
        ("", "pass", "writable"),
        ("a/b", "pass", "can be made in {0},"),  # judged by where it would be made
        ("file/cache", "fail", "{0}/file"),
        ("$SCALESTUDY_NOT_SET/cache", "fail", "a variable is not set"),
    ],
)
def test_a_folder_is_tried_and_left_as_it_was(
    tmp_path, monkeypatch, place, status, word
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    line = folder(place if place.startswith("$") else tmp_path / place)
    assert line.status == status and word.format(tmp_path) in line.seen
    assert bool(line.action) == (status == "fail")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def devices(**changes):
    values = {"device": "auto", "promised": 0, "gpus": 0, "workers": 2} | changes
    return host_checks.judge_devices("n1", **values).status


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, "pass"),
        ({"gpus": 2}, "pass"),
        ({"gpus": 2, "promised": 2}, "pass"),
        ({"gpus": 0, "promised": 2}, "fail"),
        ({"gpus": 1, "promised": 2}, "fail"),
        ({"gpus": 1}, "fail"),
        ({"device": "gpu"}, "fail"),
        ({"device": "cpu", "gpus": 1}, "pass"),
    ],
)
def test_gpus_seen_are_held_against_those_asked_for(changes, status):
    assert devices(**changes) == status


def test_gpus_that_processes_share_count_once():
    assert host_checks.count_gpus([(1, ["GPU-a"]), (1, ["GPU-b"])]) == 2
    assert host_checks.count_gpus([(1, ["GPU-a"]), (1, ["GPU-a"])]) == 1
    assert host_checks.count_gpus([(2, ["GPU-a", "GPU-b"])] * 2) == 2
    assert host_checks.count_gpus([(1, []), (1, [])]) == 2
    assert host_checks.count_gpus([(2, []), (2, [])]) == 2
    assert host_checks.count_gpus([(0, [])]) == 0


GOOD = {
    "Python": "3.11.7",
    "tensorflow-cpu": "2.21.0",
    "keras": "3.15.1",
    "horovod": "0.28.1",
}


def lines(*, drop=(), libraries=("horovod",), **changes):
    versions = {
        name: version for name, version in (GOOD | changes).items() if name not in drop
    }
    return judge_versions(versions, "login", ENGINE, libraries=libraries)


def problems(**arguments):
    return [
        (line.status, line.seen) for line in lines(**arguments) if line.status != "pass"
    ]


def test_what_goes_together_is_one_line():
    (line,) = lines()
    assert line.status == "pass"
    for name in (
        "Python 3.11.7",
        "TensorFlow 2.21.0",
        "Keras 3.15.1",
        "Horovod 0.28.1",
    ):
        assert name in line.seen


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"Python": "3.14.0"}, "Python 3.14.0"),
        ({"tensorflow-cpu": "2.20.1"}, "TensorFlow 2.20.1"),
        ({"keras": "2.15.0"}, "Keras 2.15.0"),
        ({"horovod": "0.27.0"}, "Horovod 0.27.0"),
        ({"drop": ["keras"]}, "Keras not installed"),
        ({"drop": ["tensorflow-cpu"]}, "TensorFlow not installed"),
        ({"drop": ["horovod"]}, "Horovod not installed"),
        ({"libraries": ("mpi4py",)}, "mpi4py not installed"),
    ],
)
def test_what_is_missing_or_outside_its_range_fails_by_name_and_says_what_to_do(
    arguments, named
):
    assert [status for status, seen in problems(**arguments) if named in seen] == [
        "fail"
    ]
    assert all(line.action for line in lines(**arguments) if line.status != "pass")


def test_what_is_not_needed_is_not_missed_and_a_release_candidate_is_taken():
    assert problems(drop=["horovod"], libraries=()) == []
    assert [status for status, _ in problems(horovod="0.27.0", libraries=())] == [
        "warn"
    ]
    assert problems(**{"tensorflow-cpu": "2.21.0rc1"}) == []


def test_an_environment_that_is_not_there_or_breaks_fails_with_its_words(
    tmp_path, monkeypatch
):
    assert read_versions(None)["Python"] == ".".join(map(str, sys.version_info[:3]))
    broken = tmp_path / "bin" / "python"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho cannot find libpython >&2; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("VENVS", str(tmp_path))
    for environment, word in (
        ("$VENVS", "cannot find libpython"),
        ("$VENVS/none", str(tmp_path / "none")),
    ):
        (line,) = judge_versions(
            read_versions(environment), "login", ENGINE, libraries=()
        )
        assert line.status == "fail" and word in line.seen


GLOO = {"gloo": True, "mpi": False, "nccl": False}
EVERYTHING = {"gloo": True, "mpi": True, "nccl": True}
NEEDED = CheckPlan(workers=2, needs=("horovod",), libraries=("horovod",))


def facts(gpus=0, uuids=()):
    return {
        rank: Facts(rank=rank, host=f"n{rank}", local_rank=0, gpus=gpus, uuids=uuids)
        for rank in range(2)
    }


def answers(horovod=GLOO, cuda=None, gpus=0, error=None):
    build = {
        "no_gpus": ("it is built without CUDA", "Install another."),
        "tensorflow": "2.21.0",
        "cuda": cuda,
        "gpus": gpus,
        "horovod": horovod,
        "horovod_error": error,
        "seconds": 1.0,
    }
    return {rank: RankAnswer(rank=rank, state="done", build=build) for rank in range(2)}


@pytest.mark.parametrize(
    ("plan", "gpus", "built", "statuses", "seen"),
    [
        (None, 0, {}, ["pass", "pass"], ""),
        (None, 2, {}, ["fail", "warn"], "sees 0 of 2 GPUs: it is built without CUDA"),
        (
            None,
            2,
            {"cuda": "12.5", "gpus": 1, "horovod": EVERYTHING},
            ["fail", "pass"],
            "sees 1 of 2 GPUs",
        ),
        (None, 2, {"cuda": "12.5", "gpus": 2}, ["pass", "warn"], "beside 2 GPUs"),
        (NEEDED, 0, {"error": "ImportError: libmpi.so.40"}, ["pass", "fail"], "libmpi"),
        (
            CheckPlan(workers=2, needs=("auto",)),
            0,
            {"error": "ImportError: libmpi.so.40"},
            ["pass", "warn"],
            "",
        ),
        (NEEDED, 0, {"horovod": None}, ["pass", "fail"], "no Horovod"),
    ],
)
def test_what_was_built_is_held_against_gpus_and_strategies(
    plan, gpus, built, statuses, seen
):
    lines = judge_builds(plan or CheckPlan(workers=2), facts(gpus), answers(**built))
    assert [line.status for line in lines] == statuses * 2
    assert seen in " ".join(line.seen for line in lines)


@pytest.mark.parametrize(("gpus", "status"), [(0, "fail"), (1, "pass"), (6, "pass")])
def test_of_whole_gpus_and_instances_tensorflow_need_not_see_all_at_once(gpus, status):
    seen = facts(8, [f"GPU-{n}" for n in range(6)] + ["MIG-1", "MIG-2"])
    lines = judge_builds(
        CheckPlan(workers=2), seen, answers(cuda="12.5", gpus=gpus, horovod=EVERYTHING)
    )
    assert lines[0].status == status


def test_a_tensorflow_that_cannot_be_imported_fails_with_its_last_words():
    answer = RankAnswer(rank=0, state="failed", tail=["ImportError: libcudart"])
    lines = judge_builds(CheckPlan(workers=2), facts(), {0: answer})
    assert lines[0].status == "fail" and "libcudart" in lines[0].seen


def tried(plan=None, gpus=0, source="slurm", met=True, **built):
    ways = collectives_to_try(
        plan or CheckPlan(workers=2),
        facts(gpus),
        answers(**built),
        source=source,
        met=met,
    )
    return [way.name for way in ways]


def test_collectives_are_tried_that_the_builds_the_devices_and_the_launcher_allow():
    assert tried() == ["ring", "auto", "horovod-gloo"]
    assert tried(gpus=1, horovod=EVERYTHING) == [
        "ring",
        "nccl",
        "horovod-gloo",
        "horovod-nccl",
    ]
    assert "nccl" not in tried(
        CheckPlan(workers=2, device="cpu"), gpus=1, horovod=EVERYTHING
    )
    assert tried(source="openmpi", horovod=EVERYTHING)[-1] == "horovod-mpi"
    assert "horovod-mpi" not in tried(horovod=EVERYTHING)
    assert tried(source="openmpi", met=False, horovod=EVERYTHING) == ["horovod-mpi"]
    assert tried(met=False) == []


@pytest.mark.parametrize(
    ("needs", "gpus", "source", "expected"),
    [
        ((), 0, "slurm", []),
        (("auto",), 0, "slurm", ["auto"]),
        (("auto",), 1, "slurm", ["nccl"]),
        (("horovod",), 1, "slurm", ["horovod-nccl"]),
        (("ring", "horovod"), 0, "openmpi", ["ring", "horovod-mpi"]),
    ],
)
def test_of_a_study_those_are_tried_that_its_runs_use(needs, gpus, source, expected):
    plan = CheckPlan(workers=2, needs=needs)
    assert tried(plan, gpus=gpus, source=source, horovod=EVERYTHING) == expected


@pytest.mark.parametrize(
    ("tail", "why"),
    [
        (
            [
                "Traceback",
                "tf.errors.UnavailableError: Graph execution error:",
                "",
                "Collective ops is aborted by: failed to connect to 10.0.0.2:20000",
                "Additional GRPC error information from remote target",
                "  [[{{node CollectiveReduceV2}}]]",
            ],
            "Collective ops is aborted by: failed to connect to 10.0.0.2:20000",
        ),
        (
            ["Traceback", "ImportError: libmpi.so.40: cannot open"],
            "ImportError: libmpi.so.40: cannot open",
        ),
        (["one", "  Killed "], "Killed"),
        ([], "no output"),
    ],
)
def test_of_a_log_the_line_that_says_why_is_quoted(tail, why):
    assert cause(tail) == why


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("", None),
        (
            "raise ImportError('first\\nundefined symbol: _ZN10tensorflow')",
            "undefined symbol: _ZN10tensorflow",
        ),
        ("import os; os._exit(3)", "exit code 3"),
    ],
)
def test_a_library_that_is_there_but_does_not_load_is_told(
    tmp_path, monkeypatch, source, seen
):
    (tmp_path / "brought_library.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    library = StrategyLibrary(
        "brought", "Brought", "brought_library", "==1", "Build it.", "", ""
    )
    refused = refuse_unloadable(library)
    assert (refused is None) == (seen is None)
    if refused:
        assert seen in refused.received
        assert refused.action == "Build it."
