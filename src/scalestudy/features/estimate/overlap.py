"""How much of the exchange is left once back-propagation is over.

Buckets are ready one after another, the last layers' first, and summed one after another (Li et al., "PyTorch
Distributed", VLDB 2020): bucket k is summed at max(when it is ready, when the one before it is done).
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np


def ready_shares(bucket_bytes: Sequence[int], bucket_work: Sequence[int]) -> list[float]:
    """Share of the backward pass that is over when each bucket is ready; the last is 1.

    By the buckets' multiplications where they are known, else by their bytes: the backward pass takes twice
    as long as the forward pass in every layer.
    """
    told = len(bucket_work) == len(bucket_bytes) and sum(bucket_work) > 0
    weights = list(bucket_work) if told else list(bucket_bytes)
    if not sum(weights):
        return [1.0] * len(bucket_bytes)
    return [min(1.0, part / sum(weights)) for part in accumulate(weights)]


def exposed(
    costs: Sequence[Any], shares: Sequence[float], backward: Any, hidden: Any = 1.0, overhead: Any = 0.0
) -> Any:
    """Seconds from the end of the backward pass until the last bucket is summed.

    Args:
        costs: Seconds of each bucket's sum, without the overhead.
        shares: Of the backward pass that is over when it is ready, as `ready_shares`.
        backward: Seconds of the backward pass.
        hidden: Share of what could be hidden that is: less than 1 where sums take the workers' own cores.
        overhead: Seconds before a sum that buckets share which are ready together: a negotiation, a cycle.
    """
    if not costs:
        return 0.0
    started: Any = -np.inf
    done: Any = 0.0
    for cost, share in zip(costs, shares, strict=True):
        ready = share * backward
        alone = ready > started  # it was not there yet when the one before it began
        started = np.maximum(done, ready)
        done = started + np.where(alone, overhead, 0.0) + cost
    best = np.maximum(done - backward, 0.0)
    return hidden * best + (1 - hidden) * (sum(costs) + overhead)
