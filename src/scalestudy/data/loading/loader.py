"""Read a worker's slices of the batches in advance."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter

from scalestudy.data.columns import leaves, like, map_columns
from scalestudy.data.loading.buffers import Buffers
from scalestudy.data.loading.order import Indices, batches, worker_slice
from scalestudy.data.loading.prefetch import Prefetch
from scalestudy.data.loading.reader import Reader
from scalestudy.data.loading.slices import Call, Slice

Stage = Callable[[Slice, int], Slice]
"""Copies a slice to the device that computes it: (slice, index of the device in the process) -> slice."""


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
    """Reads the slices of one process's devices in advance.

    Each device has a thread (or several that take turns), which reads its slices into reused memory and
    stages them. Only rows of the given workers are read, except that an empty slice holds the first row of
    the batch.

    Args:
        reader: Source of the rows.
        slices: For each device of this process, its workers (first, last + 1).
        workers: Number of workers of the run.
        global_batch: Samples in a full step.
        steps_per_call: Maximum number of steps in a call.
        prefetch: Number of calls to read and stage in advance.
        lanes: Threads per device, at most `prefetch`. With several, reading a slice overlaps with the next,
            which helps if rows are decoded or augmented.
        stage: Called by a device's thread with each slice that it has read; None does nothing.
        buffers: Memory for the slices of each device. Loaders that take turns may share it.
    """

    def __init__(
        self, reader: Reader, *, slices: Sequence[tuple[int, int]], workers: int, global_batch: int,
        steps_per_call: int = 1, prefetch: int = 2, lanes: int = 1, stage: Stage | None = None,
        buffers: Sequence[Buffers] | None = None,
    ) -> None:  # fmt: skip
        self._reader = reader
        self._slices, self._workers = tuple(slices), workers
        self._global_batch, self.steps_per_call = global_batch, steps_per_call
        self._prefetch, self._lanes, self._stage = prefetch, lanes, stage
        self._buffers = buffers or [Buffers() for _ in self._slices]

    def epoch(
        self, order: Indices, first: int = 0, behind: int = 0, *, epoch: int | None = None
    ) -> Iterator[Call]:
        """Yield the calls of one pass over `order`, read in advance by the devices' threads.

        Args:
            order: Row numbers in their order, shape [M].
            first: First step of the pass, from 0.
            behind: Steps of the run before this pass.
            epoch: Number of the epoch, from 0, for augmentation; None for no augmentation.
        """
        steps = list(batches(len(order), self._global_batch))[first:]

        def slices_of(device: int, lane: int) -> Iterator[Slice]:
            step = behind + first
            for number, group in enumerate(calls(steps, self.steps_per_call)):
                if number % self._lanes == lane:
                    yield self._slice(order, group, step, device, epoch)
                step += len(group)

        readers: list[Prefetch[Slice]] = []
        devices = len(self._slices)
        try:
            for lane in range(self._lanes):
                for device in range(devices):
                    name = f"loader {device}" + f".{lane}" * bool(lane)
                    readers.append(Prefetch(slices_of(device, lane), self._prefetch // self._lanes, name))
            for lane in itertools.cycle(range(self._lanes)):
                try:
                    call = tuple([reader.take() for reader in readers[lane * devices :][:devices]])
                except StopIteration:
                    return
                yield call
                del call  # so that its memory is free as soon as the caller releases it
        finally:
            for reader in readers:
                reader.close()

    def read(
        self, order: Indices, group: Sequence[tuple[int, int]], step: int = 0, *, epoch: int | None = None,
    ) -> Call:  # fmt: skip
        """Read steps as one call; `group` are ranges of `order`, all of one size, `step` is the first."""
        devices = range(len(self._slices))
        return tuple(self._slice(order, group, step, device, epoch) for device in devices)

    def _slice(
        self, order: Indices, group: Sequence[tuple[int, int]], first: int, device: int, epoch: int | None
    ) -> Slice:
        total, workers = group[0][1] - group[0][0], self._slices[device]
        start = worker_slice(total, workers[0], self._workers)[0]
        stop = worker_slice(total, workers[1] - 1, self._workers)[1]
        # The same shape also for fewer steps, so that only one function is compiled.
        depth, rows = self.steps_per_call, max(stop - start, 1)
        forms = self._reader.forms(order[group[0][0] : group[-1][1]])
        flat = [form for columns in forms for form in leaves(columns)]
        arrays = self._buffers[device].take(*(((depth, rows, *shape), dtype) for shape, dtype in flat))
        split = len(leaves(forms[0]))
        inputs, targets = like(forms[0], arrays[:split]), like(forms[1], arrays[split:])
        for step, (begin, _) in enumerate(group):
            # An empty slice holds a real row with weight 0: losses of zeros may not be finite.
            chosen = slice(begin + start, begin + stop) if stop > start else slice(begin, begin + 1)
            of_step = [map_columns(itemgetter(step), columns) for columns in (inputs, targets)]
            self._reader.read(order[chosen], epoch, *of_step)
        part = Slice(inputs, targets, start, stop - start, total, first, len(group))
        return part if self._stage is None else self._stage(part, device)
