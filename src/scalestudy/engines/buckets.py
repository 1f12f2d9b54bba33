"""Buckets of gradients, which are exchanged one after another."""

from collections.abc import Callable, Sequence
from typing import Any

Buckets = Sequence[tuple[int, ...]]
"""Indices of the gradients in each bucket, in the order in which buckets are exchanged."""


def in_buckets(sizes: Sequence[int], limit: int | None) -> Buckets:
    """Put gradients into buckets, last layers first, in the order in which back-propagation computes them.

    A bucket is full once it holds `limit` bytes, as in PyTorch's DDP (Li et al. 2020, arXiv:2006.15704).
    Buckets depend only on sizes, so they and the order of sums are the same on all ranks and in every step.

    Args:
        sizes: Bytes of each gradient, in the order of the model's variables.
        limit: Bytes at which a bucket is full; None puts all gradients into one bucket.

    Returns:
        The buckets; indices within a bucket ascend.
    """
    buckets: list[list[int]] = []
    held = 0
    # Back-propagation reaches the last layers first.
    for index in reversed(range(len(sizes))):
        if not buckets or (limit is not None and held >= limit):
            buckets.append([])
            held = 0
        buckets[-1].append(index)
        held += sizes[index]
    ascending = []
    for bucket in buckets:
        ascending.append(tuple(reversed(bucket)))
    return tuple(ascending)


def in_halves(work: Sequence[int]) -> Buckets:
    """Put gradients into two buckets with half of the work each, last layers first.

    For collectives of which only the first overlaps with back-propagation: the exchange of the first bucket
    overlaps with the second half of the work.

    Args:
        work: Work of back-propagation for the variable of each gradient, in the order of the model's
            variables, in any unit.

    Returns:
        Two buckets, or one if the first would hold all gradients.
    """
    done = 0
    first = len(work)
    while first and 2 * done < sum(work):
        first -= 1
        done += work[first]
    last_layers = tuple(range(first, len(work)))
    first_layers = tuple(range(first))
    halves = (last_layers, first_layers)
    return tuple(half for half in halves if half)


def sum_gradients(
    gradients: Sequence[Any],
    buckets: Buckets,
    all_reduce: Callable[[list[Any]], Sequence[Any]],
) -> list[Any]:
    """All-reduce gradients one bucket at a time and return them in their original order."""
    sums = list(gradients)
    for bucket in buckets:
        held = [gradients[index] for index in bucket]
        totals = all_reduce(held)
        for index, total in zip(bucket, totals, strict=True):
            sums[index] = total
    return sums
