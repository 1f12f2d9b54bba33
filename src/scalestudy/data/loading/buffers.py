"""Memory that batches are read into again and again: anew once nothing refers to what was in it."""

import ctypes
import math
import queue
import weakref
from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike, NDArray

from scalestudy.hardware.page_locked import PAGE, PageLocking

ALIGNMENT = 64
"""Bytes. What lies at a multiple of it TensorFlow takes as it is."""

Array = NDArray[np.generic]
Form = tuple[Sequence[int], DTypeLike]
"""Shape and type of an array."""


class Buffers:
    """Blocks of aligned memory. Each is handed out again once nobody refers to it any more.

    Nothing waits here, and nobody says that he is done: the last array over a block, or the last tensor
    that an engine made of it without a copy, gives it back as it goes. So there are as many blocks as were
    in use at once.

    Attributes:
        made: Blocks made so far.

    Args:
        locking: Registers each block for copies to GPUs; None where there are none.
    """

    def __init__(self, locking: PageLocking | None = None) -> None:
        self._free: queue.SimpleQueue[NDArray[np.uint8]] = queue.SimpleQueue()  # objects may end within a put
        self._locking = locking
        self.made = 0

    def take(self, *forms: Form) -> list[Array]:
        """Arrays of these forms in one block, each at a multiple of `ALIGNMENT`, filled with anything."""
        sizes = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in forms]
        places = [-(-size // ALIGNMENT) * ALIGNMENT for size in sizes]
        block = self._block(sum(places))
        # All arrays over the block hold on to this object. An array would not do: a view of a view holds on
        # to the first of them, past those between, and a row of a batch would outlive its batch.
        use = (ctypes.c_uint8 * block.nbytes).from_buffer(block.data)
        weakref.finalize(use, self._free.put, block).atexit = False
        whole = np.frombuffer(memoryview(use), np.uint8)
        starts = [sum(places[:index]) for index in range(len(forms))]
        return [
            whole[start : start + size].view(dtype).reshape(shape)
            for start, size, (shape, dtype) in zip(starts, sizes, forms, strict=True)
        ]

    def _block(self, size: int) -> NDArray[np.uint8]:
        """A free block of at least `size` bytes, or a new one; free ones that are smaller are given up."""
        while True:
            try:
                block = self._free.get_nowait()
            except queue.Empty:
                break
            if block.nbytes >= size:
                return block
            del block  # before a larger one is made
        self.made += 1
        if self._locking is not None:
            whole_pages = -(-size // PAGE) * PAGE
            return self._locking.register(np.empty(whole_pages + PAGE, np.uint8))
        memory = np.empty(size + ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % ALIGNMENT
        return memory[start : start + size]
