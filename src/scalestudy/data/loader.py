"""Read a worker's slices of the batches in advance, into reused memory."""

import ctypes
import math
import queue
import threading
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from operator import itemgetter
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from scalestudy.data.samples import (
    Array,
    Call,
    Columns,
    Form,
    Forms,
    Indices,
    Slice,
    batches,
    leaves,
    like,
    map_columns,
    worker_slice,
)
from scalestudy.data.store.prepared import Prepared, Ragged

T = TypeVar("T")
Stage = Callable[[Slice, int], Slice]
"""Copies a slice to the device that computes it: (slice, index of the device in the process) -> slice."""

ALIGNMENT = 64
"""Alignment in bytes at which TensorFlow uses memory without a copy."""


class Reader(Protocol):
    """Reads rows of a data set in the form that a model receives. Must be thread-safe."""

    def forms(self, rows: Indices) -> tuple[Forms, Forms]:
        """Return shape and type of one input and one target; `rows` are a call's rows of all workers."""

    def read(
        self,
        rows: Indices,
        epoch: int | None,
        inputs: Columns,
        targets: Columns,
    ) -> None:
        """Read rows in their order.

        Args:
            rows: Row numbers of the data set, shape [b] with b ≥ 1.
            epoch: Number of the epoch, from 0; augmentation depends on the seed, the epoch and the row. None
                for no augmentation (evaluation).
            inputs: Output arrays of shape [b, ...], as given by `forms`.
            targets: The same for the targets.

        Raises:
            IndexError: If a row does not exist.
        """


class Stored:
    """Reads stored arrays unchanged.

    Args:
        inputs: Memory-mapped array [N, ...], or several by name. Sequences are padded with zeros to the
            longest of a call.
        targets: The same for the targets.
    """

    def __init__(self, inputs: Columns, targets: Columns) -> None:
        self._inputs, self._targets = inputs, targets
        self._forms = None
        columns = [*leaves(inputs), *leaves(targets)]
        if not any(isinstance(column, Ragged) for column in columns):
            self._forms = self._of(np.arange(0))

    def forms(self, rows: Indices) -> tuple[Forms, Forms]:
        return self._forms or self._of(rows)

    def read(
        self,
        rows: Indices,
        epoch: int | None,
        inputs: Columns,
        targets: Columns,
    ) -> None:
        def copy(column: Array | Ragged, into: Array) -> None:
            copy_rows(column, rows, into)

        map_columns(copy, self._inputs, inputs)
        map_columns(copy, self._targets, targets)

    def _of(self, rows: Indices) -> tuple[Forms, Forms]:
        def form(column: Array | Ragged) -> Form:
            if isinstance(column, Ragged):
                return column.form(rows)
            return column.shape[1:], column.dtype

        return map_columns(form, self._inputs), map_columns(form, self._targets)


def reader_of(prepared: Prepared) -> Reader:
    """Return a reader for a prepared set."""
    return Stored(prepared.inputs, prepared.targets)  # opens the files only once


def copy_rows(source: Array | Ragged, rows: Indices, into: Array) -> None:
    """Copy rows of `source` (shape [N, ...]) to `into` (shape [rows, ...]).

    Raises:
        IndexError: If `source` has no such row.
    """
    if isinstance(source, Ragged):
        source.copy(rows, into)
        return
    if rows.min() < 0 or rows.max() >= len(source):
        raise IndexError(f"rows {rows.min()} to {rows.max()} of {len(source)}")
    # mode="raise" would copy through a buffer, in case a row is missing.
    np.take(
        source,
        rows,
        axis=0,
        out=into,
        mode="clip",
    )


