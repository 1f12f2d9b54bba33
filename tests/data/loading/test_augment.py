"""Training samples are augmented by seed, epoch and row alone, and masks with their images."""

import numpy as np
import pytest

from scalestudy.config.augmentation import parsed
from scalestudy.data.loading.augment import Augmented, apply
from scalestudy.data.loading.loader import Loader, Stored
from scalestudy.data.loading.slices import epoch_order
from scalestudy.data.loading.transforms import Parameters, draw, parameters

COUNT = 24
IMAGES = np.random.default_rng(0).integers(0, 255, (COUNT, 12, 12, 2), np.uint8)
LABELS = np.arange(COUNT, dtype=np.int32)
MASKS = np.random.default_rng(1).integers(0, 3, (COUNT, 12, 12)).astype(np.uint8)
ALL = "flip, rotate, elastic(2), brightness, noise"


def reader(text, targets=LABELS, seed=0):
    return Augmented(
        Stored(IMAGES, targets),
        parsed(text),
        seed=seed,
        scale=1 / 255,
    )


def epoch(text, workers, batch=5, number=0, **more):
    """Return the samples of an epoch in order, read by `workers` workers."""
    source, order = reader(text, **more), epoch_order(np.arange(20), 0, number)
    calls = [
        list(
            Loader(source, slices=[(rank, rank + 1)], workers=workers, global_batch=batch).epoch(
                order, epoch=number
            )
        )
        for rank in range(workers)
    ]
    return [part for step in zip(*calls, strict=True) for (part,) in step if part.count]


def flat(parts, of):
    return np.concatenate([of(part)[0, : part.count] for part in parts])


@pytest.mark.parametrize("targets", [LABELS, MASKS], ids=["classes", "masks"])
def test_samples_are_changed_alike_however_many_workers_read_them(targets):
    alone, five = (epoch(ALL, workers, targets=targets) for workers in (1, 5))
    assert np.array_equal(flat(alone, lambda p: p.inputs), flat(five, lambda p: p.inputs))
    assert np.array_equal(flat(alone, lambda p: p.targets), flat(five, lambda p: p.targets))


def test_an_epoch_that_is_taken_up_in_its_middle_reads_the_same():
    source, order = reader(ALL), epoch_order(np.arange(20), 0, 3)

    def batches(first):
        loader = Loader(source, slices=[(0, 1)], workers=1, global_batch=5)
        return [call[0].inputs.copy() for call in loader.epoch(order, first, epoch=3)]

    assert all(np.array_equal(a, b) for a, b in zip(batches(0)[2:], batches(2), strict=True))


def test_each_epoch_and_each_seed_changes_anew():
    first, second, other = epoch(ALL, 1), epoch(ALL, 1, number=1), epoch(ALL, 1, seed=1)
    pictures = [
        flat(parts, lambda p: p.inputs)[np.argsort(flat(parts, lambda p: p.targets))]
        for parts in (first, second, other)
    ]
    assert not np.array_equal(pictures[0], pictures[1])
    assert not np.array_equal(pictures[0], pictures[2])


def test_without_an_epoch_samples_stay_as_they_are():
    source = reader(ALL)
    loader = Loader(source, slices=[(0, 1)], workers=1, global_batch=4)
    part = loader.read(np.arange(4), [(0, 4)])[0]
    assert np.array_equal(part.inputs[0], IMAGES[:4])
    assert part.targets[0].tolist() == [0, 1, 2, 3]


def changed(text, image, masks=(), scale=1 / 255, row=3):
    operations = parsed(text)
    what = parameters(operations, draw(operations, 0, 0, np.array([row])), image.shape[:2])
    image, masks = image.copy(), [mask.copy() for mask in masks]
    apply(image, masks, 0, what, scale)
    return image, masks


@pytest.fixture
def blob():
    """An image whose mask is its bright part, smooth enough for shifts by fractions of a pixel."""
    rows, columns = np.indices((48, 64))
    image = np.clip(255 - 6 * np.hypot(rows - 20, columns - 40), 0, 255).astype(np.uint8)[:, :, None]
    return image, (image[:, :, 0] > 127).astype(np.uint8)


@pytest.mark.parametrize("row", range(4))
@pytest.mark.parametrize(
    "text",
    [
        'flip("both")',
        "rotate90",
        "rotate(40)",
        "scale",
        "shift",
        "crop",
        "elastic(3)",
        "rotate, elastic, crop",
    ],
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
    once, again, other = (changed("noise(0.1)", image, scale=1.0, row=row)[0] for row in (1, 1, 2))
    assert np.array_equal(once, again)
    assert not np.array_equal(once, other)
    assert np.allclose([once.mean(), once.std()], [0.5, 0.1], atol=0.01)
