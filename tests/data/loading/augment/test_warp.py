import numpy as np
import pytest
from scipy import ndimage

from scalestudy.data.loading.augment.warp import (
    bicubic,
    coordinates,
    mirrored,
    nearest,
    sampled,
    turned,
    whole,
)

TURNS = [(1, 0, 0, 1), (-1, 0, 0, 1), (1, 0, 0, -1), (0, 1, -1, 0), (0, -1, 1, 0), (0, 1, 1, 0)]
RIGHT = [np.array([[a, b, 0], [c, d, 0]], float) for a, b, c, d in TURNS]


@pytest.mark.parametrize("matrix", RIGHT, ids=str)
def test_right_angles_and_mirrors_move_pixels_without_changing_them(matrix):
    image = np.random.default_rng(0).integers(0, 255, (7, 7, 3), np.uint8)
    at = coordinates(matrix, None, (7, 7))
    assert whole(matrix, (7, 7))
    assert np.array_equal(turned(image, matrix), sampled(image, at).astype(np.uint8))
    assert np.array_equal(turned(image[:, :, 0], matrix), nearest(image[:, :, 0], at))


def test_a_quarter_turn_fits_no_rectangle_and_a_small_one_no_pixels():
    assert not whole(RIGHT[3], (4, 6))
    assert whole(RIGHT[1], (4, 6))
    assert not whole(np.array([[0.9, 0, 0], [0, 1, 0]]), (4, 4))
    assert not whole(np.array([[1, 0, 1.0], [0, 1, 0]]), (4, 4))


def test_a_turn_is_that_of_scipy():
    image = np.random.default_rng(1).random((20, 30)).astype(np.float32)
    angle = np.deg2rad(20)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    at = coordinates(np.c_[turn, [0, 0]], None, (20, 30))
    # SciPy rotates in the opposite direction about the same centre.
    expected = ndimage.rotate(image, -20, reshape=False, order=1, mode="mirror")
    assert np.allclose(sampled(image[:, :, None], at)[:, :, 0], expected, atol=1e-5)


def test_beyond_the_border_lies_the_reflection():
    assert mirrored(np.arange(-4, 8), 4).tolist() == [2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1]
    assert mirrored(np.array([-3, 0, 5]), 1).tolist() == [0, 0, 0]
    image = np.arange(5.0)[:, None, None] * np.ones((1, 2, 1))
    shift = coordinates(np.array([[1, 0, -2.0], [0, 1, 0]]), None, (5, 2))
    assert sampled(image, shift)[:, 0, 0].tolist() == [2, 1, 0, 1, 2]
    assert nearest(image[:, :, 0].astype(np.uint8), shift)[:, 0].tolist() == [2, 1, 0, 1, 2]


def test_bicubic_weights_keep_nodes_and_straight_lines():
    weights = bicubic(13, 4)
    assert np.allclose(weights.sum(axis=1), 1)
    assert np.allclose(weights[::4], np.eye(4))
    assert np.allclose((bicubic(31, 16) @ np.arange(16.0))[2:-2], np.linspace(0, 15, 31)[2:-2])


def test_an_equal_displacement_of_all_nodes_is_a_shift():
    image = np.random.default_rng(2).random((9, 9, 1)).astype(np.float32)
    displacement = np.stack([np.full((3, 3), 1.0), np.full((3, 3), 2.0)])
    at = coordinates(None, displacement, (9, 9))
    assert np.allclose(sampled(image, at)[:-1, :-2], image[1:, 2:])
