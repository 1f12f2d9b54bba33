"""Images that are the same, and nearly the same: hashes that agree where a person would."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from scalestudy.features.inspect.fingerprints import dhash, digest, near, same, thumbnail


def scene(seed, size=(90, 120)):
    """Soft shapes, as of a photograph."""
    small = np.random.default_rng(seed).integers(0, 256, (7, 9), np.uint8)
    return np.asarray(Image.fromarray(small).resize(size[::-1], Image.Resampling.BICUBIC))[:, :, None]


def saved_anew(image):
    stream = io.BytesIO()
    Image.fromarray(image[:, :, 0]).save(stream, "JPEG", quality=30)
    return np.asarray(Image.open(stream))[:, :, None]


def scaled(image, factor):
    size = (round(image.shape[1] * factor), round(image.shape[0] * factor))
    return np.asarray(Image.fromarray(image[:, :, 0]).resize(size, Image.Resampling.BILINEAR))[:, :, None]


def compared(images):
    thumbs = [thumbnail(each) for each in images]
    return near(np.array([dhash(each) for each in thumbs], np.uint64), np.stack(thumbs))


@pytest.mark.parametrize(
    "change",
    [
        saved_anew,
        lambda image: scaled(image, 0.5),
        lambda image: scaled(image, 1.7),
        lambda image: (image * 0.7).astype(np.uint8),
        lambda image: image.astype(np.uint16) * 257,
        lambda image: np.repeat(image, 3, axis=2),
        lambda image: (image / 255 - 0.5).astype(np.float32),
    ],
)
def test_an_image_saved_scaled_or_lit_otherwise_is_nearly_the_same(change):
    for seed in range(5):
        assert compared([scene(seed), change(scene(seed))]) == [(0, 1)]


def test_different_images_are_not():
    assert compared([scene(seed) for seed in range(60)]) == []


def test_among_dark_images_with_small_bright_things_none_is_taken_for_another():
    draw, images = np.random.default_rng(0), []
    for _ in range(60):
        image = np.zeros((64, 64, 1), np.uint8)
        for top, left in draw.integers(0, 56, (3, 2)):
            image[top : top + 8, left : left + 8] = 200
        images.append(image)
    assert compared(images) == []
    assert compared([images[3], images[7], scaled(images[3], 2)]) == [(0, 2)]


@given(st.integers(2, 200), st.integers(0, 20))
def test_all_pairs_are_found_whatever_their_number(count, seed):
    draw = np.random.default_rng(seed)
    hashes = draw.integers(0, 2**63, count).astype(np.uint64)
    one, other = sorted(draw.choice(count, 2, replace=False).tolist())
    hashes[other] = hashes[one] ^ np.uint64(0b10100)
    thumbs = np.repeat(draw.random((1, 16, 16), np.float32), count, axis=0)
    told = []
    assert near(hashes, thumbs, lambda *at: told.append(at)) == [(one, other)]
    assert told[-1] == (count, count)


def test_a_digest_tells_pixels_shapes_and_types_apart():
    image = np.arange(12, dtype=np.uint8).reshape(3, 4, 1)
    others = [image + 1, image.reshape(4, 3, 1), image.view(np.int8)]
    assert digest(image) == digest(np.asfortranarray(image))
    assert len({digest(each) for each in (image, *others)}) == 4


def test_rows_of_the_same_pixels_are_listed_together():
    assert same([b"a", b"b", b"a", b"c", b"a", b"b"]) == [[0, 2, 4], [1, 5]]
    assert same([b"a", b"b"]) == []
