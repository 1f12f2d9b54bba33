"""Memory blocks are registered with CUDA once and unregistered before they are freed."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from scalestudy.data.loading.buffers import Buffers
from scalestudy.hardware import page_locked
from scalestudy.hardware.page_locked import PAGE, PageLocking, loaded_runtime, runtime

STAND_IN = """
#include <stddef.h>
static struct { char kind; size_t address, size; unsigned flags; int first; } calls[64];
static int count = 0, refusal = 0, last = 0;
int cudaHostRegister(void *address, size_t size, unsigned flags) {
    calls[count].kind = 'r'; calls[count].address = (size_t)address; calls[count].size = size;
    calls[count++].flags = flags;
    return last = refusal;
}
int cudaHostUnregister(void *address) {
    calls[count].kind = 'u'; calls[count].address = (size_t)address;
    calls[count++].first = *(unsigned char *)address;  /* faults if the memory is gone */
    return 0;
}
int cudaGetLastError(void) { int error = last; last = 0; return error; }
void refuse(int error) { refusal = error; }
void reset(void) { count = refusal = last = 0; }
int calls_made(void) { return count; }
char kind(int i) { return calls[i].kind; }
size_t address(int i) { return calls[i].address; }
size_t size(int i) { return calls[i].size; }
unsigned flags(int i) { return calls[i].flags; }
int first(int i) { return calls[i].first; }
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A stand-in for the CUDA runtime, loaded into this process, that records its calls."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("cuda")
    source, shared = folder / "cudart.c", folder / "libcudart.so.12"
    source.write_text(STAND_IN)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", shared, source], check=True)
    loaded = runtime(str(shared))
    loaded.address.restype = loaded.size.restype = ctypes.c_size_t
    loaded.kind.restype = ctypes.c_char
    return loaded


@pytest.fixture
def library(built):
    """The stand-in, with its record of calls empty."""
    built.reset()
    return built


def calls(library) -> list[tuple[str, int]]:
    return [(library.kind(i).decode(), library.address(i)) for i in range(library.calls_made())]


def taken(buffers, size=10_000):
    (array,) = buffers.take(((size,), np.uint8))
    return array


def test_each_block_is_registered_once_whole_pages_of_it_for_all_gpus(library):
    buffers = Buffers(PageLocking(lambda: library))
    first, second = taken(buffers), taken(buffers)
    places = [first.ctypes.data, second.ctypes.data]
    del first, second
    for _ in range(5):
        assert taken(buffers).ctypes.data in places
    assert calls(library) == [("r", place) for place in places]
    assert all(place % PAGE == 0 for place in places)
    assert [library.flags(i) for i in range(2)] == [1, 1]
    assert {library.size(i) for i in range(2)} <= {3 * PAGE, 4 * PAGE}  # 4 if the memory begins at a page


def test_a_block_is_taken_back_before_its_memory_is_freed(library):
    buffers = Buffers(PageLocking(lambda: library))
    size = 64 * 2**20  # the C library returns such a block to the kernel at once
    array = taken(buffers, size)
    place = array.ctypes.data
    array.fill(7)
    del array
    larger = taken(buffers, 2 * size)
    assert calls(library) == [("r", place), ("u", place), ("r", larger.ctypes.data)]
    assert library.first(1) == 7


def test_blocks_that_are_in_use_outlive_their_buffers(library):
    array = taken(Buffers(PageLocking(lambda: library)))
    place = array.ctypes.data
    assert calls(library) == [("r", place)]
    array.fill(5)
    del array
    assert calls(library) == [("r", place), ("u", place)]
    assert library.first(1) == 5


def test_of_a_limit_on_locked_memory_there_is_one_line_and_copies_are_as_they_were(library, capsys):
    library.refuse(2)
    locking = PageLocking(lambda: library)
    arrays = [taken(Buffers(locking)) for _ in range(3)]
    for number, array in enumerate(arrays):
        array.fill(number)
    assert [int(array[-1]) for array in arrays] == [0, 1, 2]
    del array, arrays
    assert [kind for kind, _ in calls(library)] == ["r"]
    assert library.cudaGetLastError() == 0  # no later call sees the error
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and "error 2" in lines[0]


def test_what_is_registered_stays_so_when_a_later_block_cannot_be(library):
    locking = PageLocking(lambda: library)
    first, last = taken(Buffers(locking)), []
    library.refuse(2)
    last.append(taken(Buffers(locking)))
    place = first.ctypes.data
    del first
    last.clear()
    assert [kind for kind, _ in calls(library)] == ["r", "r", "u"]
    assert calls(library)[-1] == ("u", place)


def test_the_runtime_is_the_one_that_is_loaded(library):
    found = loaded_runtime()
    before = library.calls_made()
    assert found.calls_made() == before
    found.cudaHostUnregister((ctypes.c_char * 1)())
    assert library.calls_made() == before + 1


def test_without_a_runtime_there_is_one_line(tmp_path, monkeypatch, capsys):
    maps = tmp_path / "maps"
    maps.write_text("7f00-7f01 r-xp 00 fd:00 7  /usr/lib/libcudnn.so.9\n7ffc-7ffd r-xp 00 00:00 0\n")
    monkeypatch.setattr(page_locked, "MAPS", maps)
    locking = PageLocking()
    assert len(taken(Buffers(locking))) == len(taken(Buffers(locking))) == 10_000
    assert capsys.readouterr().err.count("\n") == 1


def test_memory_of_cpus_is_never_registered(library):
    taken(Buffers())
    assert calls(library) == []
