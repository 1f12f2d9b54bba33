"""Files that cannot be a data set are refused by name; mask folders beside classes are no class."""

import json
import os

import numpy as np
import pytest
from PIL import Image

from data_settings import data_of
from scalestudy.data.store.prepare import look, prepare
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


@pytest.mark.parametrize("place", ["image_id", "category_id"])
@pytest.mark.parametrize("strange", [[1], {"a": 1}])
def test_coco_ids_that_are_no_numbers_are_refused(images, tmp_path, place, strange):
    annotation = {"id": 1, "image_id": 1, "category_id": 1, "segmentation": [[0, 0, 4, 0, 4, 4]]}
    annotation[place] = strange
    listed = [{"id": number, "file_name": f"{number}.png"} for number in range(3)]
    content = {"images": listed, "annotations": [annotation], "categories": [{"id": 1, "name": "a"}]}
    (images / "annotations.json").write_text(json.dumps(content))
    assert "annotations.json" in refused(images, tmp_path).received


def test_a_name_that_is_not_utf_8_is_named(tmp_path):
    for name in ("a/0", "a/1", "b/0"):
        image(tmp_path / "set" / f"{name}.png")
    image(os.fsencode(tmp_path / "set" / "b") + b"/\xff.png")
    assert "udcff.png" in refused(tmp_path / "set", tmp_path).received


def test_a_name_that_is_not_utf_8_may_be_left_out(tmp_path):
    for name in ("a/0", "a/1", "b/0"):
        image(tmp_path / "set" / f"{name}.png")
    os.close(os.open(os.fsencode(tmp_path / "set") + b"/\xff.txt", os.O_CREAT))
    for _ in range(2):
        made = prepare(data_of(tmp_path / "set", cache=tmp_path / "cache"))
        assert made.left_out[0].names == (r"\xff.txt",)


@pytest.mark.parametrize("content", [b"", b"\0garbage", b"[1, 2]"])
def test_corrupt_annotations_are_named(images, tmp_path, content):
    file = images / "annotations" / "instances_train2017.json"
    file.parent.mkdir()
    file.write_bytes(content)
    assert str(file) in refused(images, tmp_path).received


def test_a_corrupt_parquet_file_is_named(tmp_path):
    file = tmp_path / "set" / "data" / "train-00000-of-00001.parquet"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"PAR1 and no more")
    assert str(file) in refused(tmp_path / "set", tmp_path).received


def test_an_empty_source_is_refused(tmp_path):
    assert "empty" in refused("  ", tmp_path).received


def test_folders_of_masks_beside_classes_are_left_out(tmp_path):
    for name in ("ants/0", "ants/1", "bees/0", "bees/1", "annotations/0"):
        image(tmp_path / "set" / f"{name}.png")
    data = data_of(tmp_path / "set", cache=tmp_path / "cache")
    assert prepare(data).class_names == ("ants", "bees")
    assert [group.names for group in look(data)] == [("annotations/",)]


@pytest.mark.parametrize(
    ("source", "size"),
    [("indents:99999999999999", (64, 64)), ("indents:4", (65536, 65536)), ("digits", (65536, 65536))],
)
def test_synthetic_data_beyond_memory_or_disk_are_refused_at_once(tmp_path, source, size):
    assert f"{size[0]:,} x {size[1]:,}" in refused(source, tmp_path, image_size=size).received


def test_masks_beside_a_single_folder_of_images_are_no_class(tmp_path):
    for name in ("leaves/0", "leaves/1", "annotations/a", "annotations/b"):
        image(tmp_path / "set" / f"{name}.png")
    assert "'leaves'" in refused(tmp_path / "set", tmp_path).received
