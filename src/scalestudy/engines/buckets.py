"""The parts in which gradients are exchanged, so that it begins before back-propagation has ended."""

from collections.abc import Callable, Sequence
from typing import Any

Buckets = Sequence[tuple[int, ...]]
"""Indices of the gradients in each bucket, in the order in which buckets are exchanged."""


def in_buckets(sizes: Sequence[int], limit: int | None) -> Buckets:
    """Put gradients into buckets: those of the last layers first, which back-propagation computes first.

    A bucket is full once it holds `limit` bytes, as in PyTorch's DDP (Li et al. 2020, arXiv:2006.15704).
    Sizes alone decide, so that all ranks have the same buckets in every step, and sums one order.

    Args:
        sizes: Bytes of each gradient, in the order of the model's variables.
        limit: Bytes at which a bucket is full; None puts all into one.

    Returns:
        Within a bucket, indices rise.
    """
    buckets: list[list[int]] = []
    held = 0
    for index in reversed(range(len(sizes))):
        if not buckets or (limit is not None and held >= limit):
            buckets.append([])
            held = 0
        buckets[-1].append(index)
        held += sizes[index]
    return tuple(tuple(reversed(bucket)) for bucket in buckets)


def in_halves(work: Sequence[int]) -> Buckets:
    """Put gradients into two buckets, those of the last layers first, each with half of the work.

    For collectives of which only the first is under way while back-propagation goes on: the first bucket
    holds what it can, and the second is what the remaining half of the work has to hide the first with.

    Args:
        work: Of back-propagation through the layer of each gradient, in the order of the model's variables,
            in whatever unit.

    Returns:
        One bucket where the last layer alone has half of the work, and nothing is before it.
    """
    done, first = 0, len(work)
    while first and 2 * done < sum(work):
        first -= 1
        done += work[first]
    halves = tuple(range(first, len(work))), tuple(range(first))
    return tuple(half for half in halves if half)


def summed(
    gradients: Sequence[Any], buckets: Buckets, all_reduce: Callable[[list[Any]], Sequence[Any]]
) -> list[Any]:
    """Gradients, all-reduced a bucket at a time, in the order that they have."""
    sums = list(gradients)
    for bucket in buckets:
        for index, total in zip(bucket, all_reduce([gradients[i] for i in bucket]), strict=True):
            sums[index] = total
    return sums
