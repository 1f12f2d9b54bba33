"""The files of a folder: images, others, and words in their names."""

import os
import socket

import pytest

from scalestudy.data.left_out import LeftOut
from scalestudy.data.sources.files import NO_IMAGE, Tree, role, split_of, strip_suffix


def names(files):
    return [file.name for file in files]


def test_images_and_others_are_found_at_any_depth_but_not_those_of_the_system(tree):
    root = tree(
        "b.PNG",
        "a/1.png",
        "a/b/2.jpg",
        "a/notes.txt",
        "x.heic",
        ".git/x.png",
        "._1.png",
        "@eaDir/1.png",
    )
    found = Tree.of(root)
    assert names(found.images) == ["1.png", "2.jpg", "b.PNG"]
    assert names(found.others) == ["notes.txt", "x.heic"]


def test_links_are_followed_but_not_in_a_circle(tree, tmp_path):
    root = tree("a/1.png")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "2.png").touch()
    (root / "linked").symlink_to(tmp_path / "elsewhere")
    (root / "3.png").symlink_to(root / "a" / "1.png")
    (root / "a" / "back").symlink_to(root)
    assert names(Tree.of(root).images) == ["3.png", "1.png", "2.png"]


def test_of_links_to_one_folder_the_first_by_name_is_read(tree, tmp_path):
    root = tree("2.png")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "1.png").touch()
    for name in "cab":
        (root / name).symlink_to(tmp_path / "elsewhere")
    assert (
        names(Tree.of(root).images) == ["2.png", "1.png"]
        and Tree.of(root).images[1].parent.name == "a"
    )


def test_a_pipe_a_socket_a_device_and_a_broken_link_are_no_images(tree, monkeypatch):
    monkeypatch.chdir(tree("1.png"))
    os.mkfifo("2.png")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("3.png")
    os.symlink("/dev/null", "4.png")
    os.symlink("gone.png", "5.png")
    found = Tree.of(tree())
    assert (names(found.images), len(found.others)) == (["1.png"], 4)


def test_many_are_counted_and_the_first_are_named_without_control_characters(tree):
    root = tree("1.png", "a\x1b[2J\n.txt")
    os.close(os.open(os.fsencode(root) + b"/\xff.txt", os.O_CREAT))
    (left,) = Tree.of(root).left_out({root / "1.png"})
    assert str(left) == rf"2 left out ({NO_IMAGE}): a\x1b[2J\n.txt, \xff.txt"
    tree(*(f"{i}.txt" for i in range(9)))
    (left,) = Tree.of(root).left_out({root / "1.png"})
    assert left == LeftOut(NO_IMAGE, 11, tuple(f"{i}.txt" for i in range(5)))
    assert str(left).endswith("4.txt, ...")


@pytest.mark.parametrize(
    ("function", "known"),
    [
        (
            role,
            {
                "images": ("image", None),
                "train_images": ("image", "train"),
                "trainMasks": ("mask", "train"),
                "image_masks": ("mask", None),
                "val2017": (None, "validation"),
                "JPEGImages": ("image", None),
                "ground-truth": ("mask", None),
                "no_mask": (None, None),
                "train_test": (None, None),
                "mask 3 layers": (None, None),
                "": (None, None),
            },
        ),
        (
            strip_suffix,
            {
                "a_mask": ("a", "mask"),
                "img12": ("12", "image"),
                "mask_a": ("a", "mask"),
                "a.seg": ("a", "mask"),
                "a-ground_truth": ("a", "mask"),
                "mask": ("mask", None),
                "unmasked": ("unmasked", None),
                "labrador": ("labrador", None),
                "maxy": ("maxy", None),
            },
        ),
        (
            split_of,
            dict.fromkeys(("train", "Training", "train2017", "stage1_train"), "train"),
        ),
        (split_of, {"test_set": "test", "valid": "validation"}),
        (split_of, dict.fromkeys(("test1", "trains", "dataset", "train_masks"))),
    ],
)
def test_words_of_names_tell_roles_and_splits(function, known):
    assert {name: function(name) for name in known} == known
