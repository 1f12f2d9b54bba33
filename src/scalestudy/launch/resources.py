"""What this machine offers to workers, found without importing a deep-learning framework."""

import functools
import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

from scalestudy.errors import UserError
from scalestudy.study.point import Point


@functools.cache
def gpus() -> int:
    """GPUs that this process may use, by NVML and CUDA_VISIBLE_DEVICES; 0 without a driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
        count = int(pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError:
        return 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return count
    return min(count, len([name for name in visible.split(",") if name.strip() not in ("", "-1")]))


def cores() -> list[int]:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def check(points: Sequence[Point]) -> None:
    """Refuse points that this machine's software cannot run, before anything is started.

    Raises:
        UserError: If TensorFlow, or Horovod for a horovod point, is missing.
    """
    if importlib.util.find_spec("tensorflow") is None:
        raise UserError(
            "TensorFlow in this environment",
            "none",
            "In the project's folder, run `pip install '.[cpu]'` or `pip install '.[gpu]'`.",
        )
    wanting = [point.name for point in points if point.traits.library == "horovod"]
    if wanting and not horovod_built():
        raise UserError(
            f"Horovod, which {wanting[0]} needs"
            + (f" and {len(wanting) - 1} more" if len(wanting) > 1 else ""),
            "an environment without it"
            if importlib.util.find_spec("horovod") is None
            else "a Horovod that was built without TensorFlow",
            "Build it with `make horovod` in the project's folder (a C++ compiler and cmake are needed), "
            'or leave "horovod" out of the sweep.',
        )


def horovod_built() -> bool:
    """Whether Horovod and its TensorFlow library are installed."""
    spec = importlib.util.find_spec("horovod")
    if spec is None or not spec.submodule_search_locations:
        return False
    folder = Path(next(iter(spec.submodule_search_locations)))
    return any(folder.glob("tensorflow/mpi_lib*.so"))
