from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from scalestudy.data.images.glance import glance

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("size", [32, 128])
def test_a_jpeg_whose_colours_are_all_rare_is_no_mask(
    tmp_path: Path, size: int
) -> None:
    path = tmp_path / "photo.jpg"
    Image.fromarray(RANDOM.integers(0, 255, (size, size, 3), dtype=np.uint8)).save(path)

    seen = glance(path)

    assert seen and not seen.few


@pytest.mark.parametrize("size", [32, 128])
def test_a_jpeg_of_two_values_smeared_at_their_border_is_a_mask(
    tmp_path: Path, size: int
) -> None:
    path = tmp_path / "mask.jpg"
    pixels = np.zeros((size, size), np.uint8)
    pixels[size // 4 : size // 2, size // 3 : size // 2] = 255
    Image.fromarray(pixels).save(path)

    seen = glance(path)

    assert seen and seen.few
