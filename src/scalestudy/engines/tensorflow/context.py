"""What a layer may know, while it is traced for one worker, of the step around it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class WorkerContext:
    """One worker's place in a step. All numbers are scalar tensors.

    Attributes:
        step: Step of the run, from 0 (int64).
        start: Position of the worker's first sample in the global batch (int64).
        count: Samples in its slice (int64); 0 when it computes a row of zeros that counts for nothing.
        total: Samples in the global batch (int64).
        share: workers · count / total: weight of its statistics in the mean over workers (float).
        first: Whether no other worker of this step has used the same variables yet. Only workers
            that are computed one after another ever see it false.
        sync_sum: Sums a tensor over all workers, differentiably; None for statistics per worker.
    """

    step: Any
    start: Any
    count: Any
    total: Any
    share: Any
    first: Any
    sync_sum: Callable[[Any], Any] | None = None


_local = threading.local()  # a thread each: TensorFlow traces the replicas of a node in threads


@contextmanager
def working(context: WorkerContext) -> Iterator[None]:
    """Let layers see `context` for the duration of the block."""
    before = getattr(_local, "context", None)
    _local.context = context
    try:
        yield
    finally:
        _local.context = before


def current() -> WorkerContext | None:
    """The context of the worker being traced, or None outside a training step."""
    return getattr(_local, "context", None)
