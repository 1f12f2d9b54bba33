"""The files of a folder: taken, skipped and listed, or refused before any is opened."""

import os
import socket

import numpy as np
import pytest

from data_settings import data_of
from scalestudy.data.sources.files import (
    BESIDE,
    NO_IMAGE,
    SYSTEM,
    ImageIndex,
    LeftOut,
    Leftovers,
    image_files,
    images_below,
    role,
    split_in,
    split_of,
    strip_suffix,
)
from scalestudy.data.store.preparation import find_set
from scalestudy.data.store.prepared import Prepared
from scalestudy.util.errors import UserError

DOT = np.zeros((1, 1), np.uint8)


def listed(folder):
    left = Leftovers(folder)
    return [file.name for file in image_files(folder, left)], left.groups()


def refusal(folder):
    with pytest.raises(UserError) as refused:
        image_files(folder, Leftovers(folder))
    return refused.value


@pytest.fixture
def folder(class_folder):
    return class_folder({"a": 2}) / "a"


@pytest.mark.parametrize(
    "name",
    [
        *(".DS_Store", "._0.png", "Thumbs.db", "ehthumbs.db", "desktop.ini", ".hidden.png"),
        *("__MACOSX/", ".ipynb_checkpoints/", "@eaDir/", "lost+found/"),
    ],
)
def test_files_and_folders_of_the_system_are_left_out_and_told(folder, save, name):
    save(folder / name / "0.png" if name.endswith("/") else folder / name, DOT, format="PNG")
    assert listed(folder) == (["0.png", "1.png"], (LeftOut(SYSTEM, 1, (name,)),))


def test_what_is_no_image_is_left_out_and_told(folder):
    (folder / "notes.txt").write_text("seen")
    (folder / "logs").mkdir()
    os.mkfifo(folder / "pipe")
    assert listed(folder)[1] == (LeftOut(NO_IMAGE, 3, ("logs/", "notes.txt", "pipe")),)


def test_many_are_counted_and_the_first_are_named_without_control_characters(folder):
    (folder / "a\x1b[2J\n.txt").touch()
    os.close(os.open(os.fsencode(folder) + b"/\xff.txt", os.O_CREAT))
    (left,) = listed(folder)[1]
    assert str(left) == r"2 left out (no image by their name): a\x1b[2J\n.txt, \xff.txt"
    for i in range(9):
        (folder / f"{i}.txt").touch()
    (left,) = listed(folder)[1]
    assert str(left) == "11 left out (no image by their name): 0.txt, 1.txt, 2.txt, 3.txt, 4.txt, ..."


def test_capitals_two_underscores_and_links_are_taken(folder, save, tmp_path):
    save(folder / "__B.PNG", DOT)
    (folder / "c.png").symlink_to(save(tmp_path / "elsewhere" / "c.png", DOT))
    assert listed(folder) == (["0.png", "1.png", "__B.PNG", "c.png"], ())


def test_images_in_folders_inside_are_refused_and_named(folder, save):
    for name in ("x.png", "y.jpg", "z.txt"):
        save(folder / "deep" / "er" / name, DOT, format="PNG")
    error = refusal(folder)
    assert f"{folder / 'deep'}/ (2)" in error.received
    assert "Move the images up" in error.action


def test_a_pipe_a_socket_a_device_and_a_broken_link_are_refused_together(folder, monkeypatch):
    monkeypatch.chdir(folder)
    os.mkfifo("2.png")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("3.png")
    (folder / "4.png").symlink_to("/dev/null")
    (folder / "5.png").symlink_to("gone.png")
    received = refusal(folder).received
    assert all(f"{number}.png" in received for number in (2, 3, 4, 5))


def test_a_few_of_formats_that_are_not_read_are_left_out_and_named(folder):
    for name in ("x.heic", "y.dcm"):
        (folder / name).touch()
    names, left = listed(folder)
    assert names == ["0.png", "1.png"]
    assert [str(each) for each in left] == ["2 left out (of a format that is not read): x.heic, y.dcm"]


