import pytest

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.worker_environment import keeps_own_log


def from_(source: str) -> Placement:
    return Placement(0, 1, 0, 1, 0, ("n1",), source)


@pytest.mark.parametrize("source", ["slurm", "openmpi", "horovodrun"])
def test_a_launcher_that_mixes_output_leaves_the_log_to_each_rank(source):
    assert keeps_own_log(from_(source), {})


def test_a_worker_alone_in_a_job_keeps_its_log():
    assert keeps_own_log(from_("alone"), {"SLURM_JOB_ID": "7"})


def test_a_worker_started_by_hand_writes_to_the_terminal():
    assert not keeps_own_log(from_("alone"), {})
    assert not keeps_own_log(from_("torchrun"), {"SLURM_JOB_ID": "7"})


def test_our_local_launcher_has_already_taken_the_output():
    assert not keeps_own_log(from_("torchrun"), {"SCALESTUDY_LAUNCHER": "1", "SLURM_JOB_ID": "7"})
