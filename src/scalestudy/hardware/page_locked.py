"""Memory that is registered with CUDA: a GPU copies from it by itself, while it computes.

From other memory the driver copies to its own first, and may hold up all that the process asks of the GPU
meanwhile (https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html). It is registered for all
GPUs of the process, whichever engine copies.
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
"""cudaHostRegisterPortable: for the contexts of all GPUs, and not of the current one alone."""
MAPS = Path("/proc/self/maps")
LIBRARY = "libcudart.so"


class PageLocking:
    """Registers blocks of memory, each once, and takes each back before its memory is freed.

    The first that cannot be registered is the last that is tried: copies are then as they were, and one line
    says why.

    Args:
        library: Gives the CUDA runtime; asked with the first block, when the engine has loaded it.
    """

    def __init__(self, library: Callable[[], Any] | None = None) -> None:
        self._find = library or loaded_runtime
        self._library: Any = None
        self._given_up = False
        self._turn = threading.Lock()  # each device has a thread that reads

    def register(self, memory: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The whole pages of `memory`, which owns its bytes, registered as long as it lives."""
        start = -memory.ctypes.data % PAGE
        block = memory[start : start + (memory.nbytes - start) // PAGE * PAGE]
        with self._turn:
            if self._given_up:
                return block
            try:
                self._library = self._library or self._find()
                error = int(self._library.cudaHostRegister(block.ctypes.data, block.nbytes, PORTABLE))
                if error:
                    self._library.cudaGetLastError()  # else the engine would take it for its own
                    raise OSError(f"error {error} of cudaHostRegister for {block.nbytes} bytes")
            except OSError as failure:
                self._given_up = True
                why = f"scalestudy: batches are copied to GPUs from pageable memory: {failure}"
                print(why, file=sys.stderr, flush=True)
                return block
        # Called before NumPy frees the memory. With the process, the driver ends all of it.
        weakref.finalize(memory, self._library.cudaHostUnregister, block.ctypes.data).atexit = False
        return block


def loaded_runtime() -> ctypes.CDLL:
    """The CUDA runtime that an engine has loaded into this process.

    Raises:
        OSError: If there is none.
    """
    for line in MAPS.read_text().splitlines():
        path = line.partition("/")[2]
        if path.rpartition("/")[2].startswith(LIBRARY):
            return runtime(f"/{path}")
    raise OSError(f"no {LIBRARY} in this process")


def runtime(path: str) -> ctypes.CDLL:
    """A library with the functions of CUDA's runtime that are called here."""
    library = ctypes.CDLL(path)
    library.cudaHostRegister.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint)
    library.cudaHostUnregister.argtypes = (ctypes.c_void_p,)
    return library
