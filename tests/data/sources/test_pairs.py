"""Images with masks: folders with usual names, splits and groups, one shared folder, and patterns."""

import numpy as np
import pytest

from scalestudy.data.sources.files import Directory
from scalestudy.data.sources.pairs import find_couples


@pytest.mark.parametrize(
    ("images", "masks"),
    [
        ("images", "masks"),
        ("Images", "MASKS"),
        ("image", "label"),
        ("x", "y"),
        ("raw", "gt"),
        ("images", "annotations"),
        ("JPEGImages", "SegmentationClass"),
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
        ("img1{}.tif", "lab1{}.tif", "without words like image and mask (img11.tif with lab11.tif)"),
        ("a_{}_img.png", "a_{}_GT.png", "without words like image and mask"),
        (
            "frame-{}.png",
            "truth of {}.png",
            "by the numbers in their names (frame-1.png with truth of 1.png)",
        ),
    ],
)
def test_files_pair_by_name_else_without_words_else_by_number(tree, listed, paired, image, mask, told):
    root = tree(f"image/{image}", f"label/{mask}")
    assert paired(root) == [(f"image/{image.format(i)}", f"label/{mask.format(i)}") for i in (1, 2, 3)]
    assert told in listed(root).understood


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (("image/a{}.png", "label/b1.png", "label/b3.png"), "image/a2.png"),
        (("image/a1.png", "image/b2.png", "label/c1.png", "label/c2.png"), "image/a1.png"),
        (("a{}.png", "a1_mask.png", "a2_mask.png"), "a3.png"),
    ],
    ids=["a missing mask", "numbered in several ways", "in one folder"],
)
def test_files_without_the_other_of_the_pair_are_named_and_not_guessed(tree, refused, names, missing):
    root = tree(*names)
    assert str(root / missing) in refused(root).received


def test_two_folders_of_masks_are_refused_and_patterns_say_which(tree, refused, paired):
    root = tree("image/{}.png", "label/{}.png", "gt/{}.png")
    error = refused(root)
    assert "gt/ and label/" in error.received
    assert "`masks =" in error.action
    assert len(paired(root, images="image/*", masks="gt/*")) == 3


def test_classes_named_like_masks_stay_classes(tree, labelled):
    assert labelled(tree("mask/{}.png", "no_mask/{}.png"))["mask/1.png"] == "mask"


def test_a_layout_can_be_said(tree, labelled, refused):
    root = tree("x/{}.png", "y/{}.png")
    assert labelled(root, layout="classes")["y/2.png"] == "y"
    assert str(root) in refused(root, layout="table").received


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
def test_splits_in_or_around_the_names_of_folders_are_kept(tree, paired, listed, images, masks):
    root = tree(*(each.format(split) for split in ("train", "val") for each in (images, masks)))
    assert listed(root).given == {"train": (0, 1), "validation": (1, 2)}
    assert paired(root) == [(images.format(split), masks.format(split)) for split in ("train", "val")]
    shown = [each.format("train").rpartition("/")[0] for each in (images, masks)]
    understood = f"{shown[0]}/ and {shown[1]}/ (likewise other splits), paired by name"
    assert listed(root).understood == understood


def test_a_test_set_without_masks_is_left_out_and_told_with_what_lies_beside(tree, listed):
    root = tree("train/a.png", "train_masks/a.png", "readme.txt", "test/a.png")
    assert [str(each) for each in listed(root).left_out] == [
        "1 left out (beside the folders of samples): readme.txt",
        "1 left out (a split without masks): test/",
    ]


@pytest.mark.parametrize("alone", ["val/images/a.png", "val/masks/a.png", "val/cat/a.png"])
def test_a_validation_set_of_another_layout_is_refused(tree, refused, alone):
    root = tree("train/images/a.png", "train/masks/a.png", alone)
    error = refused(root)
    assert str((root / alone).parent) in error.received and "the same layout" in error.expected


def test_a_mask_for_each_object_of_each_image(tree, listed):
    root = tree("i1/images/i1.png", "i1/masks/m{}.png", "i2/images/i2.png", "i2/masks/n1.png")
    listing = listed(root)
    assert [(sample.image.name, len(sample.files)) for sample in listing.samples] == [
        ("i1.png", 4),
        ("i2.png", 2),
    ]
    assert listing.classes == ["background", "foreground"]
    assert "4 objects in 2 images" in listing.understood
    assert listing.groups is None


