"""The counts that `data prepare` prints for each split."""

from data_settings import data_of
from scalestudy.data.splits.split import counts, stored_split, validation_of


def told(prepared, **keys):
    return [
        str(each)
        for each in counts(prepared, stored_split(prepared, validation_of(data_of("set", **keys)), 0))
    ]


def test_each_side_tells_its_samples_of_every_class(class_folder, ready):
    class_folder({"ant": 3, "bee": 5}, at="set/train")
    root = class_folder({"bee": 2}, at="set/test").parent
    assert told(ready(root), validation=0.5) == [
        "train: 4 (ant 1, bee 3)",
        "validation: 4 (ant 2, bee 2)",
        "test: 2 (ant 0, bee 2)",
    ]


def test_masks_have_no_classes_and_groups_are_counted(mask_folder, ready):
    root = mask_folder(6)
    assert told(ready(root), validation=0.5) == ["train: 3", "validation: 3"]
    assert told(ready(root, group_pattern="s."), folds=2) == [
        "train: 3 in 3 groups",
        "validation: 3 in 3 groups",
    ]
