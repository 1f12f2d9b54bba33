"""One format for all images of a set, without loss of depth; the conversion is recorded."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.data.images.decode import Header
from scalestudy.data.images.form import (
    common_form,
    covering,
    fit_size,
    resize_image,
    resize_mask,
    store_as,
)
from scalestudy.util.errors import UserError


def header(name, dtype, channels=1):
    return Header(Path(name), (4, 4), np.dtype(dtype), channels)


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
        common_form([header("a", "f4")], None).of(
            np.array([[[np.nan]]], np.float32), "a"
        )


@pytest.mark.parametrize("dtype", ["<u2", ">i8", "?"])
def test_whole_numbers_that_fit_are_exact(dtype):
    assert store_as(np.array([0, 1], dtype), np.dtype(np.uint8), "x").tolist() == [0, 1]


@pytest.mark.parametrize(
    ("array", "dtype", "expected", "received"),
    [
        *(
            (np.array([1, value]), "f4", "3.4e+38", f"{abs(value):.3g}")
            for value in (1e39, -1e39, 1e300)
        ),
        *(
            (np.array([value], dtype), "f4", "finite", "")
            for value in (np.nan, -np.inf)
            for dtype in ("f2", "f8")
        ),
        (np.array([0, 256]), "u1", "255", "256"),
        (np.array([-1, 0]), "u1", "255", "0"),
        (np.array([2**64 - 1], np.uint64), "i4", str(2**31 - 1), str(2**64 - 1)),
        (np.array([2**31]), "i4", str(2**31 - 1), str(2**31)),
        (np.array([1.5]), "i4", str(2**31 - 1), "1.5"),
        (np.array([1j]), "f4", "real numbers", ""),
        (np.array(["1"]), "f4", "real numbers", ""),
        (np.array([(1, 2)], "i4,f4"), "f4", "real numbers", ""),
    ],
)
def test_numbers_that_a_type_cannot_hold_are_refused_and_never_wrap_around(
    array, dtype, expected, received
):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserError) as refused:
            store_as(array, np.dtype(dtype), "x[0]")
    assert expected in refused.value.expected
    assert "x[0]" in refused.value.received and received in refused.value.received


length = st.integers(1, 90)
size = st.tuples(length, length)


@given(size, size)
def test_results_have_the_size_asked_for_and_masks_no_new_values_and_crops_no_padding(
    own, into
):
    mask = (np.arange(own[0] * own[1]).reshape(own) % 3).astype(np.uint8)
    image = resize_image(mask[:, :, None] * 80, into)
    assert image.shape == (*into, 1)
    assert image.dtype == np.uint8
    resized = resize_mask(mask, into)
    assert resized.shape == into
    assert set(np.unique(resized)) <= {0, 1, 2, 255}
    padding = resized == 255
    assert padding.sum() == into[0] * into[1] - np.prod(fit_size(own, into))
    assert not image[padding].any()
    height, width = fit_size(own, into)
    assert 1 <= height <= into[0] and 1 <= width <= into[1]
    assert height == into[0] or width == into[1]
    ones = np.ones(own, np.uint8)
    assert (resize_mask(ones, into, "crop") == np.ones(into)).all()
    assert (resize_image(ones[:, :, None], into, "crop") == 1).all()
    height, width = covering(own, into)
    assert (height == into[0] and width >= into[1]) or (
        width == into[1] and height >= into[0]
    )


def test_sixteen_bits_keep_their_depth():
    ramp = np.linspace(0, 65535, 64).astype(np.uint16)[None, :, None].repeat(64, axis=0)
    half = resize_image(ramp, (32, 32))
    assert half.dtype == np.uint16
    assert len(np.unique(half)) == 32
    assert np.abs(half[0, :, 0] - ramp[0].reshape(32, 2).mean(axis=1)).max() < 1000


def test_shrinking_averages_instead_of_skipping_pixels():
    checks = (np.indices((64, 64)).sum(axis=0) % 2 * 255).astype(np.uint8)[:, :, None]
    assert np.abs(resize_image(checks, (8, 8)).astype(int) - 127).max() < 6


@pytest.mark.parametrize("rest", [1, 3, 5, 7])
def test_an_odd_rest_goes_below_and_to_the_right(rest):
    tall, wide = np.ones((8, 4), np.uint8), np.ones((4, 8), np.uint8)
    before = [rest // 2 + number for number in range(4)]
    assert np.flatnonzero(resize_mask(tall, (8, 4 + rest))[0] == 1).tolist() == before
    assert (
        np.flatnonzero(resize_mask(wide, (4 + rest, 8))[:, 0] == 1).tolist() == before
    )
    assert (
        np.flatnonzero(resize_image(wide[:, :, None], (4 + rest, 8))[:, 0, 0]).tolist()
        == before
    )


def test_cropping_takes_the_centre_and_cuts_the_larger_half_below_and_to_the_right():
    tall = np.arange(9, dtype=np.uint8)[:, None].repeat(4, axis=1)
    assert resize_mask(tall, (4, 4), "crop")[:, 0].tolist() == [2, 3, 4, 5]
    assert resize_mask(tall.T, (4, 4), "crop")[0].tolist() == [2, 3, 4, 5]
