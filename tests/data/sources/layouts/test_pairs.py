"""A folder of images beside one of masks, under usual names."""

import pytest


@pytest.mark.parametrize(
    ("images", "masks"),
    [
        ("images", "masks"),
        ("Images", "MASKS"),
        ("image", "label"),
        ("img", "mask"),
        ("imgs", "masks"),
        ("x", "y"),
        ("inputs", "targets"),
        ("raw", "gt"),
        ("images", "annotations"),
        ("JPEGImages", "SegmentationClass"),
        ("images_png", "masks_png"),
        ("raw_images", "ground_truth"),
    ],
)
def test_usual_names_of_both_folders_are_known(tree, paired, images, masks):
    root = tree(f"{images}/s{{}}.png", f"{masks}/s{{}}.png")
    assert paired(root) == [(f"{images}/s{i}.png", f"{masks}/s{i}.png") for i in (1, 2, 3)]


@pytest.mark.parametrize(
    ("image", "mask", "told"),
    [
        ("a{}.jpg", "a{}.png", "paired by name"),
        ("Cell{}.PNG", "cell{}.png", "paired by their names without capitals (Cell1.PNG with cell1.png)"),
        ("IMG_{}.tif", "img_{}_Mask.tif", "by the numbers in their names"),
        (
            "image_00{}.png",
            "mask_00{}.png",
            "without words like image and mask (image_001.png with mask_001.png)",
        ),
        ("img1{}.tif", "lab1{}.tif", "without words like image and mask"),
        ("cell{}.png", "cell{}_mask.png", "without words like image and mask"),
        ("a_{}_img.png", "a_{}_GT.png", "without words like image and mask"),
        (
            "frame-{}.png",
            "truth of {}.png",
            "by the numbers in their names (frame-1.png with truth of 1.png)",
        ),
        ("t0_z{}.png", "drawn0-{}.png", "by the numbers in their names"),
    ],
)
def test_files_pair_by_name_else_without_words_else_by_number(tree, listed, paired, image, mask, told):
    root = tree(f"image/{image}", f"label/{mask}")
    assert paired(root) == [(f"image/{image.format(i)}", f"label/{mask.format(i)}") for i in (1, 2, 3)]
    assert told in listed(root).understood


def test_numbers_pair_by_value(tree, paired):
    assert paired(tree("image/a07.png", "label/b7.png", "image/a11.png", "label/b011.png")) == [
        ("image/a07.png", "label/b7.png"),
        ("image/a11.png", "label/b011.png"),
    ]


def test_a_missing_mask_of_numbered_pairs_is_named_and_not_guessed(tree, refused):
    root = tree("image/a{}.png", "label/b1.png", "label/b3.png")
    assert str(root / "image" / "a2.png") in refused(root).received


def test_files_that_are_numbered_in_several_ways_are_not_paired_by_number(tree, refused):
    assert "a1.png" in refused(tree("image/a1.png", "image/b2.png", "label/c1.png", "label/c2.png")).received


def test_two_folders_of_masks_are_refused_and_patterns_say_which(tree, refused, paired):
    root = tree("image/{}.png", "label/{}.png", "gt/{}.png")
    error = refused(root)
    assert "gt/ and label/" in error.received
    assert "`masks =" in error.action
    assert len(paired(root, images="image/*", masks="gt/*")) == 3


def test_other_folders_beside_images_and_masks_are_left_out(tree, paired, listed):
    root = tree("images/{}.png", "masks/{}.png", "labels/{}.png", "__MACOSX/images/._1.png", "images/._1.png")
    assert paired(root)[0] == ("images/1.png", "masks/1.png")
    assert {each.names for each in listed(root).left_out} == {("__MACOSX/", "images/._1.png"), ("labels/",)}


def test_classes_named_like_masks_stay_classes(tree, labelled):
    root = tree("mask/{}.png", "no_mask/{}.png")
    assert labelled(root)["mask/1.png"] == "mask"


def test_a_layout_can_be_said(tree, labelled):
    root = tree("x/{}.png", "y/{}.png")
    assert labelled(root, layout="classes")["y/2.png"] == "y"
