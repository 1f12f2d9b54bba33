"""Images with masks: folders with usual names and splits, one shared folder, and patterns."""

import pytest


@pytest.mark.parametrize(
    ("images", "masks"),
    [
        ("images", "masks"),
        ("Images", "MASKS"),
        ("image", "label"),
        ("x", "y"),
        ("raw", "gt"),
        ("JPEGImages", "SegmentationClass"),
        ("raw_images", "ground_truth"),
        ("micrographs", "masks"),
        ("SEM", "mask_png"),
        ("p1/images", "p1/masks"),
        ("images/p1", "masks/p1"),
        ("Train_Images", "annotations"),
    ],
)
def test_folders_are_told_apart_by_their_names(tree, paired, images, masks):
    root = tree(f"{images}/s{{}}.tif", f"{masks}/s{{}}.png", "figures/f{}.png")
    assert paired(root) == [
        (f"{images}/s{i}.tif", f"{masks}/s{i}.png") for i in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("image", "mask", "told"),
    [
        ("a{}.jpg", "a{}.png", "paired by name"),
        ("Cell{}.PNG", "cell{}.png", "(Cell1.PNG with cell1.png)"),
        ("IMG_{}.tif", "img_{}_Mask.tif", "(IMG_1.tif with img_1_Mask.tif)"),
        (
            "a0{}_raw.png",
            "b{}.png",
            "by the numbers in their names (a01_raw.png with b1.png)",
        ),
        (
            "img1{}.tif",
            "lab1{}.tif",
            "words like image and mask (img11.tif with lab11.tif)",
        ),
        ("a_{}_img.png", "a_{}_GT.png", "words like image and mask"),
    ],
)
def test_files_pair_by_name_else_without_words_else_by_numbers(
    tree, listed, paired, image, mask, told
):
    root = tree(f"image/{image}", f"label/{mask}")
    assert paired(root) == [
        (f"image/{image.format(i)}", f"label/{mask.format(i)}") for i in (1, 2, 3)
    ]
    assert told in listed(root).understood


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (("image/a{}.png", "label/b1.png", "label/b3.png"), "image/a2.png"),
        (("a{}.png", "a1_mask.png", "a2_mask.png"), "a3.png"),
        (("p{}/images/a.png", "p1/masks/a.png", "p3/masks/a.png"), "p2/images/a.png"),
        (
            ("train/images/a.png", "train/masks/a.png", "val/images/a.png"),
            "val/images/a.png",
        ),
        (
            ("train/images/a.png", "train/masks/a.png", "val/masks/a.png"),
            "val/masks/a.png",
        ),
    ],
)
def test_files_without_a_partner_are_named_and_not_guessed(
    tree, refused, names, missing
):
    root = tree(*names)
    assert str(root / missing) in refused(root).received


@pytest.mark.parametrize(
    ("folders", "choices"),
    [
        (("image", "label", "gt"), [("image", "gt"), ("image", "label")]),
        (("dapi", "gfp", "masks"), [("dapi", "masks"), ("gfp", "masks")]),
    ],
)
def test_two_folders_for_one_purpose_are_refused_with_the_keys_for_each(
    tree, refused, paired, folders, choices
):
    root = tree(*(f"{folder}/{{}}.png" for folder in folders))
    action = refused(root).action
    for image, mask in choices:
        assert f'images = "{image}/*" and masks = "{mask}/*"' in action
        assert len(paired(root, images=f"{image}/*", masks=f"{mask}/*")) == 3


@pytest.mark.parametrize(
    ("images", "masks"),
    [
        ("{}/images/a.png", "{}/masks/a.png"),
        ("images/{}/a.png", "masks/{}/a.png"),
        ("{}_images/a.png", "{}_masks/a.png"),
        ("images_{}/a.png", "labels_{}/a.png"),
        ("{}/a.png", "{}_labels/a.png"),
        ("img/{}2017/a.png", "gt/{}2017/a.png"),
        ("stage1_{}/img/a.png", "stage1_{}/gt/a.png"),
    ],
)
def test_splits_in_or_around_the_names_of_folders_are_kept(
    tree, paired, listed, images, masks
):
    root = tree(
        *(each.format(split) for split in ("train", "val") for each in (images, masks))
    )
    assert listed(root).given == {"train": (0, 1), "validation": (1, 2)}
    assert paired(root) == [
        (images.format(split), masks.format(split)) for split in ("train", "val")
    ]
    assert "(likewise other splits), paired by name" in listed(root).understood


def test_a_test_set_without_masks_is_left_out_and_told_with_what_lies_beside(
    tree, listed
):
    root = tree("train/a.png", "train_masks/a.png", "readme.txt", "test/a.png")
    assert [str(each) for each in listed(root).left_out] == [
        "1 left out (images of no sample): test/a.png",
        "1 left out (no image of a format that is read): readme.txt",
    ]


@pytest.mark.parametrize(
    ("image", "mask"),
    [
        ("a{}.png", "a{}_mask.png"),
        ("a{}.tif", "a{}-GT.tif"),
        ("a{}.png", "mask_a{}.png"),
        ("train/{}_img.png", "train/{}_groundtruth.png"),
        ("benign/b{}.png", "benign/b{}_mask.png"),
    ],
)
def test_masks_beside_images_are_told_by_a_word_at_the_end_or_the_beginning(
    tree, paired, image, mask
):
    root = tree(image, mask)
    assert paired(root) == [(image.format(i), mask.format(i)) for i in (1, 2, 3)]


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"images": "a/*.png"}, "no `masks`"),
        ({"images": "a/*.png", "masks": "c/*.png"}, "none in"),
        ({"images": "a/*.png", "masks": "*/1.png"}, "which matches both"),
        ({"images": "/a/*.png", "masks": "b/*"}, "Non-relative patterns"),
    ],
)
def test_patterns_that_find_nothing_or_the_same_are_refused(
    tree, refused, paired, keys, told
):
    root = tree("a/{}.png", "b/{}.png", "b/.4.png", "b/notes.txt")
    assert told in refused(root, **keys).received
    assert paired(root, images="a/*", masks="b/*") == [
        (f"a/{i}.png", f"b/{i}.png") for i in (1, 2, 3)
    ]


def test_numbers_pair_only_where_no_name_does_and_who_is_alone_is_named_on_both_sides(
    tree, refused
):
    files = ["north_1", "north_2", "south_3"]
    root = tree(
        *(f"images/{name}.png" for name in (*files, "north_7")),
        *(f"masks/{name}.png" for name in (*files, "south_7")),
    )
    received = refused(root).received
    assert (
        "1 image without a mask" in received
        and str(root / "images/north_7.png") in received
    )
    assert (
        "1 mask without an image" in received
        and str(root / "masks/south_7.png") in received
    )


def test_names_without_a_number_have_no_partner_by_number(tree, refused):
    root = tree("images/a.png", "images/b2.png", "masks/c.png", "masks/d2.png")
    assert "2 images without a mask" in refused(root).received


def test_images_of_one_patient_are_no_partners_of_masks_of_another(tree, refused):
    root = tree(
        "images/patient1_a{}.png",
        "masks/patient2_a{}.png",
        "images/patient1_b.png",
        "masks/c.png",
    )
    assert "4 images without a mask" in refused(root).received
