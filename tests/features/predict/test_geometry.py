"""An image comes back as it was sent, wherever a model was shown all of it."""

import numpy as np
import pytest

from model_records import record
from scalestudy.features.predict.geometry import Tiled, Whole, placing

SIZES = [(8, 8), (8, 16), (24, 10), (33, 57), (5, 31), (3, 3)]


def smooth(size: tuple[int, int]) -> np.ndarray:
    """A ramp in both directions, which resizing keeps."""
    y, x = np.mgrid[: size[0], : size[1]].astype(np.float32)
    return np.stack([(y + 0.5) / size[0], (x + 0.5) / size[1]], axis=-1)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("way", ["pad", "stretch"])
def test_what_was_resized_comes_back_at_its_place_and_size(size, way):
    image = smooth(size)
    each = Whole(size, (32, 32), way)
    inputs = each.cut(image)
    assert inputs.shape == (1, 32, 32, 2)
    back = each.joined(inputs)
    assert back.shape == image.shape
    inner = back[1:-1, 1:-1] - image[1:-1, 1:-1]
    assert np.abs(inner).max(initial=0) < 2 / min(*size, 32)


@pytest.mark.parametrize("size", SIZES)
def test_what_was_cropped_is_unknown_around_what_was_seen(size):
    image = smooth(size)
    each = Whole(size, (32, 32), "crop")
    back = each.joined(each.cut(image))
    assert back.shape == image.shape
    seen = ~np.isnan(back).any(-1)
    assert seen.any()
    assert np.abs(back[seen] - image[seen]).max() < 3 / min(*size, 32)
    ratio = min(size) / max(size)
    assert seen.mean() == pytest.approx(ratio, abs=0.15)


@pytest.mark.parametrize("size", [*SIZES, (64, 100), (9, 9)])
@pytest.mark.parametrize("overlap", [0, 3])
def test_tiles_keep_every_pixel_as_it_is(size, overlap):
    image = np.random.default_rng(0).random((*size, 3), np.float32)
    each = Tiled(size, (8, 8), overlap)
    inputs = each.cut(image)
    assert inputs.shape[1:] == (8, 8, 3)
    assert np.array_equal(each.joined(inputs), image)


def test_an_image_of_the_models_size_is_not_touched():
    image = np.random.default_rng(0).random((8, 8, 1), np.float32)
    each = placing((8, 8), record())
    assert each.told == ""
    assert np.array_equal(each.joined(each.cut(image)), image)


@pytest.mark.parametrize(
    ("size", "data", "kind", "told"),
    [
        ((20, 30), {}, "masks", "cut into"),
        ((5, 5), {}, "masks", "padded to 8 x 8"),
        ((20, 30), {"image_size": [8, 8]}, "masks", "fitted into 8 x 8"),
        ((20, 30), {"image_size": [8, 8], "fit": "crop"}, "masks", "cropped to 8 x 8"),
        ((20, 30), {"image_size": [8, 8], "fit": "stretch"}, "masks", "stretched to 8 x 8"),
        ((20, 30), {"tile": [8, 8], "overlap": 2}, "masks", "cut into"),
        ((20, 30), {}, "classes", "fitted into 8 x 8"),
    ],
)
def test_images_are_treated_as_those_of_the_training(size, data, kind, told):
    assert placing(size, record(kind, data=data)).told.startswith(told)


def test_tiles_have_the_overlap_of_the_training():
    wide, narrow = (placing((40, 40), record(data={"tile": [8, 8], "overlap": n})).told for n in (4, 0))
    assert wide == "cut into 81 tiles of 8 x 8"
    assert narrow == "cut into 25 tiles of 8 x 8"
