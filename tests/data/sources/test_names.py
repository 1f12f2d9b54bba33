"""The meaning of folder and file names."""

import pytest

from scalestudy.data.sources.names import role, split_in, split_of, stripped


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("images", ("image", None)),
        ("train_images", ("image", "train")),
        ("trainMasks", ("mask", "train")),
        ("image_masks", ("mask", None)),
        ("val2017", (None, "validation")),
        ("JPEGImages", ("image", None)),
        ("ground-truth", ("mask", None)),
        ("no_mask", (None, None)),
        ("train_test", (None, None)),
        ("mask 3 layers", (None, None)),
        ("", (None, None)),
    ],
)
def test_a_folder_is_told_by_its_words_and_by_no_other(name, expected):
    assert role(name) == expected


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("a_mask", ("a", "mask")),
        ("img12", ("12", "image")),
        ("mask_a", ("a", "mask")),
        ("a.seg", ("a", "mask")),
        ("a-ground_truth", ("a", "mask")),
        ("mask", ("mask", None)),
        ("unmasked", ("unmasked", None)),
        ("labrador", ("labrador", None)),
        ("maxy", ("maxy", None)),
    ],
)
def test_a_word_at_an_end_of_a_name_is_taken_off(stem, expected):
    assert stripped(stem) == expected


def test_a_split_is_told_by_one_word_and_not_by_two():
    assert split_in("instances_train2017") == "train"
    assert split_in("train_and_test") is None


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train", "train"),
        ("Training", "train"),
        ("train2017", "train"),
        ("stage1_train", "train"),
        ("test_set", "test"),
        ("valid", "validation"),
        ("test1", None),
        ("trains", None),
        ("dataset", None),
        ("train_masks", None),
    ],
)
def test_splits_are_told_by_the_names_of_folders(name, split):
    assert split_of(name) == split
