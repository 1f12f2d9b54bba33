"""Versions that go together and those that do not; what builds can do, and which collectives follow."""

import sys

import pytest

from scalestudy.engines.tensorflow.traits import ENGINE
from scalestudy.features.check.exchange import Facts, RankAnswer
from scalestudy.features.check.report import Plan
from scalestudy.features.check.software import (
    cause,
    collectives_to_try,
    judge_builds,
    judge_versions,
    python_of,
    read_versions,
    used_by_study,
)
from scalestudy.study.engines import collective

GOOD = {"Python": "3.11.7", "tensorflow-cpu": "2.21.0", "keras": "3.15.1", "horovod": "0.28.1"}


def lines(*, drop=(), libraries=("horovod",), **changes):
    versions = {name: version for name, version in (GOOD | changes).items() if name not in drop}
    return judge_versions(versions, "login", ENGINE, libraries=libraries)


def problems(**arguments):
    return [(line.status, line.seen) for line in lines(**arguments) if line.status != "pass"]


def test_what_goes_together_is_one_line():
    (line,) = lines()
    assert line.status == "pass"
    for name in ("Python 3.11.7", "TensorFlow 2.21.0", "Keras 3.15.1", "Horovod 0.28.1"):
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
        ({"tensorflow": "2.20.0"}, "overwrite each other"),
    ],
)
def test_what_is_missing_or_outside_its_range_fails_by_name_and_says_what_to_do(arguments, named):
    assert [status for status, seen in problems(**arguments) if named in seen] == ["fail"]
    assert all(line.action for line in lines(**arguments) if line.status != "pass")


def test_what_is_not_needed_is_not_missed_and_a_release_candidate_is_taken():
    assert problems(drop=["horovod"], libraries=()) == []
    assert [status for status, _ in problems(horovod="0.27.0", libraries=())] == ["warn"]
    assert problems(**{"tensorflow-cpu": "2.21.0rc1"}) == []


def test_the_versions_of_a_python_are_read():
    versions = read_versions(sys.executable, ENGINE, ("packaging", "no_such_package"))
    assert versions["packaging"] and versions["keras"] and "no_such_package" not in versions
    assert versions["Python"] == ".".join(map(str, sys.version_info[:3]))


def test_a_python_that_is_not_there_fails_by_its_path(tmp_path):
    python = python_of(str(tmp_path / "venv"))
    (line,) = judge_versions(read_versions(python, ENGINE), "login", ENGINE, libraries=())
    assert line.status == "fail" and python in line.seen


