"""A folder with no layout or several is refused; the message names what was found and what is accepted."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_settings import data_of
from scalestudy.data import preparation
from scalestudy.data.left_out import LeftOut
from scalestudy.data.preparation import find_set
from scalestudy.data.sources.files import NO_IMAGE, NOT_TAKEN
from scalestudy.data.sources.layouts import list_samples
from scalestudy.data.split import ensure_split
from scalestudy.data.store.prepared import Prepared
from scalestudy.util.errors import UserError


@pytest.mark.parametrize(
    ("names", "received"),
    [
        (("s{}.png", "t{}.png"), "s1.png, s2.png, s3.png, t1.png, t2.png and 1 more"),
        (("images/{}.png",), "images/"),
        (("masks/{}.png",), "masks/"),
        (("images/{}.png", "after/{}.png"), "after/, images/"),
        (("notes.txt",), "notes.txt"),
    ],
)
def test_a_folder_without_a_layout_is_refused_with_its_entries(
    tree, refused, names, received
):
    error = refused(tree(*names))
    assert received in error.received
    assert "images/ and masks/" in error.expected and "`images =" in error.action


@pytest.mark.parametrize(
    "inner", [("images/{}.png", "masks/{}.png"), ("a/{}.png", "b/{}.png")]
)
def test_splits_need_training_samples(tree, refused, inner):
    assert (
        "training samples" in refused(tree(*(f"val/{name}" for name in inner))).expected
    )


FOLDERS = [
    "images",
    "masks",
    "train",
    "val",
    "test",
    "train_images",
    "train_masks",
    "gt",
    "cat",
    "dog",
    "p1",
]
PLACES = st.lists(
    st.lists(st.sampled_from(FOLDERS), max_size=3).map("/".join), min_size=1, max_size=6
)


@settings(max_examples=60, deadline=None)
@given(PLACES, st.sampled_from(["", "notes.txt", "train/extra/s0.png"]))
def test_every_file_of_a_folder_that_is_understood_is_taken_or_told(places, other):
    with TemporaryDirectory() as folder:
        names = {
            f"{place}/s{i}.png".lstrip("/") for place in places for i in (0, 1)
        } | ({other} - {""})
        for name in names:
            Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, name).touch()
        try:
            listing = list_samples(Path(folder), data_of(folder))
        except UserError:
            return
        taken = {file.relative_to(folder).as_posix() for file in listing.files()}
        assert len(taken) + sum(left.count for left in listing.left_out) == len(names)
        assert len(taken) == sum(len(sample.files) for sample in listing.samples)


@pytest.mark.parametrize("pattern", ["s([0-2])", "images/s([0-2])"])
def test_groups_are_found_in_names_and_paths_and_a_name_without_one_is_refused(
    mask_folder, listed, refused, pattern
):
    assert listed(mask_folder(3), group_pattern=pattern).groups == ["0", "1", "2"]
    assert "images/s3.png" in refused(mask_folder(4), group_pattern=pattern).received


def test_groups_are_stored_and_no_split_parts_them(mask_folder, ready):
    prepared = ready(mask_folder(12), group_pattern="^s(1|.)")
    assert prepared.groups == (
        "0",
        "1",
        "1",
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
        "7",
        "8",
        "9",
    )
    split = ensure_split(prepared, 0.25, 3)
    assert len(split.validation) == 3
    sides = [
        {prepared.groups[row] for row in side}
        for side in (split.train, split.validation)
    ]
    assert not sides[0] & sides[1]


def test_a_name_that_is_not_utf_8_is_named(tree, refused):
    root = tree("a/0.png", "a/1.png", "b/0.png")
    os.close(os.open(os.fsencode(root / "b") + b"/\xff.png", os.O_CREAT))
    assert "udcff.png" in refused(root).received


def test_an_empty_source_is_refused(refusal):
    assert "empty" in refusal("  ").received


def test_what_is_left_out_is_stored(mask_folder, ready, save):
    root = mask_folder()
    (root / "readme.txt").touch()
    save(root / "stray.png", np.zeros((1, 1), np.uint8))
    (root / ".git").mkdir()
    told = (
        LeftOut(NOT_TAKEN, 1, ("stray.png",)),
        LeftOut(NO_IMAGE, 1, ("readme.txt",)),
    )
    assert find_set(data_of(root)).left_out == told
    prepared = ready(root)
    assert (prepared.count, prepared.left_out) == (4, told)
    assert Prepared.open(prepared.path).left_out == told


@pytest.mark.parametrize(
    ("source", "size", "told"),
    [
        (
            "indents:99999999999999",
            (64, 64),
            "Expected 7.629e+08 GiB of free disk space",
        ),
        ("indents:4", (65536, 65536), "65,536 x 65,536"),
        ("digits", (65536, 65536), "65,536 x 65,536"),
    ],
)
def test_synthetic_data_beyond_memory_or_disk_are_refused_at_once(
    refusal, monkeypatch, source, size, told
):
    monkeypatch.setattr(preparation, "memory_limit", lambda: 2**33)
    assert told in str(refusal(source, image_size=size))
