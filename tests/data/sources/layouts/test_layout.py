"""The folders of splits are known by their usual names."""

import pytest

from scalestudy.data.sources.layouts.names import split_of


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train", "train"),
        ("Training", "train"),
        ("train2017", "train"),
        ("stage1_train", "train"),
        ("test_set", "test"),
        ("valid", "validation"),
        ("test1", None),
        ("trains", None),
        ("dataset", None),
        ("train_masks", None),
    ],
)
def test_splits_are_told_by_the_names_of_folders(name, split):
    assert split_of(name) == split
