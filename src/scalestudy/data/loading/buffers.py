"""Reusable memory for batches: a block is reused once nothing refers to its contents."""

import ctypes
import math
import queue
import weakref
from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike, NDArray

from scalestudy.hardware.page_locked import PAGE, PageLocking

ALIGNMENT = 64
"""Alignment in bytes at which TensorFlow uses memory without a copy."""

Array = NDArray[np.generic]
Form = tuple[Sequence[int], DTypeLike]
"""Shape and type of an array."""


class Buffers:
    """Blocks of aligned memory, each reused once nothing refers to it.

    A block is returned when the last array over it, or the last tensor that an engine created from it
    without a copy, is garbage-collected. `take` never waits, so there are as many blocks as were in use at
    the same time.

    Attributes:
        made: Number of blocks allocated.

    Args:
        locking: Registers each block as page-locked memory for copies to GPUs; None without GPUs.
    """

    def __init__(self, locking: PageLocking | None = None) -> None:
        self._free: queue.SimpleQueue[NDArray[np.uint8]] = queue.SimpleQueue()  # its put is reentrant
        self._locking = locking
        self.made = 0

    def take(self, *forms: Form) -> list[Array]:
        """Return uninitialized arrays of these forms in one block, each aligned to `ALIGNMENT`."""
        sizes = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in forms]
        places = [-(-size // ALIGNMENT) * ALIGNMENT for size in sizes]
        block = self._block(sum(places))
        # All arrays over the block refer to this object. An array would not do: a view of a view refers to
        # the base array, so a row of a batch could outlive the batch.
        use = (ctypes.c_uint8 * block.nbytes).from_buffer(block.data)
        weakref.finalize(use, self._free.put, block).atexit = False
        whole = np.frombuffer(memoryview(use), np.uint8)
        starts = [sum(places[:index]) for index in range(len(forms))]
        return [
            whole[start : start + size].view(dtype).reshape(shape)
            for start, size, (shape, dtype) in zip(starts, sizes, forms, strict=True)
        ]

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
        if self._locking is not None:
            whole_pages = -(-size // PAGE) * PAGE
            return self._locking.register(np.empty(whole_pages + PAGE, np.uint8))
        memory = np.empty(size + ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % ALIGNMENT
        return memory[start : start + size]
