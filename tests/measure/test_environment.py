"""The record of what a rank ran in."""

import sys

import pytest
from fake_nvml import FakeNvml, cards

from scalestudy.cluster.placement import Placement
from scalestudy.machine import cores
from scalestudy.measure.environment import rank_record
from scalestudy.study.records import RankRecord


def record():
    return rank_record(Placement(0, 1, 0, 1, 0, ("n1",), "alone"), threads=2, devices=["GPU:0"], build={})


def test_a_rank_names_the_gpus_that_it_sees_by_uuid(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(*cards(3)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-c2,1")
    found = record()
    assert found.device_uuids == ["GPU-c2", "GPU-b1"]
    assert found.environment["CUDA_VISIBLE_DEVICES"] == "GPU-c2,1"
    assert (found.driver, found.cpus) == ("580.1", cores.granted())


def test_on_cpus_it_names_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(*cards(3)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert record().device_uuids == []


def test_a_record_written_before_devices_had_names_is_read():
    old = record().model_dump(exclude={"device_uuids"})
    assert RankRecord.model_validate(old).device_uuids == []


@pytest.mark.parametrize(("told", "shared"), [("yes", True), ("no", False), ("", None), (None, None)])
def test_it_says_whether_other_jobs_shared_the_nodes_as_far_as_the_job_was_told(monkeypatch, told, shared):
    monkeypatch.delenv("SCALESTUDY_NODES_SHARED", raising=False)
    if told is not None:
        monkeypatch.setenv("SCALESTUDY_NODES_SHARED", told)
    assert record().nodes_shared is shared
