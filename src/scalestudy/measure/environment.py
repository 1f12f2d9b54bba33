"""The record of the environment that a rank ran in."""

import os
import platform
import socket
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import psutil

from scalestudy.cluster.placement import Placement
from scalestudy.machine import cores
from scalestudy.machine.devices import visible_uuids
from scalestudy.machine.installed import environment_id, environment_name
from scalestudy.machine.nvml import driver_version
from scalestudy.study.records import RankRecord

PACKAGES = ("scalestudy", "tensorflow", "tensorflow-cpu", "keras", "horovod", "numpy")
VARIABLES = (
    "TF_",
    "XLA_",
    "NCCL_",
    "HOROVOD_",
    "OMP_",
    "CUDA_",
    "KERAS_",
    "SLURM_JOB_ID",
    "SLURM_RESTART_COUNT",
)


def rank_record(
    placement: Placement, *, threads: int, devices: list[str], build: dict[str, Any]
) -> RankRecord:
    """What this rank ran in.

    Args:
        placement: This process among the others.
        threads: Threads that the framework computes with.
        devices: The framework's names of the devices used; their UUIDs are those that this process sees.
        build: How the framework and Horovod were built.
    """
    return RankRecord(
        rank=placement.rank,
        size=placement.size,
        local_rank=placement.local_rank,
        host=socket.gethostname(),
        pid=os.getpid(),
        placement_source=placement.source,
        cpus=cores.granted(),
        threads=threads,
        devices=devices,
        device_uuids=visible_uuids(os.environ),
        versions={"python": platform.python_version(), **_versions()},
        nodes_shared=_nodes_shared(os.environ),
        build=build,
        driver=driver_version(),
        kernel=platform.release(),
        cpu_model=cores.cpu_model(),
        memory_bytes=psutil.virtual_memory().total,
        environment_id=environment_id(),
        environment_name=environment_name(),
        environment={key: value for key, value in sorted(os.environ.items()) if key.startswith(VARIABLES)},
    )


def _nodes_shared(environment: Mapping[str, str]) -> bool | None:
    """What the job script was told by its queue."""
    return {"yes": True, "no": False}.get(environment.get("SCALESTUDY_NODES_SHARED", ""))


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package.removesuffix("-cpu")] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
