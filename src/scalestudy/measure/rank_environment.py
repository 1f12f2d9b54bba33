"""The record of the environment that a rank ran in."""

import os
import platform
import socket
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import psutil

from scalestudy.cluster.placement import Placement
from scalestudy.hardware import cores
from scalestudy.hardware.devices import VISIBLE, visible_uuids
from scalestudy.hardware.installed import environment_id, environment_name
from scalestudy.hardware.nvml import driver_version
from scalestudy.plugins.engines import (
    EngineTraits,
    engine_names,
    engine_traits,
    installed_versions,
)
from scalestudy.store.records import RankRecord

PACKAGES = ("scalestudy", "numpy")
_RECORDED = """
    CUDA_CACHE_DISABLE CUDA_CACHE_PATH CUDA_DEVICE_MAX_CONNECTIONS CUDA_DEVICE_ORDER
    CUDA_LAUNCH_BLOCKING CUDA_MODULE_LOADING CUDA_MPS_ACTIVE_THREAD_PERCENTAGE NVIDIA_TF32_OVERRIDE
    NCCL_ALGO NCCL_BUFFSIZE NCCL_COLLNET_ENABLE NCCL_CROSS_NIC NCCL_CUMEM_ENABLE NCCL_DEBUG
    NCCL_DEBUG_SUBSYS NCCL_IB_DISABLE NCCL_IB_GID_INDEX NCCL_IB_HCA NCCL_IB_TC NCCL_IB_TIMEOUT
    NCCL_MAX_CTAS NCCL_MAX_NCHANNELS NCCL_MIN_CTAS NCCL_MIN_NCHANNELS NCCL_MULTI_RANK_GPU_ENABLE
    NCCL_NET NCCL_NET_GDR_LEVEL NCCL_NET_PLUGIN NCCL_NSOCKS_PERTHREAD NCCL_NTHREADS NCCL_NVLS_ENABLE
    NCCL_P2P_DISABLE NCCL_P2P_LEVEL NCCL_PROTO NCCL_SHM_DISABLE NCCL_SOCKET_FAMILY NCCL_SOCKET_IFNAME
    NCCL_SOCKET_NTHREADS NCCL_TOPO_FILE OMP_DYNAMIC OMP_NUM_THREADS OMP_PLACES OMP_PROC_BIND
    OMP_WAIT_POLICY SLURM_JOB_ID SLURM_RESTART_COUNT
"""
VARIABLES = (VISIBLE, *_RECORDED.split())
"""Variables to record because they affect how a rank computes and sums; engines add their own. The list is
explicit, because tokens and passwords may have the same prefixes."""


def rank_record(
    placement: Placement,
    engine: EngineTraits,
    *,
    threads: int,
    devices: list[str],
    build: dict[str, Any],
    unmeasured: Mapping[str, str] = MappingProxyType({}),
) -> RankRecord:
    """Return the record of this rank's environment; `unmeasured` maps quantities to reasons."""
    # Only a job script knows it: elsewhere it stays unknown.
    said = os.environ.get("SCALESTUDY_NODES_SHARED", "")
    shared = {"yes": True, "no": False}.get(said)
    return RankRecord(
        rank=placement.rank,
        size=placement.size,
        local_rank=placement.local_rank,
        host=socket.gethostname(),
        pid=os.getpid(),
        # Of the process, not of this call: by now libraries have been imported.
        began=psutil.Process().create_time(),
        placement_source=placement.source,
        cpus=cores.granted(),
        threads=threads,
        devices=devices,
        device_uuids=visible_uuids(os.environ),
        versions={"python": platform.python_version(), **_versions(engine)},
        nodes_shared=shared,
        build=build,
        driver=driver_version(),
        kernel=platform.release(),
        cpu_model=cores.cpu_model(),
        memory_bytes=psutil.virtual_memory().total,
        environment_id=environment_id(),
        environment_name=environment_name(),
        environment=record_variables(os.environ),
        unmeasured=dict(unmeasured),
    )


def record_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return those of `VARIABLES` and of the engines' variables that are set, by name."""
    names = set(VARIABLES)
    for engine in engine_names():
        names.update(engine_traits(engine).variables)
    return {name: variables[name] for name in sorted(names & variables.keys())}


def _versions(engine: EngineTraits) -> dict[str, str]:
    found = installed_versions(PACKAGES) | engine.versions()
    versions = {}
    for package, version in found.items():
        # tensorflow-cpu is tensorflow without CUDA, under another name on PyPI.
        versions[package.removesuffix("-cpu")] = version
    return versions
