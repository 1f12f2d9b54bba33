"""Rows of another set as a model is to see them."""

import numpy as np
import pytest

from scalestudy.features.predict.worker import renumbered
from scalestudy.training.reading import in_channels


def test_classes_of_another_order_are_renumbered():
    targets = np.array([0, 1, 2, 1], np.int32)
    found = renumbered(targets, [2, 0, 1], masks=False)
    assert found.tolist() == [2, 0, 1, 0]
    assert found.dtype == np.int32
    assert renumbered(targets, [0, 1, 2], masks=False) is targets


def test_what_is_ignored_in_masks_stays_so():
    masks = np.array([[[0, 1, 255]]], np.uint8)
    assert renumbered(masks, [1, 0], masks=True).tolist() == [[[1, 0, 255]]]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_grey_is_repeated_and_colours_become_their_luma(dtype):
    grey = np.full((2, 4, 4, 1), 100, dtype)
    assert np.array_equal(in_channels(grey, 3), np.full((2, 4, 4, 3), 100))
    assert in_channels(grey, 3).dtype == dtype
    assert np.allclose(in_channels(in_channels(grey, 3), 1), grey)
    assert in_channels(grey, 1) is grey
