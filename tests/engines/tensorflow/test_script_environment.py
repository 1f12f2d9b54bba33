"""What a TensorFlow script finds around it: as under srun, with TF_CONFIG and without proxies."""

import json
import os

import pytest

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.resolve import resolve
from scalestudy.engines.tensorflow.script_environment import (
    set_environment,
    slurm_variables,
)

HERE = Placement(1, 2, 1, 2, 0, ("localhost",) * 2, "torchrun", 20_000)


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setattr(
        os, "environ", {"grpc_proxy": "http://proxy:3128", "TF_CONFIG": "left over"}
    )
    return os.environ


def test_a_process_finds_the_variables_of_srun_but_no_job():
    found = slurm_variables(HERE, 2)
    expected = {
        "SLURM_PROCID": "1",
        "SLURM_LOCALID": "1",
        "SLURM_NODEID": "0",
        "SLURM_NTASKS": "2",
    }
    expected |= {
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_STEP_TASKS_PER_NODE": "2",
        "SLURM_NNODES": "1",
    }
    expected |= {"SLURM_JOB_NODELIST": "localhost", "SLURM_STEP_NODELIST": "localhost"}
    assert expected.items() <= found.items()
    assert found[
        "SLURM_GPUS_ON_NODE"
    ] == "2" and "SLURM_GPUS_ON_NODE" not in slurm_variables(HERE, 0)
    assert not {"SLURM_JOB_ID", "SLURM_STEP_ID"} & found.keys()
    assert resolve(found).source == "alone"  # they are no placement of their own


def test_only_multiworker_has_tf_config_and_no_proxy(environment, capsys):
    set_environment("mirrored", HERE, workers=1, device="cpu", gpus=0)
    assert "TF_CONFIG" not in environment and environment["grpc_proxy"]
    assert environment["TF_CPP_MIN_LOG_LEVEL"] == "1"
    environment["TF_CPP_MIN_LOG_LEVEL"] = "0"
    set_environment("multiworker", HERE, workers=2, device="cpu", gpus=0)
    found = json.loads(environment["TF_CONFIG"])
    assert found["cluster"]["worker"] == ["localhost:20000", "localhost:20001"]
    assert found["task"] == {"type": "worker", "index": 1}
    assert "grpc_proxy" not in environment
    assert "grpc_proxy is unset" in capsys.readouterr().err
    assert environment["TF_CPP_MIN_LOG_LEVEL"] == "0"  # as the user wants it


def test_under_srun_its_own_variables_stay(environment):
    environment |= {"SLURM_PROCID": "7"}
    place = Placement(1, 2, 0, 1, 1, ("a", "b"), "slurm", 20_000)
    set_environment("multiworker", place, workers=2, device="cpu", gpus=0)
    assert environment["SLURM_PROCID"] == "7"
    assert json.loads(environment["TF_CONFIG"])["cluster"]["worker"] == [
        "a:20000",
        "b:20000",
    ]


@pytest.mark.engine
def test_tensorflows_own_resolver_finds_the_workers(environment):
    import tensorflow as tf

    set_environment("multiworker", HERE, workers=2, device="cpu", gpus=0)
    assert (
        environment["CUDA_VISIBLE_DEVICES"] == "-1,-1"
    )  # hides GPUs, of which it needs one for each task
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver()
    assert resolver.cluster_spec().as_dict() == {
        "worker": ["localhost:8888", "localhost:8889"]
    }
    assert (resolver.task_type, resolver.task_id) == ("worker", 1)
