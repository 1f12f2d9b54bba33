import numpy as np
import pytest

from scalestudy.data.loading.augment.parameters import draw, parameters
from scalestudy.study.augmentation import parsed

ROWS = np.arange(400)
SIZE = (40, 60)


def drawn(text, rows=ROWS, size=SIZE, seed=0, epoch=0):
    operations = parsed(text)
    return parameters(operations, draw(operations, seed, epoch, rows), size)


def test_what_is_done_to_a_row_depends_on_seed_and_epoch_and_not_on_what_else_is_done():
    alone, among = drawn("rotate"), drawn("contrast, rotate, noise")
    assert np.array_equal(alone.matrix, among.matrix)
    assert not np.array_equal(alone.matrix, drawn("rotate", epoch=1).matrix)
    assert not np.array_equal(alone.matrix, drawn("rotate", seed=1).matrix)
    assert np.array_equal(drawn("rotate", rows=np.array([7, 3])).matrix, alone.matrix[[7, 3]])


def test_flips_take_both_ways_or_one():
    for way, axes in (("horizontal", [1]), ("vertical", [0]), ("both", [0, 1])):
        signs = np.diagonal(drawn(f'flip("{way}")').matrix[:, :, :2], axis1=1, axis2=2)
        assert set(np.unique(signs[:, axes])) == {-1, 1}
        assert 0.4 < (signs[:, axes] < 0).mean() < 0.6
        assert (np.delete(signs, axes, axis=1) == 1).all()


def test_angles_factors_and_shifts_fill_their_ranges():
    matrix = drawn("rotate(30)").matrix
    angles = np.rad2deg(np.arctan2(matrix[:, 1, 0], matrix[:, 0, 0]))
    assert (-30 <= angles.min() < -28, 28 < angles.max() <= 30) == (True, True)
    factors = 1 / drawn("scale(0.5, 2)").matrix[:, 0, 0]
    assert (0.5 <= factors.min() < 0.55, 1.8 < factors.max() <= 2) == (True, True)
    assert 0.4 < (factors < 1).mean() < 0.6  # smaller and larger equally often
    shifts = drawn("shift(0.1)").matrix[:, :, 2]
    assert np.allclose(np.abs(shifts).max(axis=0), [4, 6], rtol=0.1)
    bright = drawn("brightness(0.3), contrast(0.5)")
    assert np.allclose([bright.brightness.min(), bright.brightness.max()], [-0.3, 0.3], atol=0.02)
    assert np.allclose([bright.contrast.min(), bright.contrast.max()], [0.5, 1.5], atol=0.02)


def test_a_crop_lies_within_its_image_and_has_the_share_asked_for():
    matrix = drawn("crop(0.3)").matrix
    sides = np.stack([matrix[:, 0, 0], matrix[:, 1, 1]], axis=1)
    area = sides.prod(axis=1)
    assert (area.min() >= 0.3, area.max() <= 1, area.min() < 0.33, area.max() > 0.97) == (True,) * 4
    beyond = np.abs(matrix[:, :, 2]) + sides * np.array(SIZE) / 2
    assert (beyond <= np.array(SIZE) / 2 + 1e-9).all()


def test_an_image_that_is_no_square_is_turned_by_halves_alone():
    assert set(np.unique(drawn("rotate90").matrix[:, 0, 1])) == {0}
    assert set(np.unique(drawn("rotate90", size=(40, 40)).matrix[:, 0, 1])) == {-1, 0, 1}


def test_displacements_are_normal_with_the_deviation_asked_for():
    nodes = drawn("elastic(10, 4)").displacement
    assert nodes.shape == (400, 2, 4, 4)
    assert np.allclose([nodes.mean(), nodes.std()], [0, 10], atol=0.3)


@pytest.mark.parametrize(("text", "given"), [("mixup", {}), ("noise(0.1)", {"sigma": 0.1})])
def test_nothing_else_is_done_than_what_is_asked(text, given):
    found = drawn(text)
    assert found.matrix is None
    assert found.displacement is None
    assert found.sigma == given.get("sigma", 0)
