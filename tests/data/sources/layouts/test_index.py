"""Images below a folder are found as tables name them."""

import pytest

from scalestudy.data.sources.layouts.index import Index, images_below
from scalestudy.data.sources.left_out import LeftOut, Leftovers
from scalestudy.util.errors import UserError


def test_an_image_is_found_by_path_by_name_without_extension_and_in_other_capitals(tree):
    root = tree("a/one.png", "b/two.JPG", "labels.csv", "b/list.csv")
    index = Index(root)
    for name in ("a/one.png", "one.png", "one", "ONE.PNG", "C:\\data\\a\\one.png", "./a/one.png"):
        assert index.find(name, root / "labels.csv", "") == root / "a" / "one.png", name
    assert index.find("two.jpg", root / "b" / "list.csv", "") == root / "b" / "two.JPG"
    assert index.find("three.png", root / "labels.csv", "") is None
    assert index.find("../../etc/one.gz", root / "labels.csv", "") is None


def test_of_two_with_one_name_the_path_or_the_split_tells_which(tree):
    root = tree("train/a.png", "val/a.png", "t.csv")
    index = Index(root)
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
    Index(root).leave_rest({root / "a" / "1.png"}, [root / "t.csv"], "unwanted", left)
    assert set(left.found()) == {
        LeftOut("unwanted", 1, ("a/2.png",)),
        LeftOut("hidden or of the system", 3, ("a/.git/", "a/._1.png", "Thumbs.db")),
        LeftOut("no image by their name", 1, ("a/notes.txt",)),
        LeftOut("beside the folders of samples", 1, ("readme.md",)),
    }
