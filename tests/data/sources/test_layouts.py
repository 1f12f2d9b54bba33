"""A folder with no layout or several is refused; the message names what was found and what is accepted."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_settings import data_of
from scalestudy.config.settings import LAYOUTS as SAID
from scalestudy.data.sources import indents
from scalestudy.data.sources.layouts import LAYOUTS, list_folder
from scalestudy.data.split import ensure_split
from scalestudy.data.store import preparation
from scalestudy.util.errors import UserError


def test_images_without_folders_are_listed(mask_folder, refused):
    received = refused(mask_folder(9) / "images").received
    assert "s0.png, s1.png" in received and "and 4 more" in received


@pytest.mark.parametrize("missing", ["images", "masks"])
def test_one_of_images_and_masks_alone(mask_folder, refused, tmp_path, missing):
    root = mask_folder()
    (root / missing).rename(tmp_path / "away")
    assert "masks" in refused(root).expected


def test_splits_need_a_training_folder(mask_folder, refused):
    assert "train/" in refused(mask_folder(at="set/val").parent).expected


def test_two_folders_for_one_split(mask_folder, refused):
    for split in ("train", "val", "validation"):
        root = mask_folder(at=f"set/{split}").parent
    assert "val/images/ and validation/images/" in refused(root).received


def test_splits_of_two_layouts(mask_folder, class_folder, refused):
    mask_folder(at="set/train")
    assert "the same layout" in refused(class_folder({"a": 1, "b": 1}, at="set/val").parent).expected


def test_every_layout_that_is_recognised_can_be_said():
    assert set(SAID) == {layout.name for layout in LAYOUTS if not layout.keys}


FOLDERS = ["images", "masks", "train", "val", "test", "train_images", "train_masks", "gt", "cat", "dog", "p1"]
PLACES = st.lists(st.lists(st.sampled_from(FOLDERS), max_size=3).map("/".join), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(PLACES, st.sampled_from(["", "notes.txt", "train/extra/s0.png"]))
def test_every_file_of_a_folder_that_is_understood_is_taken_or_told(places, other):
    with TemporaryDirectory() as folder:
        names = {f"{place}/s{i}.png".lstrip("/") for place in places for i in (0, 1)} | ({other} - {""})
        for name in names:
            Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, name).touch()
        try:
            listing = list_folder(Path(folder), data_of(folder))
        except UserError:
            return
        taken = {file.relative_to(folder).as_posix() for file in listing.files()}
        told = tuple(name for left in listing.left_out for name in left.names)
        all_told = all(left.count == len(left.names) for left in listing.left_out)
        assert all(name in taken or name.startswith(told) for name in names) or not all_told
        assert len(taken) == sum(len(sample.files) for sample in listing.samples)


@pytest.mark.parametrize("pattern", ["s([0-2])", "images/s([0-2])"])
def test_groups_are_found_in_names_and_paths_and_a_name_without_one_is_refused(
    mask_folder, listed, refused, pattern
):
    assert listed(mask_folder(3), group_pattern=pattern).groups == ["0", "1", "2"]
    assert "images/s3.png" in refused(mask_folder(4), group_pattern=pattern).received


def test_groups_are_stored_and_no_split_parts_them(mask_folder, ready):
    prepared = ready(mask_folder(12), group_pattern="^s(1|.)")
    assert prepared.groups == ("0", "1", "1", "1", "2", "3", "4", "5", "6", "7", "8", "9")
    split = ensure_split(prepared, 0.25, 3)
    assert len(split.validation) == 3
    sides = [{prepared.groups[row] for row in side} for side in (split.train, split.validation)]
    assert not sides[0] & sides[1]


def test_a_changed_group_in_a_table_makes_another_set(tmp_path, save, ready):
    root = tmp_path / "set"
    for number in range(4):
        save(root / f"{number}.png", np.full((1, 1), number, np.uint8))
    for last in "ab":
        rows = [f"{number}.png,c{number % 2},{'aab'[number] if number < 3 else last}" for number in range(4)]
        (root / "labels.csv").write_text("\n".join(["file,label,patient", *rows]))
        assert ready(root).groups == ("a", "a", "b", last)


@pytest.mark.parametrize(
    ("text", "told"),
    [("file,label\n", "labels.csv"), ("file,label,label\n0.png,a,b\n1.png,b,a\n", "'label' 2 times")],
)
def test_a_table_of_headings_alone_and_a_column_that_comes_twice_are_refused(tree, refused, text, told):
    root = tree("0.png", "1.png")
    (root / "labels.csv").write_text(text)
    assert told in refused(root).received


def test_a_name_that_is_not_utf_8_is_named(tree, refused):
    root = tree("a/0.png", "a/1.png", "b/0.png")
    os.close(os.open(os.fsencode(root / "b") + b"/\xff.png", os.O_CREAT))
    assert "udcff.png" in refused(root).received


def test_an_empty_source_is_refused(refusal):
    assert "empty" in refusal("  ").received


def test_folders_of_masks_beside_classes_are_left_out(tree, listed):
    found = listed(tree("ants/{}.png", "bees/{}.png", "annotations/1.png"))
    assert found.classes == ["ants", "bees"]
    assert [group.names for group in found.left_out] == [("annotations/",)]


@pytest.mark.parametrize(
    ("source", "size", "told"),
    [
        ("indents:99999999999999", (64, 64), "Expected 7.629e+08 GiB of free disk space"),
        ("indents:4", (65536, 65536), "65,536 x 65,536"),
        ("digits", (65536, 65536), "65,536 x 65,536"),
    ],
)
def test_synthetic_data_beyond_memory_or_disk_are_refused_at_once(refusal, monkeypatch, source, size, told):
    for module in (indents, preparation):
        monkeypatch.setattr(module, "memory_limit", lambda: 2**33)
    assert told in str(refusal(source, image_size=size))
