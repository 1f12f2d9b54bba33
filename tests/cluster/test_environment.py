"""The environment of a worker process: one answer for training and for checks."""

import json

import pytest

from scalestudy.cluster.environment import QUIET, own_gpus, process_environment
from scalestudy.cluster.placement import Placement
from scalestudy.errors import UserError
from scalestudy.machine.devices import Gpu
from scalestudy.study.strategies import REGISTRY, traits

PLACE = Placement(1, 2, 1, 2, 0, ("n1", "n1"), "slurm", 20000)
PARENT = {"PATH": "/bin", "HTTPS_PROXY": "http://proxy", "TF_CONFIG": "stale"}


def changes(strategy="multiworker", parent=PARENT, gpus=(), placement=PLACE):
    return process_environment(parent, gpus=gpus, meets=traits(strategy).meets, placement=placement)


def test_where_processes_meet_by_tensorflow_each_knows_all_and_no_proxy():
    found = changes()
    assert found.unset == ["HTTPS_PROXY"]
    cluster = json.loads(found.values["TF_CONFIG"])
    assert cluster["cluster"]["worker"] == ["n1:20000", "n1:20001"] and cluster["task"]["index"] == 1


@pytest.mark.parametrize(
    "strategy", [name for name in REGISTRY.names() if traits(name).meets != "tensorflow"]
)
def test_elsewhere_a_stale_tf_config_goes_and_proxies_stay(strategy):
    found = changes(strategy)
    assert found.unset == ["TF_CONFIG"] and "TF_CONFIG" not in found.values


def test_nothing_is_unset_that_is_not_set():
    assert changes(parent={}).unset == changes("horovod", parent={}).unset == []


def test_without_hosts_and_a_port_they_cannot_meet():
    with pytest.raises(UserError, match="the host and the port of every worker"):
        changes(placement=Placement(0, 1, 0, 1, 0, ("",), "openmpi"))


def test_applied_to_its_parents_variables_they_are_all_of_the_process():
    found = changes("horovod").applied(PARENT)
    assert (found["PATH"], found["HTTPS_PROXY"], found["KERAS_BACKEND"]) == (
        "/bin",
        "http://proxy",
        "tensorflow",
    )
    assert "TF_CONFIG" not in found


def test_on_cpus_no_gpu_is_seen_and_none_is_set_up():
    for gpus in ((), []):
        values = changes(gpus=gpus).values
        assert values["CUDA_VISIBLE_DEVICES"] == "-1"
        assert not [name for name in values if name.startswith("TF_") and "GPU" in name]


def test_on_gpus_its_own_are_seen_and_their_memory_grows():
    values = changes(gpus=["GPU-a"]).values
    assert values["CUDA_VISIBLE_DEVICES"] == "GPU-a"
    assert (values["TF_FORCE_GPU_ALLOW_GROWTH"], values["TF_GPU_THREAD_MODE"]) == ("true", "gpu_private")


def test_a_process_that_asks_what_there_is_sees_what_its_parent_does():
    assert "CUDA_VISIBLE_DEVICES" not in changes(gpus=None).values


def test_messages_are_the_users_choice():
    def level(**more):
        return process_environment(more.pop("parent", {}), gpus=(), **more).values["TF_CPP_MIN_LOG_LEVEL"]

    assert (level(), level(messages=QUIET)) == ("1", "2")
    assert level(parent={"TF_CPP_MIN_LOG_LEVEL": "0"}, messages=QUIET) == "0"


KNOWN = [Gpu(index, uuid, "H100", "") for index, uuid in enumerate(["GPU-a", "GPU-b"])]


@pytest.mark.parametrize(("known", "own", "all_of_them"), [
    ([], ["1"], ["0", "1"]), (KNOWN, ["GPU-b"], ["GPU-a", "GPU-b"]),
])  # fmt: skip
def test_a_process_takes_its_own_gpu_or_all_that_its_workers_need(known, own, all_of_them):
    assert own_gpus({}, known, local_rank=1) == own
    assert own_gpus({}, known, local_rank=0, devices=2) == all_of_them


def test_one_that_the_launcher_has_chosen_is_taken():
    assert own_gpus({"CUDA_VISIBLE_DEVICES": "3"}, [], local_rank=1) == ["3"]
