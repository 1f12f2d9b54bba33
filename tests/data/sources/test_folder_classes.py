"""A folder with one subfolder of images per class."""

import numpy as np
import pytest

from scalestudy.util.errors import UserError


def test_classes_are_named_by_their_folders_in_order(class_folder, ready):
    prepared = ready(class_folder({"cat": 2, "ant": 3, "bee": 1}))
    assert prepared.kind == "classes"
    assert prepared.class_names == ("ant", "bee", "cat")
    assert prepared.targets.tolist() == [0, 0, 0, 1, 2, 2]
    assert prepared.targets.dtype == np.int32
    assert prepared.names[3] == "bee/0.png"


def test_folders_may_bring_the_split_and_lack_a_class_in_it(class_folder, ready):
    class_folder({"a": 2, "b": 3}, at="set/train")
    root = class_folder({"b": 2}, at="set/test").parent
    prepared = ready(root)
    assert prepared.given == {"train": (0, 5), "test": (5, 7)}
    assert prepared.targets.tolist() == [0, 0, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("where", ["train", "test"])
def test_an_empty_class_is_named(class_folder, ready, where):
    for split in ("train", "test"):
        root = class_folder({"a": 2, "b": 2}, at=f"set/{split}").parent
    for file in (root / where / "b").iterdir():
        file.unlink()
    with pytest.raises(UserError, match=f"{where}/b"):
        ready(root)


def test_one_class_is_too_few(class_folder, ready):
    with pytest.raises(UserError, match="at least 2 classes"):
        ready(class_folder({"a": 4}))


def test_a_few_of_another_format_or_size_are_named(class_folder, ready, save):
    root = class_folder({"a": 60, "b": 60})
    save(root / "a" / "none.gif", np.zeros((6, 8), np.uint8))
    save(root / "b" / "wide.png", np.zeros((6, 9), np.uint8))
    remarks = ready(root, image_size=(6, 8)).remarks
    assert [remark.rpartition(": ")[2] for remark in remarks] == ["a/none.gif", "b/wide.png"]
    assert "GIF" in remarks[0] and "6 x 9" in remarks[1]
    save(root / "b" / "wider.png", np.zeros((6, 10), np.uint8))
    save(root / "b" / "widest.png", np.zeros((6, 11), np.uint8))
    assert len(ready(root, image_size=(6, 8)).remarks) == 1
