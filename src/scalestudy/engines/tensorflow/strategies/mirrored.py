"""TensorFlow's MirroredStrategy: the devices of one node, in one process."""

import tensorflow as tf

from scalestudy.cluster.placement import Placement
from scalestudy.engines.replicas import Joined
from scalestudy.engines.tensorflow.strategies.distributed import Distributed
from scalestudy.engines.tensorflow.strategies.replicas import TensorGroup
from scalestudy.util.errors import UserError


def join(placement: Placement, *, workers: int, device: str, communication: str) -> Joined:
    """A worker on each GPU of this node, or on each of as many logical CPU devices.

    Raises:
        UserError: If there are fewer devices than workers.
    """
    found = tf.config.list_logical_devices(device.upper())
    if len(found) < workers:
        raise UserError(
            f"{workers} {device.upper()} devices for {workers} mirrored workers",
            f"{len(found)}",
            "Use fewer workers, or strategy multiworker or horovod over several nodes.",
        )
    strategy = tf.distribute.MirroredStrategy([each.name for each in found[:workers]])
    group = TensorGroup(communication="nccl" if device == "gpu" else "ring")  # MirroredStrategy's own choice
    slices = [(worker, worker + 1) for worker in range(workers)]
    return Joined(group, Distributed(strategy, group, workers, slices=slices, size=workers))
