"""Replicas that keep their gradients to themselves: what a step costs without its exchange."""

import copy
from typing import Any

from scalestudy.engines.buckets import Buckets
from scalestudy.engines.group import Joined
from scalestudy.engines.tensorflow.strategies.replicas import Gradients, tensors


def without_exchange(joined: Joined) -> Joined:
    """The same workers, who compute all else as before, and sum nothing. Their weights part.

    What layers sum over workers is taken to be alike on all, so that its size is right.
    """
    group, own = tensors(joined)
    replicas = copy.copy(own)

    def unsummed(gradients: Gradients, buckets: Buckets) -> Gradients:
        return gradients

    def as_if_alike(tensor: Any) -> Any:
        return tensor * replicas.workers

    replicas.sum_gradients = unsummed  # type: ignore[method-assign]
    replicas.sync_sum = as_if_alike  # type: ignore[method-assign]
    return Joined(group, replicas)
