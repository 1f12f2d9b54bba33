"""Mask files keep their class indices; overlays show them."""

import numpy as np
from PIL import Image

from scalestudy.data.images import pictures
from scalestudy.data.images.decode import read_mask


def test_a_mask_is_read_back_as_it_was_written(tmp_path):
    mask = np.random.default_rng(0).integers(0, 256, (7, 9)).astype(np.uint8)
    (tmp_path / "mask.png").write_bytes(pictures.mask_png(mask))
    assert np.array_equal(read_mask(tmp_path / "mask.png"), mask)
    assert Image.open(tmp_path / "mask.png").mode == "P"


def test_an_overlay_leaves_the_first_class_as_it_is():
    image = np.full((6, 6, 3), 100, np.uint8)
    mask = np.zeros((6, 6), np.uint8)
    mask[2:5, 2:5] = 1
    laid = pictures.overlay(image, mask)
    assert (laid[mask == 0] == 100).all()
    assert (laid[mask == 1] != 100).any(-1).all()


def test_a_difference_shows_what_was_missed_and_what_was_invented():
    truth = np.array([[0, 1, 1, 255, 2]], np.uint8)
    predicted = np.array([[1, 0, 1, 0, 1]], np.uint8)
    (row,) = pictures.difference(np.full((1, 5, 3), 200, np.uint8), truth, predicted)
    expected = [
        pictures.FALSE,
        pictures.MISSED,
        (100, 100, 100),
        pictures.UNKNOWN,
        pictures.CONFUSED,
    ]
    assert [tuple(pixel) for pixel in row.tolist()] == expected


def test_deep_images_are_shown_from_their_darkest_to_their_lightest_part():
    deep = np.linspace(1000, 2000, 64).reshape(8, 8, 1).astype(np.uint16)
    seen = pictures.to_rgb(deep)
    assert seen.dtype == np.uint8 and seen.shape == (8, 8, 3)
    assert seen.min() == 0 and seen.max() == 255
