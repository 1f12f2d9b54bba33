"""Copies between each two devices: `python -m THIS_MODULE cpu|gpu BYTES [GPU,GPU]`.

In a process of its own, since it takes the devices. Prints [from][to] bytes per second as JSON; null on
the diagonal. GPUs are named by UUID, or by their places in the order of PCI addresses.

Copies of several tensors are enqueued in one call, and their time together is divided by their number, as
nccl-tests does. Each tensor is copied once a call: TensorFlow keeps what it has copied eagerly.
"""

import json
import os
import statistics
import sys
import time
from typing import Any

from scalestudy.cluster.environment import process_environment
from scalestudy.engines.tensorflow.traits import ENGINE

BEFORE, CALLS, COPIES = 1, 5, 8


def main(device: str, size: int, gpus: str = "") -> int:
    """Measure all pairs of GPUs, or of two logical CPUs."""
    own = gpus.split(",") if device == "gpu" else ()
    os.environ.update(process_environment(os.environ, ENGINE, gpus=own, quiet=True).values)
    import tensorflow as tf

    if device == "cpu":
        lone = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(lone, [tf.config.LogicalDeviceConfiguration()] * 2)
    names = [each.name for each in tf.config.list_logical_devices(device.upper())]
    rows = [[None if a == b else size / _seconds(a, b, size) for b in names] for a in names]
    print(json.dumps(rows))
    return 0


def _seconds(source: str, target: str, size: int) -> float:
    """Median seconds of a copy of `size` bytes, of several in one call."""
    import tensorflow as tf

    with tf.device(source):
        tensors = [tf.random.uniform([size // 4]) for _ in range(COPIES)]
    for tensor in tensors:
        tensor[:1].numpy()  # it is there

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def last(*tensors: Any) -> Any:
        with tf.device(target):
            return tf.stack([tf.identity(tensor)[0] for tensor in tensors])

    seconds = []
    for _ in range(BEFORE + CALLS):
        started = time.perf_counter()
        last(*tensors).numpy()  # waits until all copies are there
        seconds.append((time.perf_counter() - started) / COPIES)
    return statistics.median(seconds[BEFORE:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
