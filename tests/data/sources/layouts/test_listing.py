"""Samples of any layout: ordered by split, in groups that no split divides."""

import numpy as np
import pytest

from data_settings import data_of
from scalestudy.data.sources.layouts.find import list_folder
from scalestudy.data.split import stored_split
from scalestudy.util.errors import UserError


@pytest.mark.parametrize("pattern", ["s([0-2])", "images/s([0-2])"])
def test_groups_are_found_in_names_and_paths_and_a_name_without_one_is_refused(mask_folder, pattern):
    root = mask_folder(3)
    assert list_folder(root, data_of(root, group_pattern=pattern)).groups == ["0", "1", "2"]
    root = mask_folder(4)
    with pytest.raises(UserError, match=r"images/s3\.png"):
        list_folder(root, data_of(root, group_pattern=pattern))


def test_groups_are_stored_and_no_split_parts_them(mask_folder, ready):
    prepared = ready(mask_folder(12), group_pattern="^s(1|.)")
    assert prepared.groups == ("0", "1", "1", "1", "2", "3", "4", "5", "6", "7", "8", "9")
    split = stored_split(prepared, 0.25, 3)
    assert len(split.validation) == 3
    sides = [{prepared.groups[row] for row in side} for side in (split.train, split.validation)]
    assert not sides[0] & sides[1]


def test_a_changed_group_in_a_table_makes_another_set(tmp_path, save, ready):
    root = tmp_path / "set"
    for number in range(4):
        save(root / f"{number}.png", np.full((1, 1), number, np.uint8))
    for last in "ab":
        rows = [f"{number}.png,c{number % 2},{'aab'[number] if number < 3 else last}" for number in range(4)]
        (root / "labels.csv").write_text("\n".join(["file,label,patient", *rows]))
        assert ready(root).groups == ("a", "a", "b", last)
