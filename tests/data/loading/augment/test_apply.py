import numpy as np
import pytest

from scalestudy.data.loading.augment.parameters import Parameters, draw, parameters
from scalestudy.data.loading.augment.reader import apply
from scalestudy.study.augmentation import parsed


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
    "text", ['flip("both")', "rotate90", "rotate(40)", "scale", "shift", "crop", "elastic(3)",
             "rotate, elastic, crop"],
)  # fmt: skip
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
