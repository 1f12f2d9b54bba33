"""Register memory with CUDA (page-locked), so that a GPU copies from it asynchronously while it computes.

From pageable memory, the driver first copies to a buffer of its own, and may block other work of the process
on the GPU meanwhile (https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html). Memory is
registered for all GPUs of the process and is independent of the engine.
"""

import ctypes
import mmap
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PAGE = mmap.PAGESIZE
PORTABLE = 1
"""cudaHostRegisterPortable: for the contexts of all GPUs, not only the current one."""
MAPS = Path("/proc/self/maps")
LIBRARY = "libcudart.so"


class PageLocking:
    """Registers blocks of memory, and unregisters each before its memory is freed.

    After the first failure, which is printed in one line, no more blocks are registered; copies then use
    pageable memory.

    Args:
        library: Returns the CUDA runtime; called for the first block, when the engine has loaded it.
    """

    def __init__(self, library: Callable[[], Any] | None = None) -> None:
        self._find = library or load_runtime
        self._library: Any = None
        self._given_up = False
        self._turn = threading.Lock()  # each device has a reader thread

    def register(self, memory: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the full pages of `memory`, registered while `memory`, which must own its bytes, exists."""
        start = -memory.ctypes.data % PAGE
        block = memory[start : start + (memory.nbytes - start) // PAGE * PAGE]
        with self._turn:
            if self._given_up:
                return block
            try:
                self._library = self._library or self._find()
                error = int(self._library.cudaHostRegister(block.ctypes.data, block.nbytes, PORTABLE))
                if error:
                    self._library.cudaGetLastError()  # else the engine would see this error
                    raise OSError(f"error {error} of cudaHostRegister for {block.nbytes} bytes")
            except OSError as failure:
                self._given_up = True
                why = f"scalestudy: batches are copied to GPUs from pageable memory: {failure}"
                print(why, file=sys.stderr, flush=True)
                return block
        # Called before NumPy frees the memory. At the end of the process, the driver unregisters everything.
        weakref.finalize(memory, self._library.cudaHostUnregister, block.ctypes.data).atexit = False
        return block


def load_runtime() -> ctypes.CDLL:
    """Return the CUDA runtime that an engine has loaded into this process.

    Raises:
        OSError: If there is none.
    """
    for line in MAPS.read_text().splitlines():
        path = line.partition("/")[2]
        if path.rpartition("/")[2].startswith(LIBRARY):
            return runtime(f"/{path}")
    raise OSError(f"no {LIBRARY} in this process")


def runtime(path: str) -> ctypes.CDLL:
    """Load the CUDA runtime, with the signatures of the functions that are called here."""
    library = ctypes.CDLL(path)
    library.cudaHostRegister.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint)
    library.cudaHostUnregister.argtypes = (ctypes.c_void_p,)
    return library
