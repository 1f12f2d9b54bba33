"""Images and masks in one folder, told by a word in their names."""

import pytest


@pytest.mark.parametrize(
    ("image", "mask"),
    [
        ("a{}.png", "a{}_mask.png"),
        ("a{}.jpg", "a{}_label.png"),
        ("a{}.tif", "a{}-GT.tif"),
        ("a{}.png", "a{}.seg.png"),
        ("a{}.png", "mask_a{}.png"),
        ("image_{}.png", "mask_{}.png"),
        ("{}_img.png", "{}_groundtruth.png"),
    ],
)
def test_masks_are_told_by_a_word_at_the_end_or_the_beginning(tree, paired, image, mask):
    root = tree(image, mask)
    assert paired(root) == [(image.format(i), mask.format(i)) for i in (1, 2, 3)]


def test_folders_of_such_files_are_groups(tree, paired, listed):
    root = tree("patient7/s{}.tif", "patient7/s{}_mask.tif", "patient8/s1.tif", "patient8/s1_mask.tif")
    assert paired(root)[3] == ("patient8/s1.tif", "patient8/s1_mask.tif")
    assert listed(root).groups == ["patient7"] * 3 + ["patient8"]


def test_they_may_lie_in_folders_of_splits(tree, listed):
    root = tree("train/a{}.png", "train/a{}_mask.png", "val/b.png", "val/b_mask.png")
    assert listed(root).given == {"train": (0, 3), "validation": (3, 4)}


def test_a_missing_mask_is_named(tree, refused):
    assert "a3.png" in refused(tree("a{}.png", "a1_mask.png", "a2_mask.png")).received


def test_images_alone_are_refused(tree, refused):
    assert "a1.png" in refused(tree("a{}.png", "mask.png")).received
