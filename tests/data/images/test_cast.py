"""Numbers keep their meaning in the type that they are stored in, or are refused."""

import warnings

import numpy as np
import pytest

from scalestudy.data.images.form import stored_as
from scalestudy.util.errors import UserError


def refusal(array, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserError) as refused:
            stored_as(array, np.dtype(dtype), "x[0]")
    assert "x[0]" in refused.value.received
    return refused.value


@pytest.mark.parametrize("dtype", ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8", np.longdouble])
def test_floats_of_any_width_and_byte_order_become_float32(dtype):
    stored = stored_as(np.array([0.5, -2], dtype), np.dtype(np.float32), "x")
    assert (stored.dtype, stored.tolist()) == (np.float32, [0.5, -2])


@pytest.mark.parametrize("dtype", ["<u2", ">u2", "<i8", ">i8", "u1", "?"])
def test_whole_numbers_that_fit_are_exact(dtype):
    assert stored_as(np.array([0, 1], dtype), np.dtype(np.uint8), "x").tolist() == [0, 1]


def test_what_is_of_the_type_is_not_copied():
    array = np.arange(4, dtype=np.uint8)
    assert stored_as(array, array.dtype, "x") is array


@pytest.mark.parametrize("value", [1e39, -1e39, 1e300])
def test_what_float32_cannot_hold_is_refused_after_the_cast(value):
    error = refusal(np.array([1, value]), np.float32)
    assert f"{abs(value):.3g}" in error.received
    assert "3.4e+38" in error.expected


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_nan_and_infinity_are_refused(value, dtype):
    assert "finite" in refusal(np.array([value], dtype), np.float32).expected


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.array([0, 256]), np.uint8),
        (np.array([-1, 0]), np.uint8),
        (np.array([2**64 - 1], np.uint64), np.int32),
        (np.array([2**31]), np.int32),
        (np.array([1.5]), np.int32),
    ],
)
def test_whole_numbers_never_wrap_around(array, dtype):
    error = refusal(array, dtype)
    assert str(np.iinfo(dtype).max) in error.expected
    assert str(array.max()) in error.received


@pytest.mark.parametrize("array", [np.array([1j]), np.array(["1"]), np.array([(1, 2)], "i4,f4")])
def test_what_is_no_real_number_is_refused(array):
    assert "real numbers" in refusal(array, np.float32).expected
