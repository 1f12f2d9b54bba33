"""Synthetic micrographs: reproducible by seed, at any size, and not separable by a threshold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalestudy.data.sources.micrograph import make_micrograph


def otsu(image):
    """Threshold by N. Otsu, IEEE Trans. SMC 9 (1979) 62."""
    share = np.bincount(image.ravel(), minlength=256) / image.size
    below, mean = share.cumsum(), (share * np.arange(256)).cumsum()
    between = (mean[-1] * below - mean) ** 2 / np.maximum(below * (1 - below), 1e-12)
    return int(between.argmax())


def overlap(found, mask):
    return (found & mask).sum() / max(1, (found | mask).sum())


@pytest.fixture(scope="module")
def pictures():
    return [make_micrograph(0, i, (96, 128)) for i in range(60)]


def test_the_source_makes_grey_images_with_masks(ready):
    prepared = ready("indents:3", image_size=(48, 64))
    assert (prepared.kind, prepared.count, prepared.input_shape) == (
        "masks",
        3,
        (48, 64, 1),
    )
    assert prepared.inputs.dtype == np.uint8
    assert prepared.class_names == ("background", "indent")
    assert set(np.unique(prepared.targets)) == {0, 1}
    assert prepared.ignore is None


def test_another_seed_makes_another_set(ready):
    first, second = (
        ready("indents:2", image_size=(32, 48), seed=seed) for seed in (0, 1)
    )
    assert first.path != second.path
    assert (first.inputs[:] != second.inputs[:]).any()


@pytest.mark.parametrize(
    ("source", "size", "expected"),
    [
        *(
            (f"indents:{count}", None, "indents:COUNT")
            for count in ("", "x", "1", "-4", "2.5")
        ),
        ("indents:2", (15, 40), "16 x 16"),
    ],
)
def test_a_count_that_is_none_and_a_size_too_small_for_an_indent_are_refused(
    refusal, source, size, expected
):
    assert expected in refusal(source, image_size=size).expected


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**31),
    st.integers(0, 10_000),
    st.integers(16, 90),
    st.integers(16, 90),
)
def test_any_size_works_and_repeats(seed, index, height, width):
    image, mask = make_micrograph(seed, index, (height, width))
    assert image.shape == mask.shape == (height, width)
    assert image.dtype == mask.dtype == np.uint8
    assert 0 < mask.sum() < mask.size / 2
    assert mask.max() == 1
    again, mask_again = make_micrograph(seed, index, (height, width))
    assert (again == image).all()
    assert (mask_again == mask).all()


def test_full_size_shows_the_same_scene_as_a_small_one():
    _, large = make_micrograph(0, 4, (768, 1024))
    _, small = make_micrograph(0, 4, (96, 128))
    assert overlap(large[4::8, 4::8] > 0, small > 0) > 0.9


def test_the_indent_takes_a_small_part_of_the_image(pictures):
    shares = [mask.mean() for _, mask in pictures]
    assert 0.03 < np.mean(shares) < 0.15
    assert min(shares) > 0.005


def test_no_threshold_finds_the_indents(pictures):
    best = []
    for image, mask in pictures:
        dark = image <= otsu(image)
        best.append(max(overlap(dark, mask > 0), overlap(~dark, mask > 0)))
    assert np.mean(best) < 0.35


def test_indents_stand_out_from_what_surrounds_them(pictures):
    """A model can learn the indents: grey values inside differ from those outside."""
    apart = [abs(float(i[m > 0].mean()) - float(i[m == 0].mean())) for i, m in pictures]
    assert np.mean(apart) > 15
