"""Fit images into a size: aspect ratio kept, centred, inputs padded with 0 and masks with 255."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.data.images.resize import covering, fitted, resize_image, resize_mask

length = st.integers(1, 90)
size = st.tuples(length, length)


@given(size, size)
def test_a_fitted_size_touches_two_opposite_sides_and_stays_inside(own, into):
    height, width = fitted(own, into)
    assert 1 <= height <= into[0]
    assert 1 <= width <= into[1]
    assert height == into[0] or width == into[1]


@given(size, size)
def test_results_have_the_size_asked_for_and_masks_no_new_values(own, into):
    mask = (np.arange(own[0] * own[1]).reshape(own) % 3).astype(np.uint8)
    image = resize_image(mask[:, :, None] * 80, into)
    assert image.shape == (*into, 1)
    assert image.dtype == np.uint8
    resized = resize_mask(mask, into)
    assert resized.shape == into
    assert set(np.unique(resized)) <= {0, 1, 2, 255}
    padding = resized == 255
    assert padding.sum() == into[0] * into[1] - np.prod(fitted(own, into))
    assert not image[padding].any()


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
    assert np.flatnonzero(resize_mask(wide, (4 + rest, 8))[:, 0] == 1).tolist() == before
    assert np.flatnonzero(resize_image(wide[:, :, None], (4 + rest, 8))[:, 0, 0]).tolist() == before


@given(size, size)
def test_a_cropped_image_has_the_size_asked_for_and_no_padding(own, into):
    mask = np.ones(own, np.uint8)
    assert (resize_mask(mask, into, "crop") == np.ones(into)).all()
    assert (resize_image(mask[:, :, None], into, "crop") == 1).all()
    height, width = covering(own, into)
    assert (height == into[0] and width >= into[1]) or (width == into[1] and height >= into[0])


def test_cropping_takes_the_centre_and_cuts_the_larger_half_below_and_to_the_right():
    tall = np.arange(9, dtype=np.uint8)[:, None].repeat(4, axis=1)
    assert resize_mask(tall, (4, 4), "crop")[:, 0].tolist() == [2, 3, 4, 5]
    assert resize_mask(tall.T, (4, 4), "crop")[0].tolist() == [2, 3, 4, 5]
