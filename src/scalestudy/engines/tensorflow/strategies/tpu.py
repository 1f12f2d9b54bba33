"""TensorFlow's TPUStrategy: a worker on each core of a TPU host. Without a TPU nothing of it has been run."""

import tensorflow as tf

from scalestudy.cluster.placement import Placement
from scalestudy.engines.group import Joined
from scalestudy.engines.tensorflow.strategies.mirrored import MirroredReplicas
from scalestudy.engines.tensorflow.strategies.replicas import TensorGroup
from scalestudy.util.errors import UserError


def join(placement: Placement, *, workers: int, device: str, communication: str) -> Joined:
    """A worker on each core of this host's TPU; `device` is that of everything else.

    Raises:
        UserError: If there is no TPU, or if it has another number of cores than there are workers.
    """
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect("local")
        strategy = tf.distribute.TPUStrategy(resolver)
    except (tf.errors.OpError, ValueError) as error:
        raise UserError(
            "a TPU on this host, which the tpu strategy needs",
            str(error).strip().partition("\n")[0] or type(error).__name__,
            "Run it on a TPU host, or take another strategy: `scalestudy check --strategies` lists them.",
        ) from error
    cores = strategy.num_replicas_in_sync
    if cores != workers:
        raise UserError(
            "as many workers as the TPU of this host has cores",
            f"{workers} workers on {cores} cores",
            f"Write {cores} under workers.",
        )
    group = TensorGroup()
    return Joined(group, MirroredReplicas(strategy, group, workers))
