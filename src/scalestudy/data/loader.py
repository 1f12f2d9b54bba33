"""Reading a worker's slices of the batches ahead of time, from memory-mapped arrays."""

import queue
import threading
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from scalestudy.data.order import Indices, batches, worker_slice
from scalestudy.data.slices import Call, Slice

Array = NDArray[np.generic]


def calls(steps: Sequence[tuple[int, int]], steps_per_call: int) -> Iterator[list[tuple[int, int]]]:
    """Group steps into calls: at most `steps_per_call` steps, all of one global batch size."""
    group: list[tuple[int, int]] = []
    for step in steps:
        if group and (len(group) == steps_per_call or step[1] - step[0] != group[0][1] - group[0][0]):
            yield group
            group = []
        group.append(step)
    if group:
        yield group


class Loader:
    """Reads what the devices of one process need, slice by slice, before they need it.

    Only the rows of the given workers are ever touched: another worker's slice is not read.

    Args:
        inputs: Memory-mapped, shape [N, H, W, C].
        targets: Memory-mapped, shape [N, ...].
        slices: For each device of this process, the workers (first, beyond the last) it computes.
        workers: Number of workers of the run.
        global_batch: Samples in a full step.
        steps_per_call: Most steps in a call.
        ahead: Calls read ahead.
    """

    def __init__(
        self,
        inputs: Array,
        targets: Array,
        *,
        slices: Sequence[tuple[int, int]],
        workers: int,
        global_batch: int,
        steps_per_call: int = 1,
        ahead: int = 2,
    ) -> None:
        self._inputs, self._targets = inputs, targets
        self._slices, self._workers = tuple(slices), workers
        self._global_batch, self._steps_per_call = global_batch, steps_per_call
        self._ahead = ahead

    def epoch(self, order: Indices, first: int = 0, behind: int = 0) -> Iterator[Call]:
        """The calls of one pass over `order` (row numbers, shape [M]), read ahead by a thread.

        Args:
            order: Rows in their order.
            first: Step to begin with, from 0.
            behind: Steps of the run before this pass.
        """
        steps = list(batches(len(order), self._global_batch))[first:]
        ready: queue.Queue[Call | BaseException | None] = queue.Queue(self._ahead)
        stopped = threading.Event()

        def put(item: Call | BaseException | None) -> None:
            while not stopped.is_set():
                try:
                    ready.put(item, timeout=0.2)
                    return
                except queue.Full:
                    continue

        def read() -> None:
            try:
                step = behind + first
                for group in calls(steps, self._steps_per_call):
                    if stopped.is_set():
                        return
                    put(self.read(order, group, step))
                    step += len(group)
                put(None)
            except BaseException as error:  # handed to the reader of the queue
                put(error)

        thread = threading.Thread(target=read, name="loader", daemon=True)
        thread.start()
        try:
            while (item := ready.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            stopped.set()
            thread.join()

    def read(self, order: Indices, group: Sequence[tuple[int, int]], step: int = 0) -> Call:
        """Read the steps of `group` (rows [start, stop) of `order`, all of one size).

        Args:
            order: Rows in their order.
            group: The steps.
            step: The first of them in the run.
        """
        return tuple(self._slice(order, group, step, workers) for workers in self._slices)

    def _slice(
        self, order: Indices, group: Sequence[tuple[int, int]], first: int, workers: tuple[int, int]
    ) -> Slice:
        total = group[0][1] - group[0][0]
        start = worker_slice(total, workers[0], self._workers)[0]
        stop = worker_slice(total, workers[1] - 1, self._workers)[1]
        rows = max(stop - start, 1)
        depth = self._steps_per_call  # even for fewer steps: one shape, one compiled function
        inputs = np.zeros((depth, rows, *self._inputs.shape[1:]), self._inputs.dtype)
        targets = np.zeros((depth, rows, *self._targets.shape[1:]), self._targets.dtype)
        if stop > start:
            for step, (begin, _) in enumerate(group):
                chosen = order[begin + start : begin + stop]
                inputs[step] = self._inputs[chosen]
                targets[step] = self._targets[chosen]
        return Slice(inputs, targets, start, stop - start, total, first, len(group))
