"""An image is read as those of the training were, and what is done to it is told."""

import numpy as np
import pytest
from PIL import Image

from model_records import record
from scalestudy.features.predict.reading import read_for
from scalestudy.util.errors import UserError


def saved(tmp_path, pixels, name="a.png"):
    Image.fromarray(pixels).save(tmp_path / name)
    return tmp_path / name


def test_deep_images_are_scaled_to_the_same_range(tmp_path):
    grey = np.arange(64, dtype=np.uint16).reshape(8, 8) * 1000
    read = read_for(saved(tmp_path, grey), record())
    assert read.pixels.dtype == np.uint16
    assert read.scale == 1 / 65535
    assert read.told == ("of 16 bits, scaled to 0..1 as those of the training",)


def test_grey_and_colour_become_what_the_model_takes(tmp_path):
    colour = np.zeros((8, 8, 3), np.uint8)
    colour[..., 0] = 200
    read = read_for(saved(tmp_path, colour), record())
    assert read.pixels.shape == (8, 8, 1) and read.told == ("colour, read as grey",)
    grey = read_for(saved(tmp_path, colour[..., 0], "b.png"), record(shape=(8, 8, 3)))
    assert grey.pixels.shape == (8, 8, 3) and grey.told == ("grey, read as colour",)
    assert read_for(saved(tmp_path, colour[..., 0], "c.png"), record()).told == ()


def test_numbers_whose_meaning_nobody_knows_are_refused(tmp_path):
    file = saved(tmp_path, np.zeros((8, 8), np.uint16))
    with pytest.raises(UserError, match=r"multiplied by 0\.0625"):
        read_for(file, record(scale=1 / 16))
    with pytest.raises(UserError, match="float32"):
        read_for(file, record(dtype="float32", scale=1.0))


def test_other_channels_are_refused(tmp_path):
    with pytest.raises(UserError, match="images of 5 channels"):
        read_for(saved(tmp_path, np.zeros((8, 8), np.uint8)), record(shape=(8, 8, 5)))


def test_a_range_of_values_is_that_of_the_training(tmp_path):
    model = record(dtype="float32", scale=1.0, data={"value_range": [100, 300]})
    read = read_for(saved(tmp_path, np.full((8, 8), 250, np.uint16)), model)
    assert np.allclose(read.pixels * read.scale, 0.75)


def test_a_stack_is_refused(tmp_path):
    pages = [Image.fromarray(np.zeros((8, 8), np.uint8)) for _ in range(3)]
    pages[0].save(tmp_path / "stack.tif", save_all=True, append_images=pages[1:])
    with pytest.raises(UserError, match="stack"):
        read_for(tmp_path / "stack.tif", record())
    pytest.importorskip("tifffile")
    with pytest.raises(UserError, match="with 3"):
        read_for(tmp_path / "stack.tif", record(data={"stack": "samples"}))
