"""A folder with no layout or several is refused; the message names what was found and what is accepted."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_settings import data_of
from scalestudy.config.settings import LAYOUTS as SAID
from scalestudy.data.sources.layouts.find import LAYOUTS, list_folder
from scalestudy.util.errors import UserError


def kind_of(root):
    return list_folder(root, data_of(root)).kind


def refusal(root):
    with pytest.raises(UserError) as refused:
        kind_of(root)
    return refused.value


def test_images_without_folders_are_listed(mask_folder):
    error = refusal(mask_folder(9) / "images")
    assert "s0.png, s1.png" in error.received
    assert "and 4 more" in error.received


@pytest.mark.parametrize("missing", ["images", "masks"])
def test_one_of_images_and_masks_alone(mask_folder, tmp_path, missing):
    root = mask_folder()
    (root / missing).rename(tmp_path / "away")
    assert "masks" in refusal(root).expected


def test_splits_need_a_training_folder(mask_folder):
    root = mask_folder(at="set/val").parent
    assert "train/" in refusal(root).expected


def test_two_folders_for_one_split(mask_folder):
    for split in ("train", "val", "validation"):
        root = mask_folder(at=f"set/{split}").parent
    assert "val/images/ and validation/images/" in refusal(root).received


def test_splits_of_two_layouts(mask_folder, class_folder):
    mask_folder(at="set/train")
    assert "the same layout" in refusal(class_folder({"a": 1, "b": 1}, at="set/val").parent).expected


def test_every_layout_that_is_recognised_can_be_said():
    assert set(SAID) == {layout.name for layout in LAYOUTS.items() if not layout.keys}


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
