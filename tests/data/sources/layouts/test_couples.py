"""Folders of images and masks whose names are not the usual ones."""

import numpy as np
import pytest

from scalestudy.data.sources.files import Directory
from scalestudy.data.sources.layouts.couples import find_couples


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
    ("images", "masks"),
    [("micrographs", "masks"), ("SEM", "labels"), ("tif", "mask_png"), ("Proben", "Annotated")],
)
def test_a_folder_named_like_masks_pairs_with_any_other(tree, images, masks):
    assert names_of(tree(f"{images}/a{{}}.tif", f"{masks}/a{{}}.png")) == {"": (images, masks)}


def test_masks_pair_with_the_only_folder_of_the_same_file_names(tree):
    root = tree("SEM/a{}.tif", "figures/f{}.png", "masks/a{}.png")
    assert names_of(root) == {"": ("SEM", "masks")}


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


def test_folders_with_the_same_file_names_and_many_values_are_classes_and_the_other_reading_is_said(
    drawn, listed
):
    listing = listed(drawn("cats", "dogs"))
    assert listing.classes == ["cats", "dogs"]
    assert 'masks = "dogs/*"' in listing.understood


def test_two_folders_of_few_values_are_classes(drawn, listed):
    assert listed(drawn("open", "closed", values=(0, 255))).kind == "classes"


def test_classes_of_other_file_names_are_not_compared(drawn, listed):
    root = drawn("cats", names="cat{}.png")
    drawn("empty", values=(0, 255), names="empty{}.png")
    assert listed(root).kind == "classes"


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


def test_classes_of_which_one_is_blank_stay_classes(drawn, listed):
    root = drawn("cells")
    drawn("blank", values=(7,))
    assert listed(root).classes == ["blank", "cells"]
