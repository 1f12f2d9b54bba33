import numpy as np
import pytest

from scalestudy.data.columns import leaves, like, map_columns, sample_bytes

ONE = ((2, 3), np.dtype(np.uint16))
TWO = ((), np.dtype(np.float64))


def test_one_array_and_several_by_name_are_treated_alike():
    assert map_columns(lambda a, b: a + b, 1, 2) == 3
    assert map_columns(lambda a, b: a + b, {"x": 1, "y": 2}, {"y": 20, "x": 10}) == {"x": 11, "y": 22}
    assert leaves({"x": 1, "y": 2}) == [1, 2]
    assert leaves(7) == [7]
    assert like({"x": 0, "y": 0}, [1, 2]) == {"x": 1, "y": 2}
    assert like(0, [5]) == 5


def test_names_that_do_not_agree_are_an_error():
    with pytest.raises(KeyError):
        map_columns(lambda a, b: a + b, {"x": 1}, {"y": 2})


def test_a_sample_is_as_large_as_its_arrays():
    assert sample_bytes(ONE) == 12
    assert sample_bytes({"a": ONE, "b": TWO}) == 20
