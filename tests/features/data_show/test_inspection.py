"""Inspect a set before training: its layout, counts, and faults in sets with known mistakes."""

import re

import numpy as np
import pytest
from PIL import Image

from data_settings import data_of
from scalestudy.features.data_show.inspection import (
    ClassCount,
    DataWarning,
    Inspection,
    SamplePicture,
    inspect_data,
)
from scalestudy.features.data_show.inspection_page import inspection_document
from scalestudy.report.as_terminal import terminal
from scalestudy.report.write_document import html
from scalestudy.util.errors import UserError


def scene(seed, size=(48, 64)):
    small = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), np.uint8)
    return Image.fromarray(small).resize(size[::-1], Image.Resampling.BICUBIC)


def write(path, picture, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path, **options)


@pytest.fixture(scope="module")
def flawed(tmp_path_factory):
    """Classes with a copy across splits, a copy within one, and a small image."""
    root = tmp_path_factory.mktemp("flawed")
    for number in range(12):
        write(root / "train" / "a" / f"{number}.png", scene(number))
        write(root / "val" / "a" / f"{number}.png", scene(100 + number))
    for number in range(3):
        write(root / "train" / "b" / f"{number}.png", scene(200 + number))
        write(root / "val" / "b" / f"{number}.png", scene(300 + number))
    write(root / "val" / "a" / "copy.png", scene(3))
    write(root / "train" / "a" / "again.png", scene(6))
    write(root / "train" / "a" / "thumb.png", scene(400, (6, 8)))
    return root


@pytest.fixture(scope="module")
def inspection(flawed):
    return inspect_data(data_of(flawed))


def warning(inspection, name):
    (found,) = [warning for warning in inspection.warnings if warning.name == name]
    return found


def names(inspection):
    return [warning.name for warning in inspection.warnings]


ACROSS = ("train/a/3.png (train) = val/a/copy.png (validation)",)


def test_copies_are_found_and_those_across_splits_come_first(inspection):
    assert (inspection.warnings[0].name, inspection.warnings[0].serious) == (
        "duplicate-across-splits",
        True,
    )
    assert inspection.warnings[0].samples == ACROSS
    within = ("train/a/6.png (train) = train/a/again.png (train)",)
    assert warning(inspection, "duplicate").samples == within


def test_sizes_that_differ_are_told_until_it_is_said_how_they_are_fitted(
    flawed, inspection
):
    assert "[48, 64]" in warning(inspection, "sizes-differ").action
    assert "sizes-differ" not in names(
        inspect_data(data_of(flawed, image_size=(32, 32)))
    )


def test_a_class_that_a_split_does_not_hold_is_found(tmp_path):
    for name in ("train/a/0", "train/a/1", "train/b/0", "val/a/0"):
        write(tmp_path / "set" / f"{name}.png", scene(sum(map(ord, name))))
    found = inspect_data(data_of(tmp_path / "set"))
    assert warning(found, "class-missing-in-split").samples == ("b (validation)",)


def test_more_classes_than_masks_can_have_are_counted(tmp_path):
    images = np.arange(600 * 16, dtype=np.uint16).reshape(600, 4, 4)
    np.savez(tmp_path / "many.npz", x_train=images, y_train=np.arange(600) % 300)
    found = inspect_data(data_of(tmp_path / "many.npz"))
    assert (
        found.classes[299] == ClassCount("299", 2, 1 / 300, {})
        and len(found.classes) == 300
    )


def test_what_was_understood_is_said(inspection):
    assert inspection.count == 33
    assert inspection.splits == {"train": 17, "validation": 16}
    assert inspection.facts["Type"] == "classification: one class for each image"
    assert inspection.facts["Files"] == "8-bit colour (33)"
    assert inspection.sizes[0] == ((48, 64), 32, "train/a/0.png")
    assert (
        len(inspection.pictures) == 8 and inspection.pictures[0].about == "48 x 64, a"
    )