def test_an_image_is_found_by_path_by_name_without_extension_and_in_other_capitals(tree):
    root = tree("a/one.png", "b/two.JPG", "labels.csv", "b/list.csv")
    index = ImageIndex(root)
    for name in ("a/one.png", "one.png", "one", "ONE.PNG", "C:\\data\\a\\one.png", "./a/one.png"):
        assert index.find(name, root / "labels.csv", "") == root / "a" / "one.png", name
    assert index.find("two.jpg", root / "b" / "list.csv", "") == root / "b" / "two.JPG"
    assert index.find("three.png", root / "labels.csv", "") is None
    assert index.find("../../etc/one.gz", root / "labels.csv", "") is None


def test_of_two_with_one_name_the_path_or_the_split_tells_which(tree):
    root = tree("train/a.png", "val/a.png", "t.csv")
    index = ImageIndex(root)
    assert index.find("x/val/a.png", root / "t.csv", "train") == root / "train" / "a.png"
    assert index.find("val/a.png", root / "t.csv", "train") == root / "val" / "a.png"
    assert index.find("a", root / "t.csv", "train") == root / "train" / "a.png"
    with pytest.raises(UserError, match=r"train/a\.png and .*val/a\.png"):
        index.find("a.png", root / "t.csv", "")


def test_links_are_followed_but_not_in_a_circle(tree, tmp_path):
    root = tree("a/1.png")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "2.png").touch()
    (root / "linked").symlink_to(tmp_path / "elsewhere")
    (root / "a" / "back").symlink_to(root)
    assert [file.name for file in images_below(root)] == ["1.png", "2.png"]


def test_what_is_neither_taken_nor_a_source_is_told(tree):
    root = tree(
        "a/1.png", "a/2.png", "a/notes.txt", "a/.git/x", "a/._1.png", "t.csv", "readme.md", "Thumbs.db"
    )
    left = Leftovers(root)
    ImageIndex(root).leave_rest({root / "a" / "1.png"}, [root / "t.csv"], "unwanted", left)
    assert set(left.groups()) == {
        LeftOut("unwanted", 1, ("a/2.png",)),
        LeftOut("hidden or of the system", 3, ("a/.git/", "a/._1.png", "Thumbs.db")),
        LeftOut("no image by their name", 1, ("a/notes.txt",)),
        LeftOut("beside the folders of samples", 1, ("readme.md",)),
    }


@pytest.mark.parametrize(
    ("function", "names"),
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
        (split_in, {"instances_train2017": "train", "train_and_test": None}),
        (split_of, dict.fromkeys(("train", "Training", "train2017", "stage1_train"), "train")),
        (split_of, {"test_set": "test", "valid": "validation"}),
        (split_of, dict.fromkeys(("test1", "trains", "dataset", "train_masks"))),
    ],
)
def test_words_of_names_tell_roles_and_splits(function, names):
    assert {name: function(name) for name in names} == names


def test_what_lies_beside_images_and_masks_is_told(mask_folder, ready, save):
    root = mask_folder()
    (root / "readme.txt").touch()
    save(root / "stray.png", DOT)
    save(root / "overlays" / "s0.png", DOT)
    (root / ".git").mkdir()
    told = (LeftOut(SYSTEM, 1, (".git/",)), LeftOut(BESIDE, 3, ("overlays/", "readme.txt", "stray.png")))
    assert find_set(data_of(root)).left_out == told
    prepared = ready(root)
    assert (prepared.count, prepared.left_out) == (4, told)
    assert Prepared.open(prepared.path).left_out == told


def test_what_lies_beside_classes_and_splits_is_told(class_folder, ready, save):
    class_folder({"a": 2, "b": 3}, at="set/train")
    root = class_folder({"b": 2}, at="set/val").parent
    save(root / "extra" / "0.png", DOT)
    save(root / "train" / "stray.png", DOT)
    (left,) = ready(root).left_out
    assert left == LeftOut(BESIDE, 2, ("extra/", "train/stray.png"))
