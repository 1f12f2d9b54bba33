"""The preprocessing steps of examples/as_stored.py give the same bytes as preparing a data set."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

RECIPE = Path(__file__).parents[2] / "examples" / "as_stored.py"


@pytest.fixture(scope="module")
def recipe():
    return runpy.run_path(str(RECIPE))


@pytest.fixture
def pairs(tmp_path, save):
    """Write images of many sizes with masks, all with one kind of pixel."""

    def make(kind):
        draw = np.random.default_rng(0)
        for number, size in enumerate(
            [(40, 60), (61, 33), (32, 32), (7, 90), (24, 48)]
        ):
            colours = draw.integers(0, 256, (*size, 3), np.uint8)
            grey = draw.integers(0, 65536, size, np.uint16)
            image = {"colour": colours, "grey": colours[:, :, 0], "deep": grey}[kind]
            save(tmp_path / kind / "images" / f"{number}.png", image)
            save(
                tmp_path / kind / "masks" / f"{number}.png",
                draw.integers(0, 3, size).astype(np.uint8),
            )
        return tmp_path / kind

    return make


@pytest.mark.parametrize("fit", ["pad", "crop", "stretch"])
@pytest.mark.parametrize("kind", ["colour", "grey", "deep"])
def test_the_documented_steps_give_what_is_stored(recipe, pairs, ready, kind, fit):
    root = pairs(kind)
    prepared = ready(root, image_size=(32, 45), fit=fit)
    for row, name in enumerate(prepared.names):
        image = recipe["image_as_stored"](root / name, (32, 45), fit)
        mask = recipe["mask_as_stored"](
            root / name.replace("images", "masks"), (32, 45), fit
        )
        assert image.dtype == prepared.inputs.dtype
        assert np.array_equal(image.reshape(32, 45, -1), prepared.inputs[row])
        assert np.array_equal(mask, prepared.targets[row])


def test_a_turned_photograph_follows_the_documented_steps(
    recipe, tmp_path, save, ready
):
    exif = Image.Exif()
    exif[274] = 6
    for name in ("a", "b"):
        picture = np.random.default_rng(ord(name)).integers(
            0, 256, (20, 30, 3), np.uint8
        )
        save(tmp_path / "c" / name / "0.jpg", picture, exif=exif)
    prepared = ready(tmp_path / "c", image_size=(16, 16))
    stored = recipe["image_as_stored"](tmp_path / "c" / "b" / "0.jpg", (16, 16))
    assert np.array_equal(stored, prepared.inputs[1])
