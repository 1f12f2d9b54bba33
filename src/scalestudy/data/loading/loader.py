"""Reading a worker's slices of the batches ahead of time."""

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
"""Takes a slice to where it is computed: (slice, index of its device among those of the process) -> slice."""


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

    Each device has a thread of its own (or several, that take turns), which reads its slices into memory that
    is used again and has them staged. Only the rows of the given workers are ever touched: another worker's
    slice is not read, but for the first row of a batch in the place of an empty slice.

    Args:
        reader: Where rows come from.
        slices: For each device of this process, the workers (first, beyond the last) it computes.
        workers: Number of workers of the run.
        global_batch: Samples in a full step.
        steps_per_call: Most steps in a call.
        prefetch: Calls read and staged before the one that is computed is done.
        lanes: Threads of a device, at most `prefetch`: where reading is work, as decoding is, the next slice
            begins before the last row of one is there.
        stage: Called by a device's thread with each slice it has read; None leaves them where they are.
        buffers: Memory for the slices of each device; loaders that take turns may share it.
    """

    def __init__(
        self, reader: Reader, *, slices: Sequence[tuple[int, int]], workers: int, global_batch: int,
        steps_per_call: int = 1, prefetch: int = 2, lanes: int = 1, stage: Stage | None = None,
        buffers: Sequence[Buffers] | None = None,
    ) -> None:  # fmt: skip
        self._reader = reader
        self._slices, self._workers = tuple(slices), workers
        self._global_batch, self._steps_per_call = global_batch, steps_per_call
        self._prefetch, self._lanes, self._stage = prefetch, lanes, stage
        self._buffers = buffers or [Buffers() for _ in self._slices]

    @property
    def steps_per_call(self) -> int:
        """Most steps in a call."""
        return self._steps_per_call

    def epoch(
        self, order: Indices, first: int = 0, behind: int = 0, *, epoch: int | None = None
    ) -> Iterator[Call]:
        """The calls of one pass over `order` (row numbers, shape [M]), read ahead by a thread a device.

        Args:
            order: Rows in their order.
            first: Step to begin with, from 0.
            behind: Steps of the run before this pass.
            epoch: Which it is, from 0, for what is drawn anew in each; None where nothing may be drawn.
        """
        steps = list(batches(len(order), self._global_batch))[first:]

        def slices_of(device: int, lane: int) -> Iterator[Slice]:
            step = behind + first
            for number, group in enumerate(calls(steps, self._steps_per_call)):
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
                del call  # its memory is free for the next as soon as the caller has let go of it
        finally:
            for reader in readers:
                reader.close()

    def read(
        self, order: Indices, group: Sequence[tuple[int, int]], step: int = 0, *, epoch: int | None = None,
    ) -> Call:  # fmt: skip
        """Read the steps of `group`, rows [start, stop) of `order`, all of one size; `step` is the first."""
        devices = range(len(self._slices))
        return tuple(self._slice(order, group, step, device, epoch) for device in devices)

    def _slice(
        self, order: Indices, group: Sequence[tuple[int, int]], first: int, device: int, epoch: int | None
    ) -> Slice:
        """A device's part of a call, staged."""
        total, workers = group[0][1] - group[0][0], self._slices[device]
        start = worker_slice(total, workers[0], self._workers)[0]
        stop = worker_slice(total, workers[1] - 1, self._workers)[1]
        # Even for fewer steps: one shape, one compiled function.
        depth, rows = self._steps_per_call, max(stop - start, 1)
        forms = self._reader.forms(order[group[0][0] : group[-1][1]])
        flat = [form for columns in forms for form in leaves(columns)]
        arrays = self._buffers[device].take(*(((depth, rows, *shape), dtype) for shape, dtype in flat))
        split = len(leaves(forms[0]))
        inputs, targets = like(forms[0], arrays[:split]), like(forms[1], arrays[split:])
        for step, (begin, _) in enumerate(group):
            # An empty slice computes a row that counts for nothing: of zeros, losses may be not finite.
            chosen = slice(begin + start, begin + stop) if stop > start else slice(begin, begin + 1)
            of_step = [map_columns(itemgetter(step), columns) for columns in (inputs, targets)]
            self._reader.read(order[chosen], epoch, *of_step)
        part = Slice(inputs, targets, start, stop - start, total, first, len(group))
        return part if self._stage is None else self._stage(part, device)
