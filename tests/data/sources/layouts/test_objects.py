"""A folder for each image, with a mask of each of its objects."""

import numpy as np
import pytest

from scalestudy.util.errors import UserError


def test_a_mask_for_each_object_of_each_image(tree, listed):
    root = tree("i1/images/i1.png", "i1/masks/m{}.png", "i2/images/i2.png", "i2/masks/n1.png")
    found = listed(root)
    assert [(image.name, len(mask.files)) for image, mask in found.masks()] == [("i1.png", 3), ("i2.png", 1)]
    assert found.classes == ["background", "foreground"]
    assert "4 objects in 2 images" in found.understood
    assert found.groups is None


def test_a_split_without_masks_is_left_out_and_told(tree, listed):
    root = tree(
        "stage1_train/a/images/a.png",
        "stage1_train/a/masks/m{}.png",
        "stage1_test/b/images/b.png",
        "stage1_train_labels.csv",
    )
    found = listed(root)
    assert found.given == {"train": (0, 1)}
    assert [str(each) for each in found.left_out] == [
        "1 left out (beside the folders of samples): stage1_train_labels.csv",
        "1 left out (a split without masks): stage1_test/",
    ]


def test_an_image_without_masks_is_named(tree, refused):
    root = tree("i{}/images/a.png", "i1/masks/m.png", "i3/masks/m.png")
    assert f"{root / 'i2'}/" in refused(root).received


def test_pairs_in_a_folder_for_each_patient_are_groups(tree, paired, listed):
    root = tree("p1/images/{}.png", "p1/masks/{}.png", "p2/images/{}.png", "p2/masks/{}.png")
    assert paired(root)[4] == ("p2/images/2.png", "p2/masks/2.png")
    assert listed(root).groups == ["p1"] * 3 + ["p2"] * 3


def test_one_image_and_one_mask_of_its_name_in_each_folder_are_pairs(tree, paired, listed):
    root = tree("p1/images/a.png", "p1/masks/a.png", "p2/images/b.png", "p2/masks/b.png")
    assert paired(root) == [(f"p{i}/images/{n}.png", f"p{i}/masks/{n}.png") for i, n in ((1, "a"), (2, "b"))]
    assert listed(root).classes is None


@pytest.fixture
def cells(tmp_path, save):
    """Two images of 4 x 6 pixels, the first with two objects that share a pixel."""
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
    assert prepared.understood.endswith("; 1 objects lie on others")


def test_a_mask_of_an_object_of_another_size_and_one_of_several_values_are_named(cells, ready, save):
    save(cells / "c1" / "masks" / "b.png", np.zeros((4, 5), np.uint8))
    with pytest.raises(UserError, match=r"c1/masks/b\.png of 4 x 5 and .*a\.png of 4 x 6"):
        ready(cells)
    save(cells / "c1" / "masks" / "b.png", np.resize(np.arange(3, dtype=np.uint8), (4, 6)))
    with pytest.raises(UserError, match=r"c1/masks/b\.png with 3 values"):
        ready(cells)
