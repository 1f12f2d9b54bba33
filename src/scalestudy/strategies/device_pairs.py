"""Copies between each two devices: `python -m scalestudy.strategies.device_pairs cpu|gpu BYTES [GPU,GPU]`.

In a process of its own, since it takes the devices. Prints [from][to] bytes per second as JSON; null on
the diagonal. GPUs are named by UUID, or by their places in the order of PCI addresses.
"""

import json
import os
import statistics
import sys
import time

from scalestudy.cluster.environment import QUIET, process_environment

BEFORE, REPEATS = 2, 7


def main(device: str, size: int, gpus: str = "") -> int:
    """Measure all pairs of GPUs, or of two logical CPUs."""
    own = gpus.split(",") if device == "gpu" else ()
    os.environ.update(process_environment(os.environ, gpus=own, messages=QUIET).values)
    import tensorflow as tf

    if device == "cpu":
        lone = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(lone, [tf.config.LogicalDeviceConfiguration()] * 2)
    names = [each.name for each in tf.config.list_logical_devices(device.upper())]
    rows = [[None if a == b else size / _seconds(a, b, size) for b in names] for a in names]
    print(json.dumps(rows))
    return 0


def _seconds(source: str, target: str, size: int) -> float:
    """Median seconds of a copy of `size` bytes."""
    import tensorflow as tf

    with tf.device(source):
        tensor = tf.random.uniform([size // 4])
    tensor[:1].numpy()  # it is there
    seconds = []
    for _ in range(BEFORE + REPEATS):
        started = time.perf_counter()
        with tf.device(target):
            copy = tf.identity(tensor)
            copy[:1].numpy()  # waits until the copy is there
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[BEFORE:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
