"""What a TensorFlow script finds around it: TF_CONFIG, srun's variables, Horovod's rendezvous, devices."""

import os
import sys
from collections.abc import MutableMapping
from typing import Literal

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.resolve import PROXIES
from scalestudy.engines.script_group import hold_secret
from scalestudy.engines.tensorflow.traits import (
    HOROVOD,
    MIRRORED,
    MULTIWORKER,
    TF_CONFIG,
    tf_config,
)
from scalestudy.hardware import cores
from scalestudy.hardware.devices import VISIBLE


def slurm_variables(placement: Placement, gpus: int) -> dict[str, str]:
    """Return what srun would set for this process of a step on one node, as far as scripts read it.

    SLURM_JOB_ID and SLURM_STEP_ID are left out: they would claim a job that no queue knows.

    Args:
        placement: Placement of this process.
        gpus: GPUs of this node's processes; 0 on CPUs.
    """
    size = str(placement.size)
    node = placement.hosts[0]
    variables = {
        "SLURM_CPUS_PER_TASK": str(len(cores.granted())),
        "SLURM_JOB_NODELIST": node,
        "SLURM_JOB_NUM_NODES": "1",
        "SLURM_LOCALID": str(placement.local_rank),
        "SLURM_NNODES": "1",
        "SLURM_NODEID": "0",
        "SLURM_NODELIST": node,
        "SLURM_NPROCS": size,
        "SLURM_NTASKS": size,
        "SLURM_NTASKS_PER_NODE": size,
        "SLURM_PROCID": str(placement.rank),
        "SLURM_STEP_NODELIST": node,
        "SLURM_STEP_NUM_NODES": "1",
        "SLURM_STEP_NUM_TASKS": size,
        "SLURM_STEP_TASKS_PER_NODE": size,
        "SLURM_TASKS_PER_NODE": size,
        "SLURMD_NODENAME": node,
    }
    if gpus:
        variables["SLURM_GPUS_ON_NODE"] = str(gpus)
    return variables


def set_environment(
    strategy: str,
    placement: Placement,
    *,
    workers: int,
    device: Literal["cpu", "gpu"],
    gpus: int,
) -> None:
    """Set what a script of this strategy needs, in this process and before the script starts.

    Args:
        strategy: Name of its strategy.
        placement: Placement of this process.
        workers: Workers of the run, which `mirrored` has in one process.
        device: Device of the workers.
        gpus: GPUs of this node's processes; 0 on CPUs.

    Raises:
        UserError: If the processes have no port, host or secret.
        RunError: If rank 0 is not reached in time.
    """
    # Remembered first, since Horovod's rendezvous takes it out of the environment.
    hold_secret()
    # No lines on the instructions of the CPU.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    os.environ.pop(TF_CONFIG, None)
    if placement.source == "torchrun":  # local: under srun, its own variables are there
        os.environ.update(slurm_variables(placement, gpus))
        if device == "cpu":
            # TensorFlow's SlurmClusterResolver counts these names, and needs one for each task.
            os.environ[VISIBLE] = ",".join(["-1"] * placement.local_size)
    if strategy == MULTIWORKER.name:
        os.environ[TF_CONFIG] = tf_config(placement)
        _unset_proxies(os.environ)
    elif strategy == HOROVOD.name:
        from scalestudy.engines.tensorflow import horovod_rendezvous

        horovod_rendezvous.join(placement, device=device)
    elif strategy == MIRRORED.name and device == "cpu" and workers > 1:
        _divide_cpu(workers)


def _unset_proxies(variables: MutableMapping[str, str]) -> None:
    """Unset the proxies, to which gRPC would send the workers' traffic."""
    for name in PROXIES:
        if name in variables:
            print(
                f"scalestudy: {name} is unset for {MULTIWORKER.name}",
                file=sys.stderr,
            )
            del variables[name]


def _divide_cpu(workers: int) -> None:
    """Give MirroredStrategy a logical CPU device for each worker: by itself it takes the CPU as one."""
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    device = tf.config.LogicalDeviceConfiguration()
    tf.config.set_logical_device_configuration(cpu, [device] * workers)
