"""A folder without a layout is refused with what lies in or beside it that would do, ready to paste."""

import re
import tomllib
from pathlib import Path

import pytest

from data_settings import data_of
from scalestudy.data.sources.layouts import list_samples


def keys_in(text):
    """Return the first keys that a message gives: `source = "…", label_column = "…"`."""
    written, _, _ = text.partition("Otherwise")
    found = re.findall(r"(\w+) = (\"[^\"]*\"|'[^']*')", written)
    pairs = dict(reversed(found))
    return tomllib.loads("\n".join(f"{key} = {value}" for key, value in pairs.items()))


BREEDS = "id,breed,age\n" + "".join(
    f"a{i},{'boxer' if i % 2 else 'pug'},{i}.5\n" for i in range(1, 5)
)


@pytest.mark.parametrize("below", ["", "train"])
def test_a_table_in_or_beside_the_folder_is_named_with_its_columns(
    tree, refused, listed, below
):
    root = tree("train/a{}.jpg", "train/a4.jpg", "test/b1.jpg")
    (root / "labels.csv").write_text(BREEDS)
    error = refused(root / below)
    keys = keys_in(error.action)
    assert keys["source"] == str(root / "labels.csv")
    assert keys["label_column"] == "breed"
    assert len(listed(Path(keys.pop("source")), **keys).samples) == 4


def test_a_file_of_arrays_in_the_folder_is_named(tree, refused):
    root = tree("mnist.npz")
    assert keys_in(refused(root).action) == {"source": str(root / "mnist.npz")}


def test_a_table_without_usual_columns_is_refused_with_its_columns_and_those_that_would_do(
    tree, refused
):
    root = tree("train/a{}.jpg", "train/a4.jpg")
    (root / "labels.csv").write_text(BREEDS)
    error = refused(root / "labels.csv")
    assert all(name in error.received for name in ("id", "breed", "age"))
    assert keys_in(error.action)["label_column"] == "breed"


def test_a_column_of_files_with_an_unusual_name_is_named_too(tree, refused):
    root = tree("train/a{}.jpg", "train/a4.jpg")
    (root / "labels.csv").write_text(BREEDS.replace("id,", "scan,"))
    assert keys_in(refused(root).action)["file_column"] == "scan"


@pytest.mark.parametrize(
    "text",
    [
        "id,breed\nz1,pug\nz2,pug\n",
        "id,weight\na1,0.31\na2,0.72\na3,1.05\n",
        "id\na1\na2\n",
        "\0\n",
        "",
    ],
)
def test_a_table_that_names_no_images_or_no_classes_is_not(tree, refused, text):
    root = tree("a{}.jpg")
    (root / "labels.csv").write_text(text)
    assert "labels.csv" not in refused(root).action


@pytest.mark.parametrize(
    ("names", "classes"),
    [
        (("cat.{}.jpg", "dog.{}.jpg"), ["cat", "dog"]),
        (("great_dane_{}.jpg", "pug_{}.jpg"), ["great_dane", "pug"]),
        (("0_{}.png", "1_{}.png"), ["0", "1"]),
        (("{}-left.png", "{}-right.png"), ["left", "right"]),
    ],
)
def test_classes_in_the_names_of_files_are_found_with_their_pattern(
    tree, refused, listed, names, classes
):
    root = tree(*names)
    pattern = keys_in(refused(root).action)["label_pattern"]
    assert listed(root, label_pattern=pattern).classes == classes


def test_names_that_differ_in_numbers_alone_hold_no_class(tree, refused):
    assert "label_pattern" not in refused(tree("scan{}.png")).action


@pytest.mark.parametrize(
    ("files", "below"),
    [
        (("train/{}.png", "train_masks/{}.png"), "train"),
        (("set/train/images/{}.png", "set/train/masks/{}.png"), "set/train/images"),
        (("Bilder/{}.png", "Masken/{}.png"), "Masken"),
    ],
)
def test_the_folder_around_is_named_if_it_can_be_read(tree, refused, files, below):
    root = tree(*files)
    source = Path(keys_in(refused(root / below).action)["source"])
    assert len(list_samples(source, data_of(source)).samples) == 3


def test_a_single_folder_of_images_is_no_class_and_a_table_beside_it_is_named(
    tree, refused
):
    root = tree("pictures/a{}.jpg", "pictures/a4.jpg")
    (root / "labels.csv").write_text(BREEDS)
    error = refused(root)
    assert "at least 2 classes" in error.expected
    assert keys_in(error.action)["label_column"] == "breed"


def test_where_nothing_would_do_the_patterns_are_explained(tree, refused):
    error = refused(tree("a.png"))
    assert error.action.startswith("Say where images and masks are: `images =")
