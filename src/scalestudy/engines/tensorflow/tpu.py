"""TensorFlow's TPUStrategy: a worker on each core of this host's TPU. It has never been run on a TPU."""

import tensorflow as tf

from scalestudy.cluster.placement import Placement
from scalestudy.engines.group import Joined
from scalestudy.engines.tensorflow.distribute import MirroredReplicas
from scalestudy.engines.tensorflow.replicas import TensorGroup
from scalestudy.util.errors import UserError


def join(
    placement: Placement,
    *,
    workers: int,
    device: str,
    communication: str,
) -> Joined:
    """Join the cores of this host's TPU.

    Raises:
        UserError: If no TPU answers, or if its number of cores differs from the number of workers.
    """
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect("local")
        strategy = tf.distribute.TPUStrategy(resolver)
    except (tf.errors.OpError, ValueError) as error:
        raise UserError(
            "a TPU on this host, which the tpu strategy needs",
            _first_line(error),
            "Run it on a TPU host, or use another strategy: `scalestudy check --strategies` lists them.",
        ) from error
    cores = strategy.num_replicas_in_sync
    if cores != workers:
        raise UserError(
            "as many workers as this host's TPU has cores",
            f"{workers} workers on {cores} cores",
            f"Set workers to {cores}.",
        )
    group = TensorGroup()
    return Joined(group, MirroredReplicas(strategy, group, workers))


def _first_line(error: Exception) -> str:
    first = str(error).strip().partition("\n")[0]
    return first or type(error).__name__
