"""Images in Parquet files, as Hugging Face stores them."""

import io
import json

import numpy as np
import polars as pl
import pytest
from PIL import Image

from scalestudy.util.errors import UserError


def encoded(value, suffix="PNG"):
    stream = io.BytesIO()
    Image.fromarray(np.full((4, 6), value, np.uint8)).save(stream, suffix)
    return {"bytes": stream.getvalue(), "path": f"{value}.png"}


@pytest.fixture
def parquet(tmp_path):
    """Write a file with a column of images and other columns."""

    def write(name, columns, names=()):
        file = tmp_path / "set" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        features = {"label": {"names": list(names), "_type": "ClassLabel"}}
        told = {"huggingface": json.dumps({"info": {"features": features}})} if names else None
        pl.DataFrame(columns).write_parquet(file, metadata=told)
        return tmp_path / "set"

    return write


def test_classes_have_the_names_and_the_splits_that_the_files_say(parquet, ready, tmp_path):
    images = [encoded(10), encoded(20), encoded(30)]
    parquet("data/train-00000-of-00001.parquet", {"image": images, "label": [1, 0, 1]}, ["ant", "bee"])
    root = parquet("data/test-00000-of-00001.parquet", {"image": images[:1], "label": [0]}, ["ant", "bee"])
    for name in ("README.md", "data/.lock"):
        (root / name).touch()
    prepared = ready(root)
    assert prepared.class_names == ("ant", "bee")
    assert [each.names for each in prepared.left_out] == [("README.md",), ("data/.lock",)]
    assert prepared.targets.tolist() == [1, 0, 1, 0]
    assert prepared.inputs[:, 0, 0, 0].tolist() == [10, 20, 30, 10]
    assert prepared.given == {"train": (0, 3), "test": (3, 4)}
    assert "Parquet" in prepared.understood
    assert ready(root, on_progress=pytest.fail) == prepared


def test_texts_are_classes_and_images_are_masks(parquet, ready):
    assert ready(parquet("a.parquet", {"image": [encoded(1), encoded(2)], "label": ["x", "y"]})).classes == 2


def test_a_column_of_images_may_be_the_masks(parquet, ready):
    masks = [encoded(0), encoded(255)]
    prepared = ready(parquet("train.parquet", {"image": [encoded(1), encoded(2)], "mask": masks}))
    assert prepared.kind == "masks"
    assert prepared.targets[:, 0, 0].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"image": [encoded(1)] * 2, "caption": ["x", "y"]}, "image, caption in"),
        ({"image": [encoded(1)] * 2, "label": ["x", None]}, "None in row 1"),
        ({"image": [encoded(1), {"bytes": None, "path": "/home/a.png"}], "label": ["x", "y"]}, "row 1"),
        ({"image": [encoded(1), {"bytes": b"no", "path": "a.png"}], "label": ["x", "y"]}, "train-000001.png"),
    ],
)
def test_rows_that_cannot_be_samples_are_named(parquet, ready, columns, told):
    with pytest.raises(UserError) as refused:
        ready(parquet("train.parquet", columns))
    assert told in refused.value.received


def test_damaged_images_that_it_goes_without_are_told_now_and_each_time_again(parquet, ready):
    images = [encoded(value) for value in (1, 2, 3, 4)]
    images[1]["bytes"] = images[1]["bytes"][:40]
    masks = [encoded(value) for value in (0, 255, 255, 0)]
    root = parquet("train.parquet", {"image": images, "mask": masks})
    prepared = ready(root, skip_bad=True)
    assert prepared.targets[:, 0, 0].tolist() == [0, 1, 0]
    assert "masks of 0 and 255" in prepared.understood
    for each in (prepared, ready(root, skip_bad=True, on_progress=pytest.fail)):
        assert [left.names for left in each.left_out] == [("train/train-000001.png",)]


def test_a_column_of_groups_can_be_said(parquet, ready):
    root = parquet("a.parquet", {"image": [encoded(1)] * 3, "label": ["x", "y", "x"], "patient": [7, 7, 9]})
    assert ready(root, group_column="patient").groups == ("7", "7", "9")
    with pytest.raises(UserError, match="'patients'"):
        ready(root, group_column="patients")
