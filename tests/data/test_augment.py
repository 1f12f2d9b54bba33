"""Parameters of augmentation, their random numbers, and the geometry of images and masks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage, stats

from scalestudy.config.operations import operations_of
from scalestudy.data.augment import (
    Augmented,
    Parameters,
    apply,
    coordinates,
    draw,
    nearest,
    parameters,
    reflect,
    rotate,
    sampled,
    uniforms,
    whole,
)
from scalestudy.data.loader import Loader, Stored
from scalestudy.data.samples import epoch_order

ROWS = np.arange(400)
SIZE = (40, 60)


def drawn(text, rows=ROWS, size=SIZE, seed=0, epoch=0):
    operations = operations_of(text)
    return parameters(operations, draw(operations, seed, epoch, rows), size)


def test_what_is_done_to_a_row_depends_on_seed_and_epoch_and_not_on_what_else_is_done():
    alone, among = drawn("rotate"), drawn("contrast, rotate, noise")
    assert np.array_equal(alone.matrix, among.matrix)
    assert not np.array_equal(alone.matrix, drawn("rotate", epoch=1).matrix)
    assert not np.array_equal(alone.matrix, drawn("rotate", seed=1).matrix)
    assert np.array_equal(
        drawn("rotate", rows=np.array([7, 3])).matrix, alone.matrix[[7, 3]]
    )


def test_flips_take_both_ways_or_one():
    for way, axes in (("horizontal", [1]), ("vertical", [0]), ("both", [0, 1])):
        signs = np.diagonal(drawn(f'flip("{way}")').matrix[:, :, :2], axis1=1, axis2=2)
        assert set(np.unique(signs[:, axes])) == {-1, 1}
        assert 0.4 < (signs[:, axes] < 0).mean() < 0.6
        assert (np.delete(signs, axes, axis=1) == 1).all()


def test_angles_and_light_fill_their_ranges():
    matrix = drawn("rotate(30)").matrix
    angles = np.rad2deg(np.arctan2(matrix[:, 1, 0], matrix[:, 0, 0]))
    assert (-30 <= angles.min() < -28, 28 < angles.max() <= 30) == (True, True)
    bright = drawn("brightness(0.3), contrast(0.5)")
    assert np.allclose(
        [bright.brightness.min(), bright.brightness.max()], [-0.3, 0.3], atol=0.02
    )
    assert np.allclose(
        [bright.contrast.min(), bright.contrast.max()], [0.5, 1.5], atol=0.02
    )


def test_a_crop_lies_within_its_image_and_has_the_share_asked_for():
    matrix = drawn("crop(0.3)").matrix
    sides = np.stack([matrix[:, 0, 0], matrix[:, 1, 1]], axis=1)
    area = sides.prod(axis=1)
    assert (
        area.min() >= 0.3,
        area.max() <= 1,
        area.min() < 0.33,
        area.max() > 0.97,
    ) == (True,) * 4
    beyond = np.abs(matrix[:, :, 2]) + sides * np.array(SIZE) / 2
    assert (beyond <= np.array(SIZE) / 2 + 1e-9).all()


def test_an_image_that_is_no_square_is_turned_by_halves_alone():
    assert set(np.unique(drawn("rotate90").matrix[:, 0, 1])) == {0}
    assert set(np.unique(drawn("rotate90", size=(40, 40)).matrix[:, 0, 1])) == {
        -1,
        0,
        1,
    }


@pytest.mark.parametrize(
    ("text", "given"), [("contrast", {}), ("noise(0.1)", {"sigma": 0.1})]
)
def test_nothing_else_is_done_than_what_is_asked(text, given):
    found = drawn(text)
    assert found.matrix is None
    assert found.sigma == given.get("sigma", 0)


TURNS = [
    (1, 0, 0, 1),
    (-1, 0, 0, 1),
    (1, 0, 0, -1),
    (0, 1, -1, 0),
    (0, -1, 1, 0),
    (0, 1, 1, 0),
]
RIGHT = [np.array([[a, b, 0], [c, d, 0]], float) for a, b, c, d in TURNS]


@pytest.mark.parametrize("matrix", RIGHT, ids=str)
def test_right_angles_and_mirrors_move_pixels_without_changing_them(matrix):
    image = np.random.default_rng(0).integers(0, 255, (7, 7, 3), np.uint8)
    at = coordinates(matrix, (7, 7))
    assert whole(matrix, (7, 7))
    assert np.array_equal(rotate(image, matrix), sampled(image, at).astype(np.uint8))
    assert np.array_equal(rotate(image[:, :, 0], matrix), nearest(image[:, :, 0], at))


def test_a_quarter_turn_fits_no_rectangle_and_a_small_one_no_pixels():
    assert not whole(RIGHT[3], (4, 6))
    assert whole(RIGHT[1], (4, 6))
    assert not whole(np.array([[0.9, 0, 0], [0, 1, 0]]), (4, 4))
    assert not whole(np.array([[1, 0, 1.0], [0, 1, 0]]), (4, 4))


def test_a_turn_is_that_of_scipy():
    image = np.random.default_rng(1).random((20, 30)).astype(np.float32)
    angle = np.deg2rad(20)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    at = coordinates(np.c_[turn, [0, 0]], (20, 30))
    # SciPy rotates in the opposite direction about the same centre.
    expected = ndimage.rotate(image, -20, reshape=False, order=1, mode="mirror")
    assert np.allclose(sampled(image[:, :, None], at)[:, :, 0], expected, atol=1e-5)


def test_beyond_the_border_lies_the_reflection():
    assert reflect(np.arange(-4, 8), 4).tolist() == [2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1]
    assert reflect(np.array([-3, 0, 5]), 1).tolist() == [0, 0, 0]
    image = np.arange(5.0)[:, None, None] * np.ones((1, 2, 1))
    shift = coordinates(np.array([[1, 0, -2.0], [0, 1, 0]]), (5, 2))
    assert sampled(image, shift)[:, 0, 0].tolist() == [2, 1, 0, 1, 2]
    assert nearest(image[:, :, 0].astype(np.uint8), shift)[:, 0].tolist() == [
        2,
        1,
        0,
        1,
        2,
    ]


@given(
    st.integers(0, 2**36),
    st.integers(0, 10**6),
    st.lists(st.integers(0, 10**9), min_size=1, max_size=8),
)
def test_a_rows_numbers_do_not_depend_on_the_rows_beside_it(seed, epoch, rows):
    together = uniforms(seed, epoch, np.array(rows), 3)
    for row, numbers in zip(rows, together, strict=True):
        assert uniforms(seed, epoch, np.array([row]), 3).tolist() == [numbers.tolist()]
    assert ((together > 0) & (together < 1)).all()


def test_seeds_epochs_rows_and_places_draw_apart():
    drawn = [
        uniforms(seed, epoch, np.arange(50), 4).ravel()
        for seed in range(3)
        for epoch in range(3)
    ]
    assert len(np.unique(np.concatenate(drawn))) == 9 * 200


def test_the_numbers_are_uniform_and_uncorrelated():
    numbers = uniforms(1, 2, np.arange(20_000), 4)
    assert stats.kstest(numbers.ravel(), "uniform").pvalue > 0.001
    beside = [
        np.corrcoef(numbers[:, 0], numbers[:, 1]),
        np.corrcoef(numbers[:-1, 0], numbers[1:, 0]),
    ]
    beside.append(
        np.corrcoef(numbers[:, 0], uniforms(1, 3, np.arange(20_000), 1)[:, 0])
    )
    assert all(abs(each[0, 1]) < 0.03 for each in beside)


def test_the_numbers_are_the_same_on_every_machine_and_in_every_release():
    assert uniforms(7, 3, np.array([0, 41]), 2).round(12).tolist() == [
        [0.284794570576, 0.223446919839],
        [0.023072698597, 0.268476807189],
    ]


COUNT = 24
IMAGES = np.random.default_rng(0).integers(0, 255, (COUNT, 12, 12, 2), np.uint8)
LABELS = np.arange(COUNT, dtype=np.int32)
MASKS = np.random.default_rng(1).integers(0, 3, (COUNT, 12, 12)).astype(np.uint8)
ALL = "flip, rotate, crop, brightness, noise"


def reader(text, targets=LABELS):
    return Augmented(
        Stored(IMAGES, targets), operations_of(text), seed=0, scale=1 / 255
    )


def epoch(text, workers, first=0, **more):
    """Return the samples of an epoch in order from its step `first` on, read by `workers` workers."""
    source, order = reader(text, **more), epoch_order(np.arange(20), 0, 3)
    loaders = [
        Loader(source, slices=[(rank, rank + 1)], workers=workers, global_batch=5)
        for rank in range(workers)
    ]
    calls = [list(loader.epoch(order, first, epoch=3)) for loader in loaders]
    return [part for step in zip(*calls, strict=True) for (part,) in step if part.count]


def flat(parts, of):
    return np.concatenate([of(part)[0, : part.count] for part in parts])


@pytest.mark.parametrize("targets", [LABELS, MASKS], ids=["classes", "masks"])
def test_samples_are_changed_alike_by_any_number_of_workers_and_from_any_step_on(
    targets,
):
    alone, five = (epoch(ALL, workers, targets=targets) for workers in (1, 5))
    for of in (lambda part: part.inputs, lambda part: part.targets):
        assert np.array_equal(flat(alone, of), flat(five, of))
        assert np.array_equal(
            flat(alone[2:], of), flat(epoch(ALL, 1, 2, targets=targets), of)
        )


def test_without_an_epoch_samples_stay_as_they_are():
    source = reader(ALL)
    loader = Loader(source, slices=[(0, 1)], workers=1, global_batch=4)
    part = loader.read(np.arange(4), [(0, 4)])[0]
    assert np.array_equal(part.inputs[0], IMAGES[:4])
    assert part.targets[0].tolist() == [0, 1, 2, 3]


def changed(text, image, masks=(), scale=1 / 255, row=3):
    operations = operations_of(text)
    what = parameters(
        operations, draw(operations, 0, 0, np.array([row])), image.shape[:2]
    )
    image, masks = image.copy(), [mask.copy() for mask in masks]
    apply(image, masks, 0, what, scale)
    return image, masks


@pytest.fixture
def blob():
    """An image whose mask is its bright part, smooth enough for shifts by fractions of a pixel."""
    rows, columns = np.indices((48, 64))
    image = np.clip(255 - 6 * np.hypot(rows - 20, columns - 40), 0, 255).astype(
        np.uint8
    )[:, :, None]
    return image, (image[:, :, 0] > 127).astype(np.uint8)


@pytest.mark.parametrize("row", range(4))
@pytest.mark.parametrize(
    "text", ['flip("both")', "rotate90", "rotate(40)", "crop", "rotate, crop"]
)
def test_a_mask_moves_with_its_image(text, row, blob):
    image, (mask,) = changed(text, blob[0], [blob[1]], row=row)
    bright = image[:, :, 0] > 127
    assert (mask == bright).mean() > 0.97
    assert set(np.unique(mask)) <= {0, 1}


def test_light_leaves_masks_where_they_are_and_is_rounded_once(blob):
    what = Parameters(contrast=np.array([0.5]), brightness=np.array([0.1]))
    image, mask = blob[0].copy(), blob[1].copy()
    apply(image, [mask], 0, what, 1 / 255)
    mean = blob[0].mean()
    expected = np.rint((blob[0].astype(float) - mean) * 0.5 + mean + 25.5)
    assert np.abs(image - expected.clip(0, 255)).max() <= 1
    assert np.array_equal(mask, blob[1])


def test_integers_are_cut_off_at_black_and_white_and_floats_are_not():
    what = Parameters(brightness=np.array([0.9]))
    for dtype, top in ((np.uint8, 255), (np.uint16, 65535), (np.uint8, 16)):
        image = np.full((4, 4, 1), top // 2, dtype)
        apply(image, [], 0, what, 1 / top)
        assert (image == top).all()
    image = np.full((4, 4, 1), 0.5, np.float32)
    apply(image, [], 0, what, 1.0)
    assert np.allclose(image, 1.4)


def test_noise_has_the_deviation_asked_for_and_repeats():
    image = np.full((64, 64, 1), 0.5, np.float32)
    once, again, other = (
        changed("noise(0.1)", image, scale=1.0, row=row)[0] for row in (1, 1, 2)
    )
    assert np.array_equal(once, again)
    assert not np.array_equal(once, other)
    assert np.allclose([once.mean(), once.std()], [0.5, 0.1], atol=0.01)
