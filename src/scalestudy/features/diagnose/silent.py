"""Replicas that keep their gradients to themselves: what a step costs without its exchange."""

import copy
from typing import Any

from scalestudy.strategies.buckets import Buckets
from scalestudy.strategies.replicas import Gradients, Joined


def silent(joined: Joined) -> Joined:
    """The same workers, who compute all else as before, and sum nothing. Their weights part.

    What layers sum over workers is taken to be alike on all, so that its size is right.
    """
    replicas = copy.copy(joined.replicas)

    def own(gradients: Gradients, buckets: Buckets) -> Gradients:
        return gradients

    def as_if_alike(tensor: Any) -> Any:
        return tensor * replicas.workers

    replicas.sum_gradients = own  # type: ignore[method-assign]
    replicas.sync_sum = as_if_alike  # type: ignore[method-assign]
    return Joined(joined.group, replicas)
