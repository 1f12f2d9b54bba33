"""The environment of a worker process, decided before the framework is imported."""

from collections.abc import Mapping

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.proxies import PROXIES
from scalestudy.cluster.tf_config import tf_config
from scalestudy.study.point import Point


def process_environment(
    point: Point, placement: Placement, environment: Mapping[str, str], *, device: str
) -> tuple[dict[str, str], list[str]]:
    """Variables to set and to unset for this worker.

    Args:
        point: What is run.
        placement: This process among the others.
        environment: The variables as they are.
        device: "cpu" or "gpu".

    Returns:
        The variables to set, and the names of those to unset.
    """
    values = {
        "KERAS_BACKEND": "tensorflow",
        "TF_CPP_MIN_LOG_LEVEL": environment.get("TF_CPP_MIN_LOG_LEVEL", "1"),
    }
    drop = []
    if device == "cpu":
        values["CUDA_VISIBLE_DEVICES"] = "-1"
    else:
        visible = environment.get("CUDA_VISIBLE_DEVICES")
        values["CUDA_VISIBLE_DEVICES"] = ",".join(_gpus(point, placement, visible))
        values["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
        values["TF_GPU_THREAD_MODE"] = "gpu_private"
    if point.traits.meets == "tensorflow":
        values["TF_CONFIG"] = tf_config(placement)
        drop += [name for name in PROXIES if name in environment]  # gRPC would send workers' traffic there
    else:
        drop += [name for name in ("TF_CONFIG",) if name in environment]
    return values, drop


def _gpus(point: Point, placement: Placement, visible: str | None) -> list[str]:
    """The GPUs of this process: all workers' for mirrored, its own otherwise."""
    names = visible.split(",") if visible else None
    if point.traits.one_process and not point.traits.one_device:
        wanted = range(point.workers)
    elif names is not None and len(names) == 1:
        wanted = range(1)  # the launcher has already chosen
    else:
        wanted = range(placement.local_rank, placement.local_rank + 1)
    return [names[index] if names is not None else str(index) for index in wanted]
