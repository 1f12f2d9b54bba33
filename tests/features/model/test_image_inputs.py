"""Images are read as in training, and outputs return to the place and size of the original image."""

import numpy as np
import pytest
import tifffile
from PIL import Image

from model_records import record
from scalestudy.features.model.image_inputs import (
    Tiled,
    Whole,
    files_of,
    placing,
    read_for,
)
from scalestudy.util.errors import UserError

SIZES = [(8, 8), (8, 16), (24, 10), (33, 57), (5, 31), (3, 3)]


def smooth(size: tuple[int, int]) -> np.ndarray:
    """A ramp in both directions, which resizing preserves."""
    y, x = np.mgrid[: size[0], : size[1]].astype(np.float32)
    return np.stack([(y + 0.5) / size[0], (x + 0.5) / size[1]], axis=-1)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("way", ["pad", "stretch"])
def test_what_was_resized_comes_back_at_its_place_and_size(size, way):
    image = smooth(size)
    way_in = Whole(size, (32, 32), way)
    inputs = way_in.cut(image)
    assert inputs.shape == (1, 32, 32, 2)
    back = way_in.joined(inputs)
    assert back.shape == image.shape
    inner = back[1:-1, 1:-1] - image[1:-1, 1:-1]
    assert np.abs(inner).max(initial=0) < 2 / min(*size, 32)


@pytest.mark.parametrize("size", SIZES)
def test_what_was_cropped_is_unknown_around_what_was_seen(size):
    image = smooth(size)
    way_in = Whole(size, (32, 32), "crop")
    back = way_in.joined(way_in.cut(image))
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
    way_in = Tiled(size, (8, 8), overlap)
    inputs = way_in.cut(image)
    assert inputs.shape[1:] == (8, 8, 3)
    assert np.array_equal(way_in.joined(inputs), image)


def test_an_image_of_the_models_size_is_not_touched():
    image = np.random.default_rng(0).random((8, 8, 1), np.float32)
    way_in = placing((8, 8), record())
    assert np.array_equal(way_in.joined(way_in.cut(image)), image)


@pytest.mark.parametrize(
    ("size", "data", "kind", "way"),
    [
        ((20, 30), {}, "masks", Tiled((20, 30), (8, 8), 2)),
        ((5, 5), {}, "masks", Tiled((5, 5), (8, 8), 2)),
        ((20, 30), {"image_size": [8, 8]}, "masks", Whole((20, 30), (8, 8))),
        (
            (20, 30),
            {"image_size": [8, 8], "fit": "crop"},
            "masks",
            Whole((20, 30), (8, 8), "crop"),
        ),
        ((20, 30), {"tile": [8, 8]}, "masks", Tiled((20, 30), (8, 8), 1)),
        ((20, 30), {}, "classes", Whole((20, 30), (8, 8))),
    ],
)
def test_images_are_treated_as_those_of_the_training(size, data, kind, way):
    assert placing(size, record(kind, data=data)) == way


def saved(tmp_path, pixels, name="a.png"):
    Image.fromarray(pixels).save(tmp_path / name)
    return tmp_path / name


def test_a_range_of_values_is_that_of_the_training(tmp_path):
    ranged = record(dtype="float32", scale=1.0, data={"value_range": [100, 300]})
    read = read_for(saved(tmp_path, np.full((8, 8), 250, np.uint16)), ranged)
    assert np.allclose(read.pixels * read.scale, 0.75)


@pytest.mark.parametrize("dtype", [np.float64, np.int16, np.int32])
def test_numbers_stored_as_float32_are_read_as_in_the_training(tmp_path, dtype):
    tifffile.imwrite(tmp_path / "a.tif", np.full((8, 8), -7, dtype))
    read = read_for(tmp_path / "a.tif", record(dtype="float32", scale=1.0))
    assert read.pixels.dtype == np.float32 and np.all(read.pixels * read.scale == -7)


@pytest.mark.parametrize(("file", "model"), [(3, 1), (1, 3), (1, 1)])
def test_grey_and_colour_become_what_the_model_takes(tmp_path, file, model):
    pixels = np.full((8, 8, 3), [200, 0, 0], np.uint8)
    read = read_for(
        saved(tmp_path, pixels if file == 3 else pixels[..., 0]),
        record(shape=(8, 8, model)),
    )
    assert read.pixels.shape == (8, 8, model)


@pytest.mark.parametrize(
    ("dtype", "model", "message"),
    [
        (np.uint16, {}, "uint8"),
        (np.uint16, {"dtype": "float32", "scale": 1.0}, "float32"),
        (np.uint8, {"shape": (8, 8, 5)}, "images of 5 channels"),
    ],
)
def test_other_numbers_and_channels_than_in_training_are_refused(
    tmp_path, dtype, model, message
):
    with pytest.raises(UserError, match=message):
        read_for(saved(tmp_path, np.zeros((8, 8), dtype)), record(**model))


def test_a_stack_is_refused(tmp_path):
    pages = [Image.fromarray(np.zeros((8, 8), np.uint8)) for _ in range(3)]
    pages[0].save(tmp_path / "stack.tif", save_all=True, append_images=pages[1:])
    with pytest.raises(UserError, match="with 3"):
        read_for(tmp_path / "stack.tif", record())


def image_at(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(path)
    return path


def names(*given):
    return [item.name for item in files_of([str(path) for path in given])]


def test_a_folder_gives_its_images_wherever_they_lie_below_it(tmp_path):
    for name in ("b.png", "a.tif", "more/c.jpg", ".hidden/d.png"):
        image_at(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no image")
    assert names(tmp_path) == ["a", "b", "more/c"]


def test_an_image_that_is_named_twice_is_predicted_once(tmp_path):
    file = image_at(tmp_path / "a.png")
    (tmp_path / "link.png").symlink_to(file)
    assert len(names(file, tmp_path, file)) == 1


def test_names_that_meet_are_told_apart(tmp_path):
    one, other = image_at(tmp_path / "x" / "a.png"), image_at(tmp_path / "x" / "a.jpg")
    assert names(one, other) == ["a.png", "a.jpg"]
    third = image_at(tmp_path / "y" / "a.png")
    with pytest.raises(UserError, match=r"x/a\.png and .*y/a\.png"):
        names(one, third)


def test_what_is_not_there_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"nothing\.png, which does not exist"):
        files_of([str(tmp_path / "nothing.png")])
    with pytest.raises(UserError, match="without any"):
        files_of([str(tmp_path)])
