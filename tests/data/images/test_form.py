"""One format for all images of a set, without loss of depth; the conversion is recorded."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from scalestudy.data.images.decode import Header
from scalestudy.data.images.form import common_form, stored_as
from scalestudy.util.errors import UserError


def header(name, dtype, channels=1):
    return Header(Path(name), (4, 4), np.dtype(dtype), channels, (4, 4), False)


@pytest.mark.parametrize(
    ("types", "stored", "scale"),
    [
        (("u1", "u1"), "u1", 1 / 255),
        (("u2", "u2"), "u2", 1 / 65535),
        (("u1", "u2"), "u2", 1 / 65535),
        (("f4", "f4"), "f4", 1.0),
        (("f8", "f8"), "f4", 1.0),
        (("i2", "i2"), "f4", 1.0),
    ],
)
def test_a_set_takes_the_smallest_type_that_holds_all(types, stored, scale):
    form = common_form([header(f"{i}.tif", each) for i, each in enumerate(types)], None)
    assert (form.dtype, form.scale) == (np.dtype(stored), scale)


def test_eight_bits_in_a_set_of_sixteen_mean_the_same_to_a_model():
    form = common_form([header("a", "u1"), header("b", "u2")], None)
    values = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
    wide = form.of(values, "a")
    assert wide.dtype == np.uint16
    assert np.array_equal(wide / 65535, values / 255)
    deep = np.full((2, 2, 1), 700, np.uint16)
    assert form.of(deep, "b") is deep


def test_a_range_from_zero_leaves_whole_numbers_as_they_are():
    form = common_form([header("a", "u2")], (0, 4095))
    assert (form.dtype, form.scale) == (np.dtype(np.uint16), 1 / 4095)


@pytest.mark.parametrize("dtype", ["u2", "i2", "f4"])
def test_any_other_range_becomes_zero_to_one(dtype):
    form = common_form([header("a", dtype)], (100, 300))
    stored = form.of(np.array([[[100], [200], [300], [500]]], dtype), "a")
    assert (stored.dtype, form.scale) == (np.float32, 1.0)
    assert stored.ravel().tolist() == [0, 0.5, 1, 2]


@pytest.mark.parametrize(
    ("headers", "received"),
    [
        ([header("a", "u1"), header("b", "f4")], "a of uint8 and b of float32"),
        ([header("a", "u2"), header("b", "i2")], "a of uint16 and b of int16"),
        ([header("a", "u1", 3), header("b", "u1", 4)], "a with 3 and b with 4"),
        ([header("a", "u1", 1), header("b", "u1", 2)], "a with 1 and b with 2"),
    ],
)
def test_what_has_no_common_form_is_refused_by_name(headers, received):
    with pytest.raises(UserError) as refused:
        common_form(headers, None)
    assert received in refused.value.received


def test_what_float32_cannot_hold_is_refused():
    form = common_form([header("a", "u4")], None)
    assert form.of(np.array([[[2**24]]], np.uint32), "a").item() == 2**24
    with pytest.raises(UserError, match=r"a, with values 16777217\.\.16777217"):
        form.of(np.array([[[2**24 + 1]]], np.uint32), "a")
    with pytest.raises(UserError, match="finite"):
        common_form([header("a", "f4")], None).of(np.array([[[np.nan]]], np.float32), "a")


def refusal_of(array, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserError) as refused:
            stored_as(array, np.dtype(dtype), "x[0]")
    assert "x[0]" in refused.value.received
    return refused.value


@pytest.mark.parametrize("dtype", ["<u2", ">i8", "?"])
def test_whole_numbers_that_fit_are_exact(dtype):
    assert stored_as(np.array([0, 1], dtype), np.dtype(np.uint8), "x").tolist() == [0, 1]


@pytest.mark.parametrize("value", [1e39, -1e39, 1e300])
def test_what_float32_cannot_hold_is_refused_after_the_cast(value):
    error = refusal_of(np.array([1, value]), np.float32)
    assert f"{abs(value):.3g}" in error.received
    assert "3.4e+38" in error.expected


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_nan_and_infinity_are_refused(value):
    for dtype in (np.float16, np.float64):
        assert "finite" in refusal_of(np.array([value], dtype), np.float32).expected


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
    error = refusal_of(array, dtype)
    assert str(np.iinfo(dtype).max) in error.expected
    assert str(array.max()) in error.received


@pytest.mark.parametrize("array", [np.array([1j]), np.array(["1"]), np.array([(1, 2)], "i4,f4")])
def test_what_is_no_real_number_is_refused(array):
    assert "real numbers" in refusal_of(array, np.float32).expected