class Prefetch(Generic[T]):
    """Iterates over `items` in a thread, at most `most` items ahead of the consumer.

    Who calls `start` must call `close`.
    """

    def __init__(
        self,
        items: Iterator[T],
        most: int,
        name: str,
    ) -> None:
        self._items = items
        self._slots = threading.Semaphore(most)
        self._ready: queue.SimpleQueue[tuple[T] | BaseException] = queue.SimpleQueue()
        self._closed = False
        # A daemon: it must not keep alive a process that ends by an error.
        self._thread = threading.Thread(
            target=self._run,
            name=name,
            daemon=True,
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def take(self) -> T:
        """Wait for the next item and return it.

        Raises:
            StopIteration: If there are no more items.
            BaseException: The error that `items` raised.
        """
        item = self._ready.get()
        if isinstance(item, BaseException):
            raise item
        self._slots.release()
        return item[0]

    def close(self) -> None:
        """Stop the thread after its current item, and wait for it."""
        self._closed = True
        # It may wait for a slot, and sees that it is closed when it gets one.
        self._slots.release()
        self._thread.join()

    def _run(self) -> None:
        try:
            while True:
                self._slots.acquire()
                if self._closed:
                    return
                self._ready.put((next(self._items),))
        except BaseException as error:  # including StopIteration; `take` raises it
            self._ready.put(error)


class Buffers:
    """Blocks of aligned memory, each reused once nothing refers to it.

    A block is returned when the last array over it, or the last tensor that an engine created from it
    without a copy, is garbage-collected. `take` never waits, so there are as many blocks as were in use at
    the same time.

    Attributes:
        made: Number of blocks allocated.
    """

    def __init__(self) -> None:
        # A finalizer may run at any time, also within `get`: the put of a SimpleQueue is reentrant.
        self._free: queue.SimpleQueue[NDArray[np.uint8]] = queue.SimpleQueue()
        self.made = 0

    def take(self, *forms: Form) -> list[Array]:
        """Return uninitialized arrays of these forms in one block, each aligned to `ALIGNMENT`."""
        block = self._block(sum(map(_aligned_bytes, forms)))
        # All arrays over the block refer to this object. An array would not do: a view of a view refers to
        # the base array, so a row of a batch could outlive the batch.
        use = (ctypes.c_uint8 * block.nbytes).from_buffer(block.data)
        returns = weakref.finalize(use, self._free.put, block)
        # When the process ends there is nothing to reuse the block.
        returns.atexit = False
        whole = np.frombuffer(memoryview(use), np.uint8)
        arrays = []
        start = 0
        for form in forms:
            shape, dtype = form
            part = whole[start : start + _bytes(form)]
            arrays.append(part.view(dtype).reshape(shape))
            start += _aligned_bytes(form)
        return arrays

    def _block(self, size: int) -> NDArray[np.uint8]:
        """Return a free block of at least `size` bytes, or a new one; smaller free blocks are released."""
        while True:
            try:
                block = self._free.get_nowait()
            except queue.Empty:
                break
            if block.nbytes >= size:
                return block
            del block  # release it before allocating a larger one
        self.made += 1
        memory = np.empty(size + ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % ALIGNMENT
        return memory[start : start + size]


def _bytes(form: Form) -> int:
    shape, dtype = form
    return math.prod(shape) * np.dtype(dtype).itemsize


def _aligned_bytes(form: Form) -> int:
    """Return the bytes of an array up to the next aligned place."""
    return math.ceil(_bytes(form) / ALIGNMENT) * ALIGNMENT


def calls(
    steps: Sequence[tuple[int, int]], steps_per_call: int
) -> Iterator[list[tuple[int, int]]]:
    """Group steps into calls: at most `steps_per_call` steps, all of one global batch size."""
    group: list[tuple[int, int]] = []
    size = 0
    for start, stop in steps:
        # The last batch may be smaller, and a call has one shape.
        if group and (len(group) == steps_per_call or stop - start != size):
            yield group
            group = []
        group.append((start, stop))
        size = stop - start
    if group:
        yield group


class Loader:
    """Reads the slices of one process's devices in advance.

    Each device has a thread, which reads its slices into reused memory and
    stages them. Only rows of the given workers are read, except that an empty slice holds the first row of
    the batch.

    Args:
        slices: For each device of this process, its workers (first, last + 1).
        global_batch: Samples in a full step.
        steps_per_call: Maximum number of steps in a call.
        prefetch: Number of calls to read and stage in advance.
        stage: Called by a device's thread with each slice that it has read; None does nothing.
        buffers: Memory for the slices of each device. Loaders that take turns may share it.
        whole: Rows of every worker's slice but the last one of a short batch, after which slices are empty;
            None to share each batch out equally.
    """

    def __init__(
        self,
        reader: Reader,
        *,
        slices: Sequence[tuple[int, int]],
        workers: int,
        global_batch: int,
        steps_per_call: int = 1,
        prefetch: int = 2,
        stage: Stage | None = None,
        buffers: Sequence[Buffers] | None = None,
        whole: int | None = None,
    ) -> None:
        self.steps_per_call = steps_per_call
        self._reader = reader
        self._slices = tuple(slices)
        self._workers = workers
        self._global_batch = global_batch
        self._prefetch = prefetch
        self._stage = stage
        self._buffers = buffers or [Buffers() for _ in self._slices]
        self._whole = whole

    def epoch(
        self,
        order: Indices,
        first: int = 0,
        behind: int = 0,
        *,
        epoch: int | None = None,
    ) -> Generator[Call, None, None]:
        """Yield the calls of one pass over `order`, read in advance by the devices' threads.

        Args:
            order: Row numbers in their order, shape [M].
            first: First step of the pass, from 0.
            behind: Steps of the run before this pass.
            epoch: Number of the epoch, from 0, for augmentation; None for no augmentation.
        """
        steps = list(batches(len(order), self._global_batch))[first:]

        def slices_of(device: int) -> Iterator[Slice]:
            step = behind + first
            for group in calls(steps, self.steps_per_call):
                yield self._slice(order, group, step, device, epoch)
                step += len(group)

        readers: list[Prefetch[Slice]] = []
        try:
            for device in range(len(self._slices)):
                items = slices_of(device)
                reader = Prefetch(items, self._prefetch, f"loader {device}")
                reader.start()
                readers.append(reader)
            while True:
                try:
                    call = tuple([reader.take() for reader in readers])
                except StopIteration:
                    return
                yield call
                del call  # so that its memory is free as soon as the caller releases it
        finally:
            for reader in readers:
                reader.close()

    def read(
        self,
        order: Indices,
        group: Sequence[tuple[int, int]],
        step: int = 0,
        *,
        epoch: int | None = None,
    ) -> Call:
        """Read steps as one call; `group` are ranges of `order`, all of one size, `step` is the first."""
        slices = []
        for device in range(len(self._slices)):
            slices.append(self._slice(order, group, step, device, epoch))
        return tuple(slices)

    def _slice(
        self,
        order: Indices,
        group: Sequence[tuple[int, int]],
        first: int,
        device: int,
        epoch: int | None,
    ) -> Slice:
        first_row, end_of_batch = group[0]
        _, end_of_call = group[-1]
        total = end_of_batch - first_row
        start, stop = self._rows_of(device, total)
        count = stop - start
        call_rows = order[first_row:end_of_call]
        inputs, targets = self._arrays(device, call_rows, max(count, 1))
        for step, (begin, _) in enumerate(group):
            rows = order[begin + start : begin + stop]
            if not len(rows):
                # An empty slice holds a real row with weight 0: losses of zeros may not be finite.
                rows = order[begin : begin + 1]
            of_step = itemgetter(step)
            self._reader.read(
                rows,
                epoch,
                map_columns(of_step, inputs),
                map_columns(of_step, targets),
            )
        part = Slice(inputs, targets, start, count, total, first, len(group))
        if self._stage is None:
            return part
        return self._stage(part, device)

    def _rows_of(self, device: int, total: int) -> tuple[int, int]:
        """Return the rows [start, stop) of a device's workers in a global batch of `total` rows."""
        first, end = self._slices[device]
        if self._whole is not None:
            start = first * self._whole
            stop = end * self._whole
            return min(start, total), min(stop, total)
        start, _ = worker_slice(total, first, self._workers)
        _, stop = worker_slice(total, end - 1, self._workers)
        return start, stop

    def _arrays(
        self,
        device: int,
        call_rows: Indices,
        rows: int,
    ) -> tuple[Any, Any]:
        """Return memory for the inputs and targets of a call, `rows` of each step."""
        input_forms, target_forms = self._reader.forms(call_rows)
        # The same shape also for fewer steps, so that only one function is compiled.
        depth = self.steps_per_call
        of_inputs = leaves(input_forms)
        of_targets = leaves(target_forms)
        forms: list[Form] = []
        for shape, dtype in (*of_inputs, *of_targets):
            forms.append(((depth, rows, *shape), dtype))
        arrays = self._buffers[device].take(*forms)
        count = len(of_inputs)
        inputs = like(input_forms, arrays[:count])
        targets = like(target_forms, arrays[count:])
        return inputs, targets


def read_rows(
    prepared: Prepared,
    rows: Indices,
    reader: Reader | None = None,
    epoch: int | None = None,
) -> tuple[Any, Any]:
    """Read inputs and targets of `rows` (shape [B]): arrays [B, ...] or dicts of them; see `Reader.read`."""
    reader = reader or reader_of(prepared)

    def empty(form: Form) -> NDArray[Any]:
        shape, dtype = form
        return np.empty((len(rows), *shape), dtype)

    input_forms, target_forms = reader.forms(rows)
    inputs = map_columns(empty, input_forms)
    targets = map_columns(empty, target_forms)
    reader.read(np.asarray(rows, np.int64), epoch, inputs, targets)
    return inputs, targets
