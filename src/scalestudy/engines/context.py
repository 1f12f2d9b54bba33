"""The current worker, which layers of a model read while they compute, under any engine."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from scalestudy.data.samples import Slice


class Working(NamedTuple):
    """A worker and the slice it computes.

    Attributes:
        slice: The slice of one step; its numbers may be scalar tensors.
        share: workers · count / total: weight of the worker's statistics in the mean over workers (float).
        sync_sum: Sums a tensor over all workers, differentiably; None for statistics per worker.
        calls: Calls so far of each layer that draws random numbers, by its index.
    """

    slice: Slice
    share: Any
    sync_sum: Callable[[Any], Any] | None = None
    calls: Counter[int] | None = None


_local = threading.local()  # TensorFlow traces each replica of a process in its own thread


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
