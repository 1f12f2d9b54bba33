"""TensorFlow's CentralStorageStrategy: the devices of one node, with one set of variables on its CPU."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from scalestudy.cluster.placement import Placement
from scalestudy.engines.group import Joined
from scalestudy.engines.tensorflow.distribute import MirroredReplicas, devices_of
from scalestudy.engines.tensorflow.replicas import TensorGroup


def join(
    placement: Placement,
    *,
    workers: int,
    device: str,
    communication: str,
) -> Joined:
    """Join the same workers as mirrored, with variables on the CPU.

    Raises:
        UserError: If there are fewer devices than workers.
    """
    strategy = tf.distribute.experimental.CentralStorageStrategy(
        devices_of(workers, device)
    )
    group = TensorGroup()
    return Joined(group, CentralReplicas(strategy, group, workers))


class CentralReplicas(MirroredReplicas):
    """Replicas that share one set of variables, on the CPU or on the only device.

    Each step copies weights to the devices and gradients back, and updates the variables once.
    """

    overlaps_once = False
    copies_weights = False

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Make the variables shared: one that each worker has elsewhere takes the mean of assigned values.

        For moving averages, to which each worker adds its own share, the result is the same.
        """
        with self._strategy.scope(), tf.variable_creator_scope(_shared):
            yield

    def parts(self, variable: Any) -> list[Any]:
        """Return the shared variable for every device."""
        return [variable] * self.size

    def average(self, variables: Sequence[Any]) -> None:
        """Do nothing: variables are shared."""


def _shared(create: Callable[..., Any], **options: Any) -> Any:
    if options.get("synchronization") == tf.VariableSynchronization.ON_READ:
        # Such a variable has a value on each device, and only mirrored strategies have several.
        options["synchronization"] = tf.VariableSynchronization.AUTO
        options["aggregation"] = tf.VariableAggregation.MEAN
    return create(**options)
