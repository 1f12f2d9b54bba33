"""Predictions of images: masks, lines of the table, and images that cannot be read."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from model_records import Bright, Mean, record
from scalestudy.data.images.decode import read_mask
from scalestudy.features.model.image_inputs import files_of
from scalestudy.features.model.model_job import ModelJob
from scalestudy.features.model.model_worker import predict_images
from scalestudy.features.model.predict import as_csv
from scalestudy.training.reading import in_channels


def images(folder: Path, sizes) -> list[np.ndarray]:
    folder.mkdir(parents=True, exist_ok=True)
    random, made = np.random.default_rng(0), []
    for number, size in enumerate(sizes):
        made.append(random.integers(0, 256, size).astype(np.uint8))
        Image.fromarray(made[-1]).save(folder / f"{number:03d}.png")
    return made


def predicted(model, tmp_path, **more):
    """Return the lines in order, and the output folder."""
    items, out = files_of([str(tmp_path / "images")]), tmp_path / "out"
    job = ModelJob.model_validate(
        {"action": "predict", "model": "", "out": str(out), "items": items, **more}
    )
    return predict_images(model, job), out


def files(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def test_masks_have_the_size_and_name_of_their_images(tmp_path):
    made = images(tmp_path / "images", [(8, 8), (20, 30), (5, 11), (8, 40)])
    lines, out = predicted(Bright(), tmp_path, record=record())
    for number, image in enumerate(made):
        mask = read_mask(out / "masks" / f"{number:03d}.png")
        assert np.array_equal(mask, (image >= 127.5).astype(np.uint8))
        share = lines[number]["shares"][1]
        assert share == pytest.approx((image >= 127.5).mean())


def test_more_images_than_are_read_at_once_are_predicted_with_their_overlays(tmp_path):
    images(tmp_path / "images", [(8 + n % 3, 9) for n in range(20)])
    lines, out = predicted(Bright(), tmp_path, record=record(), overlay=True)
    assert [line["mask"] for line in lines] == [
        f"masks/{number:03d}.png" for number in range(20)
    ]
    assert len(files(out)) == 2 * 20


def test_a_damaged_image_is_named_and_keeps_no_other_from_being_predicted(tmp_path):
    images(tmp_path / "images", [(8, 8)] * 3)
    (tmp_path / "images" / "001.png").write_bytes(b"no image")
    lines, out = predicted(Bright(), tmp_path, record=record())
    assert "001.png: no image inside" in lines[1]["skipped"]
    assert sorted(files(out)) == ["masks/000.png", "masks/002.png"]


def test_resized_images_are_resized_in_their_own_depth_as_they_are_prepared(tmp_path):
    seen = []

    class Keeps(Bright):
        def outputs(self, inputs, scale):
            seen.append(np.array(inputs) * scale)
            return super().outputs(inputs, scale)

    images(tmp_path / "images", [(20, 30)])
    predicted(Keeps(), tmp_path, record=record(data={"image_size": [8, 8]}))
    steps = seen[-1] * 255
    assert np.allclose(steps, np.rint(steps), atol=1e-4)


def test_classes_have_a_table_with_all_probabilities(tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    for name, value in (("dark", 10), ("light", 240), ("middle", 130)):
        Image.fromarray(np.full((8, 8), value, np.uint8)).save(folder / f"{name}.png")
    model = record("classes")
    lines, out = predicted(Mean(), tmp_path, record=model)
    assert not out.exists()
    rows = list(csv.DictReader(io.StringIO(as_csv(lines, model))))
    assert [row["class"] for row in rows] == ["a", "c", "b"]
    assert sum(float(rows[0][name]) for name in "abc") == pytest.approx(1, abs=1e-5)


def test_a_table_of_masks_has_their_files_and_the_share_of_each_class(tmp_path):
    images(tmp_path / "images", [(8, 10)])
    lines, _ = predicted(Bright(), tmp_path, record=record())
    (row,) = csv.DictReader(io.StringIO(as_csv(lines, record())))
    assert (row["mask"], row["height"], row["width"]) == ("masks/000.png", "8", "10")
    assert float(row["share_ground"]) + float(row["share_thing"]) == pytest.approx(
        1, abs=1e-5
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_grey_is_repeated_and_colours_become_their_luma(dtype):
    grey = np.full((2, 4, 4, 1), 100, dtype)
    assert np.array_equal(in_channels(grey, 3), np.full((2, 4, 4, 3), 100))
    assert in_channels(grey, 3).dtype == dtype
    assert np.allclose(in_channels(in_channels(grey, 3), 1), grey)
    assert in_channels(grey, 1) is grey
