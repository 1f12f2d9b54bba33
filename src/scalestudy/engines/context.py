"""Which worker computes: what a model's layers know of it while they compute, under any engine."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from scalestudy.data.loading.slices import Slice


class Working(NamedTuple):
    """A worker at its slice.

    Attributes:
        slice: Of one step; its numbers are scalar tensors.
        share: workers · count / total: weight of its statistics in the mean over workers (float).
        sync_sum: Sums a tensor over all workers, differentiably; None for statistics per worker.
        calls: How often each layer that draws has been called so far, by its number.
    """

    slice: Slice
    share: Any
    sync_sum: Callable[[Any], Any] | None = None
    calls: Counter[int] | None = None


_local = threading.local()  # a thread each: TensorFlow traces the replicas of a node in threads


@contextmanager
def working(worker: Working) -> Iterator[None]:
    """Let layers see `worker` for the duration of the block."""
    before = current()
    _local.worker = worker
    try:
        yield
    finally:
        _local.worker = before


def current() -> Working | None:
    """The worker being traced, or None outside a training step."""
    return getattr(_local, "worker", None)
