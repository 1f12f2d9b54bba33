"""Files that cannot be a data set are refused by name; mask folders beside classes are no class."""

import os

import numpy as np
import pytest
from PIL import Image

from data_settings import data_of
from scalestudy.data.store.prepare import find_set, prepare
from scalestudy.util.errors import UserError


def image(path, value=7):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        Image.fromarray(np.full((8, 8), value, np.uint8)).save(file, "PNG")


@pytest.fixture
def images(tmp_path):
    for number in range(3):
        image(tmp_path / "set" / f"{number}.png", number)
    return tmp_path / "set"


def refused(root, tmp_path, **keys):
    with pytest.raises(UserError) as caught:
        prepare(data_of(root, cache=tmp_path / "cache", **keys))
    return caught.value


def test_a_table_of_headings_alone_is_refused(images, tmp_path):
    (images / "labels.csv").write_text("file,label\n")
    assert "labels.csv" in refused(images, tmp_path).received


def test_a_column_that_comes_twice_is_refused(images, tmp_path):
    (images / "labels.csv").write_text("file,label,label\n0.png,a,b\n1.png,b,a\n2.png,a,a\n")
    assert "'label' 2 times" in refused(images, tmp_path).received


def test_a_name_that_is_not_utf_8_is_named(tmp_path):
    for name in ("a/0", "a/1", "b/0"):
        image(tmp_path / "set" / f"{name}.png")
    image(os.fsencode(tmp_path / "set" / "b") + b"/\xff.png")
    assert "udcff.png" in refused(tmp_path / "set", tmp_path).received


def test_an_empty_source_is_refused(tmp_path):
    assert "empty" in refused("  ", tmp_path).received


def test_folders_of_masks_beside_classes_are_left_out(tmp_path):
    for name in ("ants/0", "ants/1", "bees/0", "bees/1", "annotations/0"):
        image(tmp_path / "set" / f"{name}.png")
    data = data_of(tmp_path / "set", cache=tmp_path / "cache")
    assert prepare(data).class_names == ("ants", "bees")
    assert [group.names for group in find_set(data).left_out] == [("annotations/",)]


@pytest.mark.parametrize(
    ("source", "size"),
    [("indents:99999999999999", (64, 64)), ("indents:4", (65536, 65536)), ("digits", (65536, 65536))],
)
def test_synthetic_data_beyond_memory_or_disk_are_refused_at_once(tmp_path, source, size):
    assert f"{size[0]:,} x {size[1]:,}" in refused(source, tmp_path, image_size=size).received
