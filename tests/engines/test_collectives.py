"""The collectives, compared with the strategies that use them."""

from typing import get_args, get_type_hints

import pytest

from scalestudy.config.settings import LaunchSettings
from scalestudy.plugins.engines import all_collectives, collective

COLLECTIVES = all_collectives()


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


def test_what_a_study_names_to_use_one():
    assert {each.name: each.swept for each in COLLECTIVES if each.device is None} == {
        "ring": "native",
        "auto": "native",
        "horovod-mpi": "horovod",
    }