def test_a_python_that_breaks_is_quoted(tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho cannot find libpython >&2; exit 1\n")
    broken.chmod(0o755)
    (line,) = judge_versions(read_versions(str(broken), ENGINE), "login", ENGINE, libraries=())
    assert "cannot find libpython" in line.seen


def test_the_environment_of_a_site_may_hold_variables(monkeypatch):
    monkeypatch.setenv("VENVS", "/apps")
    assert python_of("$VENVS/x") == "/apps/x/bin/python"
    assert python_of(None) == sys.executable


GLOO = {"gloo": True, "mpi": False, "nccl": False}
EVERYTHING = {"gloo": True, "mpi": True, "nccl": True}


def facts(gpus=0, uuids=()):
    return {
        rank: Facts(
            rank=rank, host=f"n{rank}", local_rank=0, cpus=(0,), gpus=gpus, uuids=uuids
        )
        for rank in range(2)
    }  # fmt: skip


WHY = ("it is built without CUDA", "Install another.")


def answers(horovod=GLOO, cuda=None, gpus=0, error=None):
    build = {
        "no_gpus": WHY,
        "tensorflow": "2.21.0", "cuda": cuda, "rocm": False, "gpus": gpus, "horovod": horovod,
        "horovod_error": error, "seconds": 1.0,
    }  # fmt: skip
    return {rank: RankAnswer(rank=rank, state="done", build=build) for rank in range(2)}


def statuses(plan=None, gpus=0, **built):
    lines = judge_builds(plan or Plan(workers=2), facts(gpus), answers(**built))
    return [line.status for line in lines if line.where == "n0"], " ".join(line.seen for line in lines)


def test_cpus_need_neither_cuda_nor_nccl():
    assert statuses()[0] == ["pass", "pass"]


def test_gpus_beside_a_tensorflow_without_cuda_fail():
    status, seen = statuses(gpus=2)
    assert status[0] == "fail" and "sees 0 of 2 GPUs: it is built without CUDA" in seen


def test_gpus_that_tensorflow_does_not_see_fail_with_their_number():
    lines = judge_builds(Plan(workers=2), facts(2), answers(cuda="12.5", gpus=1, horovod=EVERYTHING))
    assert lines[0].status == "fail" and "sees 1 of 2 GPUs" in lines[0].seen


@pytest.mark.parametrize("gpus", [1, 6])
def test_of_whole_gpus_and_instances_tensorflow_need_not_see_all_at_once(gpus):
    seen = facts(8, [f"GPU-{n}" for n in range(6)] + ["MIG-1", "MIG-2"])
    lines = judge_builds(Plan(workers=2), seen, answers(cuda="12.5", gpus=gpus, horovod=EVERYTHING))
    assert lines[0].status == "pass"
    lines = judge_builds(Plan(workers=2), seen, answers(cuda="12.5", gpus=0, horovod=EVERYTHING))
    assert lines[0].status == "fail" and "sees 0 of 1 GPU" in lines[0].seen


def test_horovod_without_nccl_beside_gpus_warns():
    lines = judge_builds(Plan(workers=2), facts(2), answers(cuda="12.5", gpus=2))
    assert [line.status for line in lines] == ["pass", "warn"] * 2


def test_a_horovod_that_does_not_load_fails_only_where_it_is_needed():
    broken = "ImportError: libmpi.so.40: cannot open"
    assert statuses(Plan(workers=2, needs=("horovod",), libraries=("horovod",)), error=broken)[0] == [
        "pass",
        "fail",
    ]
    assert statuses(Plan(workers=2, needs=("auto",)), error=broken)[0] == ["pass", "warn"]


def test_a_tensorflow_that_cannot_be_imported_fails_with_its_last_words():
    answer = RankAnswer(rank=0, state="failed", tail=["ImportError: libcudart"])
    lines = judge_builds(Plan(workers=2), facts(), {0: answer})
    assert lines[0].status == "fail" and "libcudart" in lines[0].seen


def test_amds_gpus_are_said_not_to_be_used():
    built = answers()
    for answer in built.values():
        answer.build["rocm"] = True
    for device, status in (("auto", "warn"), ("gpu", "fail")):
        line = judge_builds(Plan(workers=2, device=device), facts(0), built)[0]
        assert (line.status, "with ROCm, by which workers compute on CPUs only" in line.seen) == (
            status,
            True,
        )


def tried(plan=None, gpus=0, source="slurm", met=True, **built):
    ways = collectives_to_try(plan or Plan(workers=2), facts(gpus), answers(**built), source=source, met=met)
    return [way.name for way in ways]


def test_on_cpus_tensorflow_and_gloo_are_tried():
    assert tried() == ["ring", "auto", "horovod-gloo"]


def test_on_gpus_nccl_is_too():
    assert tried(gpus=1, horovod=EVERYTHING) == ["ring", "nccl", "horovod-gloo", "horovod-nccl"]
    assert "nccl" not in tried(Plan(workers=2, device="cpu"), gpus=1, horovod=EVERYTHING)


def test_mpi_is_tried_under_mpirun_alone_and_last():
    assert tried(source="openmpi", horovod=EVERYTHING)[-1] == "horovod-mpi"
    assert "horovod-mpi" not in tried(horovod=EVERYTHING)


def test_without_hosts_only_mpi_can_meet():
    assert tried(source="openmpi", met=False, horovod=EVERYTHING) == ["horovod-mpi"]
    assert tried(met=False) == []


def used_of(names, needs, source):
    ways = [collective(name) for name in names]
    return used_by_study(Plan(workers=2, needs=needs), ways, source=source)


@pytest.mark.parametrize(
    ("needs", "source", "expected"),
    [
        (None, "slurm", {"ring", "auto", "horovod-gloo", "horovod-nccl", "horovod-mpi"}),
        ((), "slurm", set()),
        (("auto",), "slurm", {"auto"}),
        (("horovod",), "slurm", {"horovod-nccl"}),
        (("ring", "horovod"), "openmpi", {"ring", "horovod-mpi"}),
    ],
)
def test_a_study_uses_some_of_them(needs, source, expected):
    names = ["ring", "auto", "horovod-gloo", "horovod-nccl", "horovod-mpi"]
    assert used_of(names, needs, source) == expected


def test_on_gpus_a_study_that_leaves_the_choice_uses_nccl():
    assert used_of(tried(gpus=1, horovod=EVERYTHING), ("auto",), "slurm") == {"nccl"}


@pytest.mark.parametrize(
    ("tail", "why"),
    [
        (["Traceback", "tf.errors.UnavailableError: Graph execution error:", "",
          "Collective ops is aborted by: failed to connect to 10.0.0.2:20000",
          "Additional GRPC error information from remote target", "  [[{{node CollectiveReduceV2}}]]"],
         "Collective ops is aborted by: failed to connect to 10.0.0.2:20000"),
        (["Traceback", "ImportError: libmpi.so.40: cannot open"], "ImportError: libmpi.so.40: cannot open"),
        (["one", "  Killed "], "Killed"),
        ([], "no output"),
    ],
)  # fmt: skip
def test_of_a_log_the_line_that_says_why_is_quoted(tail, why):
    assert cause(tail) == why