def test_a_test_set_of_objects_without_masks_is_left_out_and_told(tree, listed):
    root = tree(
        "stage1_train/a/images/a.png",
        "stage1_train/a/masks/m{}.png",
        "stage1_test/b/images/b.png",
        "stage1_train_labels.csv",
    )
    listing = listed(root)
    assert listing.given == {"train": (0, 1)}
    assert [str(each) for each in listing.left_out] == [
        "1 left out (beside the folders of samples): stage1_train_labels.csv",
        "1 left out (a split without masks): stage1_test/",
    ]


def test_an_image_without_masks_is_named(tree, refused):
    root = tree("i{}/images/a.png", "i1/masks/m.png", "i3/masks/m.png")
    assert f"{root / 'i2'}/" in refused(root).received


@pytest.fixture
def cells(tmp_path, save):
    """Two images of 4 x 6 pixels; the first has two objects that share a pixel."""
    for number in (1, 2):
        save(tmp_path / "set" / f"c{number}" / "images" / "c.png", np.full((4, 6), number, np.uint8))
    for name, rows in (("a", slice(0, 2)), ("b", slice(1, 3))):
        mask = np.zeros((4, 6), np.uint8)
        mask[rows, :2] = 255
        save(tmp_path / "set" / "c1" / "masks" / f"{name}.png", mask)
    save(tmp_path / "set" / "c2" / "masks" / "a.png", np.full((4, 6), 255, np.uint8))
    return tmp_path / "set"


def test_objects_are_joined_to_one_mask(cells, ready):
    prepared = ready(cells)
    assert prepared.class_names == ("background", "foreground")
    assert prepared.targets[0].tolist() == [[1, 1, 0, 0, 0, 0]] * 3 + [[0] * 6]
    assert prepared.targets[1].all()


def test_a_mask_of_an_object_of_another_size_and_one_of_several_values_are_named(cells, refusal, save):
    save(cells / "c1" / "masks" / "b.png", np.zeros((4, 5), np.uint8))
    received = refusal(cells).received
    assert "c1/masks/b.png of 4 x 5 and " in received and "a.png of 4 x 6" in received
    save(cells / "c1" / "masks" / "b.png", np.resize(np.arange(3, dtype=np.uint8), (4, 6)))
    assert "c1/masks/b.png with 3 values" in refusal(cells).received


@pytest.mark.parametrize(
    ("image", "mask"),
    [
        ("a{}.png", "a{}_mask.png"),
        ("a{}.tif", "a{}-GT.tif"),
        ("a{}.png", "a{}.seg.png"),
        ("a{}.png", "mask_a{}.png"),
        ("{}_img.png", "{}_groundtruth.png"),
    ],
)
def test_masks_beside_images_are_told_by_a_word_at_the_end_or_the_beginning(tree, paired, image, mask):
    root = tree(image, mask)
    assert paired(root) == [(image.format(i), mask.format(i)) for i in (1, 2, 3)]


def test_pairs_in_a_folder_for_each_patient_are_groups_or_splits(tree, paired, listed):
    assert listed(tree("p1/images/{}.png", "p1/masks/{}.png")).groups == ["p1"] * 3
    root = tree("p2/images/{}.png", "p2/masks/{}.png")
    assert paired(root)[4] == ("p2/images/2.png", "p2/masks/2.png")
    assert listed(root).groups == ["p1"] * 3 + ["p2"] * 3


def test_folders_of_images_beside_their_masks_are_groups_or_splits(tree, paired, listed):
    root = tree("patient7/s{}.tif", "patient7/s{}_mask.tif", "patient8/s1.tif", "patient8/s1_mask.tif")
    assert paired(root)[3] == ("patient8/s1.tif", "patient8/s1_mask.tif")
    assert listed(root).groups == ["patient7"] * 3 + ["patient8"]
    for folder, split in (("patient7", "train"), ("patient8", "val")):
        (root / folder).rename(root / split)
    assert listed(root).given == {"train": (0, 3), "validation": (3, 4)}


