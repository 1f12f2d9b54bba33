"""TensorFlow's CentralStorageStrategy: a worker on each device of one process, the variables on its CPU."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from scalestudy.cluster.placement import Placement
from scalestudy.engines.group import Joined
from scalestudy.engines.tensorflow.strategies.mirrored import MirroredReplicas, devices_of
from scalestudy.engines.tensorflow.strategies.replicas import TensorGroup


def join(placement: Placement, *, workers: int, device: str, communication: str) -> Joined:
    """A worker on each GPU of this node, or on each of as many logical CPU devices.

    Raises:
        UserError: If there are fewer devices than workers.
    """
    strategy = tf.distribute.experimental.CentralStorageStrategy(devices_of(workers, device))
    group = TensorGroup()
    return Joined(group, CentralReplicas(strategy, group, workers))


class CentralReplicas(MirroredReplicas):
    """Replicas that read one set of variables: on the CPU, or on the only device.

    Each step copies weights to the devices and gradients back, and updates once.
    """

    overlaps_once = False
    copies_weights = False

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Where the model is made.

        What workers keep for themselves elsewhere is here the mean of what they assign: the same, for
        averages that move by a share of their own.
        """
        with self._strategy.scope(), tf.variable_creator_scope(_shared):
            yield

    def parts(self, variable: Any) -> list[Any]:
        """The one variable, as every device has it."""
        return [variable] * self.size

    def average(self, variables: Sequence[Any]) -> None:
        """Nothing: there is one of each."""


def _shared(create: Callable[..., Any], **options: Any) -> Any:
    if options.get("synchronization") == tf.VariableSynchronization.ON_READ:
        options |= {
            "synchronization": tf.VariableSynchronization.AUTO,
            "aggregation": tf.VariableAggregation.MEAN,
        }
    return create(**options)
