"""What builds can do, and which collectives follow."""

import pytest

from scalestudy.features.check.builds import collectives_to_try, judge_builds, used
from scalestudy.features.check.mailbox import AttemptOutcome, Facts, RankAnswer
from scalestudy.features.check.plan import Plan

GLOO = {"gloo": True, "mpi": False, "nccl": False}
EVERYTHING = {"gloo": True, "mpi": True, "nccl": True}


def facts(gpus=0, uuids=()):
    return {
        rank: Facts(
            rank=rank, host=f"n{rank}", local_rank=0, cpus=(0,), gpus=gpus, uuids=uuids, available=1, limit=1,
            port=1,
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
    return {rank: RankAnswer(rank=rank, build=build) for rank in range(2)}


def statuses(plan=None, gpus=0, **built):
    lines = judge_builds(plan or Plan(workers=2), facts(gpus), answers(**built))
    return [line.status for line in lines if line.where == "n0"], " ".join(line.seen for line in lines)


def test_cpus_need_neither_cuda_nor_nccl():
    assert statuses()[0] == ["pass", "pass"]


def test_gpus_beside_a_tensorflow_without_cuda_fail():
    found, seen = statuses(gpus=2)
    assert found[0] == "fail" and "sees 0 of 2 GPUs: it is built without CUDA" in seen


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
    outcome = AttemptOutcome(state="failed", tail=["ImportError: libcudart"])
    lines = judge_builds(Plan(workers=2), facts(), {0: RankAnswer(rank=0, outcome=outcome)})
    assert lines[0].status == "fail" and "libcudart" in lines[0].seen


def test_amds_gpus_are_said_not_to_be_used():
    built = answers()
    for each in built.values():
        each.build["rocm"] = True
    for device, status in (("auto", "warn"), ("gpu", "fail")):
        line = judge_builds(Plan(workers=2, device=device), facts(0), built)[0]
        assert (line.status, "with ROCm, by which workers compute on CPUs only" in line.seen) == (
            status,
            True,
        )


def tried(plan=None, gpus=0, source="slurm", met=True, **built):
    return collectives_to_try(plan or Plan(workers=2), facts(gpus), answers(**built), source=source, met=met)


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
    available = ["ring", "auto", "horovod-gloo", "horovod-nccl", "horovod-mpi"]
    assert used(Plan(workers=2, needs=needs), available, source=source) == expected


def test_on_gpus_a_study_that_leaves_the_choice_uses_nccl():
    available = tried(gpus=1, horovod=EVERYTHING)
    assert used(Plan(workers=2, needs=("auto",)), available, source="slurm") == {"nccl"}