def test_patterns_find_files_in_any_layout(tree, paired, listed):
    root = tree("2020/day{}/scan.png", "2020/drawn/day{}.png", "2020/day1/.scan.png")
    found = paired(root, images="2020/day*/scan.png", masks="2020/drawn/*")
    assert found == [(f"2020/day{i}/scan.png", f"2020/drawn/day{i}.png") for i in (1, 2, 3)]
    assert "by the numbers" in listed(root, images="2020/day*/scan.png", masks="2020/drawn/*").understood


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"images": "a/*.png"}, "no `masks`"),
        ({"images": "a/*.png", "masks": "c/*.png"}, "none in"),
        ({"images": "a/*.png", "masks": "*/1.png"}, "which matches both"),
        ({"images": "/a/*.png", "masks": "b/*"}, "Non-relative patterns"),
    ],
)
def test_patterns_that_find_nothing_or_the_same_are_refused(tree, refused, keys, told):
    assert told in refused(tree("a/{}.png", "b/{}.png"), **keys).received


@pytest.fixture
def drawn(tmp_path, save):
    """Write three images, or masks of `values`, into each of some folders."""

    def make(*folders, values=None, names="s{}.png"):
        for folder in folders:
            for i in range(3):
                image = np.random.default_rng(i).integers(0, 256, (16, 16))
                if values is not None:
                    image = np.asarray(values)[image % len(values)]
                save(tmp_path / "set" / folder / names.format(i), image.astype(np.uint8))
        return tmp_path / "set"

    return make


def names_of(root):
    couples, _ = find_couples(Directory(root))
    return {
        part.split: tuple(
            folder.path.relative_to(root).as_posix() for folder in (couple.images, couple.masks)
        )
        for part, couple in couples.items()
    }


@pytest.mark.parametrize(
    ("images", "masks", "beside"),
    [
        ("micrographs", "masks", ()),
        ("SEM", "labels", ()),
        ("tif", "mask_png", ()),
        ("Proben", "Annotated", ()),
        ("SEM", "masks", ("figures/f{}.png",)),
    ],
)
def test_a_folder_named_like_masks_pairs_with_any_other_of_the_same_file_names(tree, images, masks, beside):
    root = tree(f"{images}/a{{}}.tif", f"{masks}/a{{}}.png", *beside)
    assert names_of(root) == {"": (images, masks)}


def test_several_folders_that_fit_the_masks_are_refused_with_the_lines_to_write(tree, refused, paired):
    root = tree("dapi/a{}.tif", "gfp/a{}.tif", "masks/a{}.png")
    action = refused(root).action
    assert 'images = "dapi/*"' in action and 'masks = "masks/*"' in action
    assert len(paired(root, images="dapi/*", masks="masks/*")) == 3


@pytest.mark.parametrize("values", [(0, 255), (0, 1, 2, 3), (0, 1, 2, 255)])
@pytest.mark.parametrize(("images", "masks"), [("Bilder", "Masken"), ("raw", "binary"), ("b", "a")])
def test_of_two_folders_with_the_same_file_names_the_one_with_few_values_has_the_masks(
    drawn, listed, images, masks, values
):
    root = drawn(images)
    drawn(masks, values=values)
    assert names_of(root) == {"": (images, masks)}
    assert f"{masks}/ has few values" in listed(root).understood


def test_masks_may_have_other_extensions_and_few_colours(drawn, save):
    root = drawn("Bilder", names="s{}.jpg")
    for i in range(3):
        colours = np.array([[0, 0, 0], [255, 0, 0]], np.uint8)[np.arange(256).reshape(16, 16) % 2]
        save(root / "Masken" / f"s{i}.png", colours)
    assert names_of(root) == {"": ("Bilder", "Masken")}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {}),
        ({"values": (0, 255)}, {"values": (0, 255)}),
        ({"names": "cat{}.png"}, {"values": (0, 255), "names": "empty{}.png"}),
        ({}, {"values": (7,)}),
    ],
    ids=["many values", "few values in both", "other file names", "a blank one"],
)
def test_other_folders_are_classes_and_the_other_reading_of_equal_names_is_said(drawn, listed, one, other):
    drawn("cats", **one)
    listing = listed(drawn("dogs", **other))
    assert listing.classes == ["cats", "dogs"]
    assert ('masks = "dogs/*"' in listing.understood) == ("names" not in one)


def test_each_split_may_have_such_folders(drawn):
    root = drawn("train/Bilder", "val/Bilder")
    drawn("train/Masken", "val/Masken", values=(0, 255))
    assert names_of(root) == {
        "train": ("train/Bilder", "train/Masken"),
        "validation": ("val/Bilder", "val/Masken"),
    }


def test_without_any_layout_the_message_shows_the_lines_to_write(drawn, refused):
    action = refused(drawn("images", "after")).action
    assert 'images = "images/*"' in action and 'masks = "after/*"' in action
