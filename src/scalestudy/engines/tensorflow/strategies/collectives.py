"""One collective in a process of its own: joined, proved by a known sum, timed by message size.

`python -m THIS_MODULE ERRAND`, with ERRAND as JSON: `collective` (a name of `EngineTraits.collectives`; null
only says how things were built), `events` (file that each step is told to, a JSON line each), `placement`,
`device`, `sizes` (bytes, rising), `largest` (bytes that fit this rank's device) and `repeats` (calls to time,
sums chained in each; for each size). An errand of `copies` (bytes) times copies between each two GPUs
instead, and prints [from][to] bytes per second as JSON, null on the diagonal.
The caller sets the environment, and ends this process: by the end of its standard input when all ranks are
done, or by a signal when it stalls.
"""

import json
import os
import statistics
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scalestudy.cluster.placement import Placement
from scalestudy.engines.group import join
from scalestudy.engines.tensorflow.strategies.replicas import TensorGroup, tensors
from scalestudy.engines.tensorflow.traits import ENGINE
from scalestudy.measure.bandwidth import too_slow
from scalestudy.study.engines import collective
from scalestudy.util.errors import RunError
from scalestudy.util.imports import without_unused


def main(arguments: Sequence[str]) -> int:
    """Do one errand."""
    errand, started = json.loads(arguments[0]), time.monotonic()
    with without_unused(ENGINE.unused):
        import tensorflow as tf  # here, before all that imports it too

    if "copies" in errand:
        print(
            json.dumps(copies([gpu.name for gpu in tf.config.list_logical_devices("GPU")], errand["copies"]))
        )
        return 0
    events = Path(errand["events"])

    def tell(**event: Any) -> None:
        with open(events, "a") as file:
            file.write(json.dumps(event) + "\n")

    if errand["collective"] is None:
        tell(step="built", **build(), seconds=time.monotonic() - started)
        return 0
    placement = Placement(**{**errand["placement"], "hosts": tuple(errand["placement"]["hosts"])})
    kind = collective(errand["collective"])
    group, _ = tensors(
        join(
            kind.strategy, placement, workers=placement.size, device=errand["device"],
            communication=kind.communication or "auto",
        )
    )  # fmt: skip
    tell(step="joined")
    device = "GPU:0" if errand["device"] == "gpu" else "CPU:0"
    tell(step="summed", device=prove(group, placement, device))
    seconds = 0.0
    for size, repeats in zip(errand["sizes"], errand["repeats"], strict=True):
        if any_rank(group, size > errand["largest"] or too_slow(seconds, *repeats)):
            break
        seconds = timed(group, size, *repeats)
        tell(step="timed", bytes=size, seconds=seconds)
    prove(group, placement, device)
    tell(step="done")
    sys.stdin.read()  # another rank's last sum may still read from this one
    return 0


def prove(group: TensorGroup, placement: Placement, device: str) -> str:
    """Sum on a device what each rank alone can bring: rank r gives 1 at position r.

    As in training the sum is compiled: of eager calls Horovod's takes place on the CPU, whatever is asked.

    Returns:
        The device that has the sum.

    Raises:
        RunError: If a rank's part is missing or counted twice.
    """
    import tensorflow as tf

    part = np.zeros(placement.size, np.float32)
    part[placement.rank] = 1
    with tf.device(device):
        total = tf.function(group.tensor_sum, autograph=False)(tf.constant(part))
    wrong = np.flatnonzero(total.numpy() != 1)
    if wrong.size:
        raise RunError(
            "every rank to count once in a sum",
            f"rank {wrong[0]} counted {total.numpy()[wrong[0]]:g} times",
            "Train with another strategy here.",
        )
    return str(total.device)


def any_rank(group: TensorGroup, yes: bool) -> bool:
    """Whether any rank says yes; the same on all."""
    return bool(group.host_sum(np.array([int(yes)], np.int64))[0])


def timed(group: TensorGroup, size: int, calls: int, sums: int) -> float:
    """Seconds of one sum of `size` bytes of float32: of `sums` chained in a call, the median of `calls`.

    The first call, which connects and compiles, is not timed.
    """
    import tensorflow as tf

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def chained(tensor: Any) -> Any:
        for _ in range(sums):
            tensor = group.tensor_sum(tensor)
        return tensor

    zeros = tf.zeros([max(1, size // 4)], tf.float32)  # whose sums stay finite
    seconds = []
    for _ in range(1 + calls):
        started = time.perf_counter()
        chained(zeros)[:1].numpy()  # waits until the device has the last sum
        seconds.append((time.perf_counter() - started) / sums)
    return statistics.median(seconds[1:])


CALLS, COPIES = 5, 8


def copies(devices: Sequence[str], size: int) -> list[list[float | None]]:
    """[from][to] bytes per second between each two devices; None on the diagonal."""
    return [[None if a == b else size / _copy_seconds(a, b, size) for b in devices] for a in devices]


def _copy_seconds(source: str, target: str, size: int) -> float:
    """Median seconds of a copy of `size` bytes, of several in one call, as nccl-tests does.

    Each tensor is copied once a call: TensorFlow keeps what it has copied eagerly.
    """
    import tensorflow as tf

    with tf.device(source):
        tensors = [tf.random.stateless_uniform([size // 4], (0, copy)) for copy in range(COPIES)]
    for tensor in tensors:
        tensor[:1].numpy()  # it is there

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def last(*tensors: Any) -> Any:
        with tf.device(target):
            return tf.stack([tf.identity(tensor)[0] for tensor in tensors])

    seconds = []
    for _ in range(1 + CALLS):
        started = time.perf_counter()
        last(*tensors).numpy()  # waits until all copies are there
        seconds.append((time.perf_counter() - started) / COPIES)
    return statistics.median(seconds[1:])


def build() -> dict[str, Any]:
    """What TensorFlow and Horovod were built with, and the GPUs that TensorFlow can use."""
    import tensorflow as tf

    info = tf.sysconfig.get_build_info()
    answer: dict[str, Any] = {
        "tensorflow": str(tf.__version__),
        "cuda": info.get("cuda_version") if info.get("is_cuda_build") else None,
        "cudnn": info.get("cudnn_version") if info.get("is_cuda_build") else None,
        "rocm": bool(info.get("is_rocm_build")),
        "gpus": len(tf.config.list_physical_devices("GPU")),
        "horovod": None,
        "horovod_error": None,
    }
    try:
        from scalestudy.engines.tensorflow.strategies.horovod import built

        answer["horovod"] = built()
    except ModuleNotFoundError:
        pass
    except Exception as error:  # a library that does not load says so in many ways
        answer["horovod_error"] = f"{type(error).__name__}: {error}"
    return answer


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
    except Exception:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of TensorFlow and Horovod may still wait for peers that have already left.
    os._exit(code)
