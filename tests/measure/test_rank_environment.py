"""The record of a rank's environment."""

import sys

import pytest

from fake_nvml import FakeNvml, cards
from scalestudy.cluster.placement import Placement
from scalestudy.hardware import cores
from scalestudy.measure.rank_environment import (
    VARIABLES,
    rank_record,
    record_variables,
)
from scalestudy.plugins.engines import DEFAULT, engine_traits


def record():
    return rank_record(
        Placement(0, 1, 0, 1, 0, ("n1",), "alone"),
        engine_traits(DEFAULT),
        threads=2,
        devices=["GPU:0"],
        build={},
    )


def test_a_rank_names_the_gpus_that_it_sees_by_uuid_and_none_on_cpus(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(*cards(3)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-c2,1")
    found = record()
    assert found.device_uuids == ["GPU-c2", "GPU-b1"]
    assert found.environment["CUDA_VISIBLE_DEVICES"] == "GPU-c2,1"
    assert (found.driver, found.cpus) == ("580.1", cores.granted())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert record().device_uuids == []


@pytest.mark.parametrize(
    ("told", "shared"), [("yes", True), ("no", False), ("", None), (None, None)]
)
def test_it_says_whether_other_jobs_shared_the_nodes_as_far_as_the_job_was_told(
    monkeypatch, told, shared
):
    monkeypatch.delenv("SCALESTUDY_NODES_SHARED", raising=False)
    if told is not None:
        monkeypatch.setenv("SCALESTUDY_NODES_SHARED", told)
    assert record().nodes_shared is shared


def test_variables_are_not_told_for_their_beginnings(monkeypatch):
    names = {
        "TF_TOKEN",
        "TF_VAR_db_password",
        "HOROVOD_SECRET_KEY",
        "NCCL_AUTH_TOKEN",
        "SCALESTUDY_SECRET",
    }
    for name in names:
        monkeypatch.setenv(name, "planted-value")
    assert not names & {*VARIABLES}
    assert "planted-value" not in record().model_dump_json()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (
            "XLA_FLAGS",
            "--xla_gpu_cuda_data_dir=/spack/cuda-12.4-abcdefghijklmnopqrstuvwxyz012345",
        ),
        ("CUDA_VISIBLE_DEVICES", "GPU-8f3c2b1a-0000-1111-2222-333344445555"),
        (
            "TF_CONFIG",
            '{"cluster": {"worker": ["n1:20000"]}, "task": {"type": "worker", "index": 0}}',
        ),
        ("NCCL_IB_HCA", "mlx5_0,mlx5_1"),
    ],
)
def test_what_decides_how_a_rank_computes_is_told(name, value):
    assert record_variables({name: value, "HOME": "/home/me"}) == {name: value}
