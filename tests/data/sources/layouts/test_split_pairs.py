"""Images and masks whose folders hold the splits, or name them."""

import pytest


@pytest.mark.parametrize(
    ("images", "masks"),
    [
        ("images/{}/a.png", "masks/{}/a.png"),
        ("{}_images/a.png", "{}_masks/a.png"),
        ("images_{}/a.png", "labels_{}/a.png"),
        ("{}/a.png", "{}_labels/a.png"),
        ("img/{}2017/a.png", "gt/{}2017/a.png"),
    ],
)
def test_splits_in_or_inside_the_names_of_folders_are_kept(tree, paired, listed, images, masks):
    root = tree(*(each.format(split) for split in ("train", "val") for each in (images, masks)))
    assert listed(root).given == {"train": (0, 1), "validation": (1, 2)}
    assert paired(root) == [(images.format(split), masks.format(split)) for split in ("train", "val")]


def test_two_folders_of_masks_for_a_split_are_refused(tree, refused):
    error = refused(tree("train/a.png", "train_masks/a.png", "train_labels/a.png"))
    assert "train_labels" in error.received
    assert "train_masks" in error.received


def test_what_lies_beside_them_is_told(tree, listed):
    root = tree("train/a.png", "train_masks/a.png", "readme.txt", "test/a.png")
    assert [each.names for each in listed(root).left_out] == [("readme.txt", "test/")]
