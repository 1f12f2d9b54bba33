"""Which collectives there are, held against the strategies that join by them."""

from typing import get_args, get_type_hints

import pytest

from scalestudy.engines.tensorflow.traits import ENGINE
from scalestudy.study.engines import all_collectives, collective
from scalestudy.study.settings import LaunchSettings

COLLECTIVES, meeting = all_collectives(), ENGINE.meeting


def test_each_has_a_name_and_a_label_of_its_own():
    assert len({each.name for each in COLLECTIVES}) == len(COLLECTIVES)
    assert len({each.label for each in COLLECTIVES}) == len(COLLECTIVES)
    with pytest.raises(KeyError):
        collective("smoke signals")


def test_each_is_of_a_strategy_with_processes_that_meet():
    assert all(each.rendezvous for each in COLLECTIVES)


def test_every_communication_of_a_study_file_is_tried():
    named = get_args(get_type_hints(LaunchSettings)["communication"])
    assert {each.communication for each in COLLECTIVES} - {None} == set(named)


def test_a_need_is_met_by_a_communication_or_by_what_a_library_offers():
    assert [each.name for each in meeting(["ring"])] == ["ring"]
    assert [each.name for each in meeting(["horovod"])] == ["horovod-gloo", "horovod-nccl", "horovod-mpi"]
    assert [each.name for each in meeting(["horovod"], gpu=False)] == ["horovod-gloo", "horovod-mpi"]


def test_auto_is_nccl_on_gpus_and_the_choice_of_rings_elsewhere():
    assert [each.name for each in meeting(["auto"], gpu=True)] == ["nccl"]
    assert [each.name for each in meeting(["auto"], gpu=False)] == ["auto"]


def test_what_a_study_names_to_use_one():
    assert {each.name: each.swept for each in COLLECTIVES if each.device is None} == {
        "ring": "native", "auto": "native", "horovod-mpi": "horovod",
    }  # fmt: skip
