"""Memory blocks are registered with CUDA once and unregistered before they are freed."""

import ctypes

import numpy as np
import pytest

from scalestudy.data.loader import Buffers
from scalestudy.hardware import page_locked
from scalestudy.hardware.page_locked import PAGE, PORTABLE, PageLocking, load_runtime


class Library:
    """Takes the place of the CUDA runtime: records registrations, and the first byte at the end of each."""

    def __init__(self) -> None:
        self.refusal = self.last = 0
        self.registered: list[tuple[int, int, int]] = []
        self.ended: list[tuple[int, int]] = []

    def cudaHostRegister(self, address, size, flags):
        self.registered.append((address, size, flags))
        self.last = self.refusal
        return self.last

    def cudaHostUnregister(self, address):
        self.ended.append((address, ctypes.c_uint8.from_address(address).value))

    def cudaGetLastError(self):
        error, self.last = self.last, 0
        return error


@pytest.fixture
def library():
    return Library()


def taken(buffers, size=10_000):
    (array,) = buffers.take(((size,), np.uint8))
    return array


def test_each_block_is_registered_once_with_whole_pages(library):
    buffers = Buffers(PageLocking(lambda: library))
    first, second = taken(buffers), taken(buffers)
    places = [first.ctypes.data, second.ctypes.data]
    del first, second
    for _ in range(5):
        assert taken(buffers).ctypes.data in places
    assert [address for address, _, _ in library.registered] == places
    assert all(place % PAGE == 0 for place in places)
    assert {size for _, size, _ in library.registered} <= {3 * PAGE, 4 * PAGE}  # 4 if memory begins at a page
    assert {flags for _, _, flags in library.registered} == {PORTABLE}


@pytest.mark.parametrize("larger", [True, False])
def test_a_block_is_unregistered_before_its_memory_is_freed(library, larger):
    buffers = Buffers(PageLocking(lambda: library))
    size = 64 * 2**20  # the C library returns such a block to the kernel at once
    array = taken(buffers, size)
    place = array.ctypes.data
    array.fill(7)
    if larger:
        del array
        array = taken(buffers, 2 * size)
    else:
        del buffers, array  # blocks in use outlive their buffers
    assert library.ended == [(place, 7)]


def test_after_a_refusal_one_line_is_printed_and_nothing_is_registered(library, capsys):
    locking = PageLocking(lambda: library)
    first = taken(Buffers(locking))
    place = first.ctypes.data
    library.refusal = 2
    arrays = [taken(Buffers(locking)) for _ in range(3)]
    for number, array in enumerate(arrays):
        array.fill(number)
    assert [int(array[-1]) for array in arrays] == [0, 1, 2]
    assert len(library.registered) == 2
    assert library.cudaGetLastError() == 0  # no later call sees the error
    assert capsys.readouterr().err.count("\n") == 1
    del first, array, arrays
    assert [address for address, _ in library.ended] == [place]


@pytest.mark.parametrize("name", ["libcudart.so.12", "libcudnn.so.9"])
def test_the_runtime_is_one_that_is_loaded(tmp_path, monkeypatch, name):
    (tmp_path / "maps").write_text(f"7f00-7f01 r-xp 00 fd:00 7  /usr/lib/{name}\n7ffc-7ffd r-xp 00 00:00 0\n")
    monkeypatch.setattr(page_locked, "MAPS", tmp_path / "maps")
    monkeypatch.setattr(page_locked, "runtime", str)
    if "cudart" in name:
        assert load_runtime() == f"/usr/lib/{name}"
        return
    with pytest.raises(OSError, match="libcudart"):
        load_runtime()


def test_memory_of_cpus_is_never_registered(library):
    taken(Buffers())
    assert library.registered == []
