"""Keys that a source does not use are refused instead of ignored."""

from pathlib import Path

import numpy as np
import pytest

from data_settings import data_of
from scalestudy.data.sources.locate import find_source
from scalestudy.util.errors import UserError


def refusal(source, **keys):
    with pytest.raises(UserError) as refused:
        find_source(data_of(source, **keys), base=Path())
    return refused.value


@pytest.mark.parametrize("key", ["group_column", "split_column"])
def test_columns_of_a_folder_without_a_table(class_folder, key):
    root = class_folder({"a": 2, "b": 2})
    (root / "patients.csv").write_text("file,patient\n0.png,p\n")
    error = refusal(root, **{key: "patient"})
    assert error.received == f"`{key}`" and "one folder of images for each class" in error.expected


@pytest.mark.parametrize(
    "keys", [{"value_range": (0, 4095)}, {"group_pattern": "^p"}, {"colours": {"a": "#000000"}}]
)
def test_arrays_and_made_images_have_no_files(tmp_path, keys):
    arrays = tmp_path / "a.npz"
    np.savez(arrays, x_train=np.zeros((4, 2, 2), np.uint16), y_train=np.arange(4) % 2)
    for source in (arrays, "digits", "indents:4"):
        assert refusal(source, **keys).received == f"`{next(iter(keys))}`"
