"""TensorFlow's MirroredStrategy: the devices of one node, in one process."""

import tensorflow as tf

from scalestudy.errors import UserError
from scalestudy.strategies.distributed import Distributed


class Mirrored(Distributed):
    """A worker on each GPU of this node, or on each of as many logical CPU devices.

    Args:
        workers: Workers of the run.
        device: "gpu" or "cpu".
        sync_batch_norm: Whether batch normalisation spans the workers.
    """

    name = "mirrored"

    def __init__(self, workers: int, *, device: str, sync_batch_norm: bool) -> None:
        if device == "cpu":
            cpu = tf.config.list_physical_devices("CPU")[0]
            tf.config.set_logical_device_configuration(
                cpu, [tf.config.LogicalDeviceConfiguration()] * workers
            )
        found = tf.config.list_logical_devices(device.upper())
        if len(found) < workers:
            raise UserError(
                f"{workers} {device.upper()} devices for {workers} mirrored workers",
                f"{len(found)}",
                "Use fewer workers, or strategy multiworker or horovod over several nodes.",
            )
        devices = [found_device.name for found_device in found[:workers]]
        super().__init__(tf.distribute.MirroredStrategy(devices), workers, sync_batch_norm=sync_batch_norm)

    def slices(self) -> list[tuple[int, int]]:
        """All workers, one per device."""
        return [(worker, worker + 1) for worker in range(self.workers)]
