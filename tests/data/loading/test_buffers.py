import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.data.loading.buffers import ALIGNMENT, Buffers


def taken(buffers, size=1000):
    (array,) = buffers.take(((size,), np.uint8))
    return array


@given(st.lists(st.tuples(st.integers(1, 70), st.sampled_from(["uint8", "uint16", "float32"])), min_size=1))
def test_arrays_of_a_block_are_aligned_and_apart(forms):
    arrays = Buffers().take(*[((count, 3), dtype) for count, dtype in forms])
    for number, ((count, dtype), array) in enumerate(zip(forms, arrays, strict=True)):
        assert (array.shape, array.dtype) == ((count, 3), np.dtype(dtype))
        assert array.ctypes.data % ALIGNMENT == 0
        array.fill(number)
    assert all((array == number).all() for number, array in enumerate(arrays))


def test_a_block_is_used_again_once_nothing_refers_to_it():
    buffers = Buffers()
    array = taken(buffers)
    first = array.ctypes.data
    del array
    assert [taken(buffers).ctypes.data for _ in range(5)] == [first] * 5
    assert buffers.made == 1


@pytest.mark.parametrize(
    "part",
    [
        lambda array: array,
        lambda array: array[3:],
        lambda array: array[2:900].reshape(2, 449)[1][5:].view(np.int8),
        lambda array: memoryview(array)[3:],
        lambda array: np.from_dlpack(array)[7:],
        lambda array: iter(array.reshape(10, 100)),
    ],
)
def test_whatever_refers_to_a_part_of_a_block_keeps_it_from_being_used_again(part):
    buffers = Buffers()
    array = taken(buffers)
    first, kept = array.ctypes.data, part(array)
    del array
    assert taken(buffers).ctypes.data != first
    del kept
    assert first in {each.ctypes.data for each in [taken(buffers) for _ in range(2)]}


def test_a_smaller_batch_uses_the_block_of_a_larger_one_and_never_the_other_way():
    buffers = Buffers()
    place = taken(buffers, 1000).ctypes.data
    assert taken(buffers, 10).ctypes.data == place
    assert taken(buffers, 1000).ctypes.data == place
    assert buffers.made == 1
    larger = taken(buffers, 5000)
    larger.fill(1)
    assert buffers.made == 2