@pytest.fixture
def masks(tmp_path):
    root = tmp_path / "masks"
    for number in range(24):
        mask = np.zeros((48, 64), np.uint8)
        mask[:24, : 0 if number == 7 else 32] = 1
        mask[0, 0] = 2 if number in (3, 4) else mask[0, 0]
        write(root / "images" / f"{number:02}.png", scene(number).convert("L"))
        write(root / "masks" / f"{number:02}.png", Image.fromarray(mask))
    return root


def test_of_masks_the_shares_of_pixels_and_empty_ones_are_told(masks):
    inspection = inspect_data(data_of(masks), samples=3)
    background, one, two = inspection.classes
    labelled = 23 * 24 * 32 - 2
    assert (one.samples, two.samples) == (23, 2)
    assert (
        one.share == pytest.approx(labelled / (24 * 48 * 64)) and background.share > 0.7
    )
    assert warning(inspection, "empty-mask").samples == ("images/07.png",)
    assert all(each.overlay.shape == each.image.shape for each in inspection.pictures)
    assert (inspection.pictures[0].overlay != inspection.pictures[0].image).any()


def test_what_a_task_reads_itself_is_refused(tmp_path):
    file = tmp_path / "t.py"
    file.write_text("def read(data):\n    return [[1.0], [2.0], [3.0]], [0, 1, 0]\n")
    with pytest.raises(UserError, match="a set to show"):
        inspect_data(data_of(file, read=file, cache=tmp_path / "cache"))


def test_a_split_is_told_as_the_sources_only_if_it_is_taken(flawed, tmp_path):
    assert shown_split(flawed) == "given by the source"
    assert shown_split(flawed, validation=0.25) == "random, by the seed"
    for name in ("a/0", "a/1", "b/0", "b/1", "b/2"):
        write(tmp_path / "set" / "train" / f"{name}.png", scene(len(name)))
    assert shown_split(tmp_path / "set") == "random, by the seed"


def shown_split(source, **keys):
    return inspect_data(data_of(source, **keys), samples=0).facts["Split"]


GREY = np.full((32, 48, 3), 120, np.uint8)
INSPECTION = Inspection(
    source="<script>alert(1)</script>",
    kind="masks",
    facts={"Type": "segmentation: images with masks", "Files": "16-bit grey (12)"},
    count=12,
    splits={"train": 9, "validation": 3},
    sizes=[((32, 48), 10, "a.png"), ((8, 8), 2, "tiny.png")],
    classes=[
        ClassCount("background", 12, 0.9, {"train": 9, "validation": 3}),
        ClassCount("cell", 2, 0.1, {"train": 2, "validation": 0}),
    ],
    warnings=[
        DataWarning(
            "duplicate-across-splits",
            "1 image in both",
            "Remove it.",
            ("a = b",),
            serious=True,
        ),
        DataWarning(
            "empty-mask",
            "17 empty masks",
            "Look.",
            tuple(f"m{i}.png" for i in range(17)),
        ),
    ],
    pictures=[
        SamplePicture(f"images/{i}.png", "32 x 48, cell 10.0%", GREY, GREY + 20)
        for i in range(5)
    ],
)


def test_a_terminal_shows_facts_counts_classes_sizes_and_warnings():
    text = terminal(inspection_document([INSPECTION]), 100)
    for words in (
        "16-bit grey (12)",
        "12 (9 train, 3 validation)",
        "Serious: 1 image in both",
        "a = b",
        "Remove it.",
        "m9.png",
        "and 7 more",
        "10.0%",
        "32 x 48",
        "tiny.png",
    ):
        assert words in text
    assert "m10.png" not in text


def test_a_page_holds_its_pictures_with_a_description_of_each():
    page = html(inspection_document([INSPECTION]))
    pictures = re.findall(r"<img[^>]*>", page)
    assert len(pictures) == 10
    assert all('src="data:image/png;base64,' in picture for picture in pictures)
    described = [re.search(r'alt="([^"]*)"', picture)[1] for picture in pictures]
    assert described[0] == "Sample images/0.png: 32 x 48, cell 10.0%" != described[1]
    assert "<script" not in page and "&lt;script&gt;alert(1)" in page
    assert not re.search(r"(src|href)=\"(?!data:)", page)
