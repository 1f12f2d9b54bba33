"""A prepared folder is opened completely or refused by name."""

import json
import os
import shutil

import numpy as np
import pytest

from data_settings import data_of
from few_digits import few_digits
from scalestudy.data.loader import Stored
from scalestudy.data.preparation import prepare
from scalestudy.data.store.prepared import Prepared, Ragged, class_counts, weights_of
from scalestudy.util.errors import UserError


@pytest.fixture
def folder(mask_folder, ready):
    return ready(mask_folder()).path


def refused(folder):
    with pytest.raises(UserError) as caught:
        Prepared.open(folder)
    assert str(folder) in caught.value.received
    assert "Delete that folder" in caught.value.action
    return caught.value.received


def rewrite(folder, change):
    file = folder / "meta.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))


def test_groups_are_given_one_a_sample(folder):
    rewrite(folder, {"groups": ["a", "a", "b", "b"]})
    assert Prepared.open(folder).groups == ("a", "a", "b", "b")
    rewrite(folder, {"groups": ["a"]})
    assert "1 groups for 4 samples" in refused(folder)


@pytest.mark.parametrize("name", ["meta.json", "inputs.npy", "targets.npy"])
def test_a_missing_or_truncated_file_is_refused(folder, name):
    os.truncate(folder / name, (folder / name).stat().st_size - 3)
    refused(folder)
    (folder / name).unlink()
    assert name in refused(folder)


def test_a_moved_folder_opens_where_it_is(folder, tmp_path):
    moved = shutil.move(folder, tmp_path / "elsewhere")
    assert Prepared.open(moved).inputs.shape == (4, 6, 8, 1)


@pytest.mark.parametrize(
    "change",
    [
        *(
            {"given": []},
            {"left_out": 3},
            {"left_out": [{}]},
            {"names": 7},
            {"input_shape": None},
        ),
        *({"count": -1}, {"schema_version": 99}),
    ],
    ids=str,
)
def test_a_manifest_of_other_things_or_another_version_is_refused(folder, change):
    rewrite(folder, change)
    received = refused(folder)
    assert "schema_version" not in change or "99" in received


ROWS = [[1, 2, 3], [4], [], [5, 6]]


@pytest.fixture
def ragged():
    lengths = [len(row) for row in ROWS]
    return Ragged(
        np.array([one for row in ROWS for one in row], np.int32),
        np.cumsum([0, *lengths]),
    )


@pytest.mark.parametrize(("rows", "length"), [([1, 3], 2), ([0, 1], 3), ([2], 1)])
def test_sequences_are_padded_with_zeros_to_the_longest_of_their_batch(
    ragged, rows, length
):
    chosen = np.array(rows)
    shape, dtype = ragged.form(chosen)
    assert (shape, dtype) == ((length,), np.int32)
    into = np.full((len(rows), *shape), -1, dtype)
    ragged.copy(chosen, into)
    assert into.tolist() == [
        ROWS[row] + [0] * (length - len(ROWS[row])) for row in rows
    ]


def test_a_row_that_is_not_there_is_an_error(ragged):
    with pytest.raises(IndexError, match="4 to 4 of 4"):
        ragged.copy(np.array([4]), np.zeros((1, 3), np.int32))


def test_a_reader_asks_each_call_anew_for_the_length_and_others_stay_fixed(ragged):
    reader = Stored({"words": ragged, "age": np.arange(4.0)}, np.arange(4))
    inputs, targets = reader.forms(np.array([0, 1]))
    assert inputs["words"][0] == (3,) and inputs["age"][0] == () and targets[0] == ()
    assert reader.forms(np.array([1]))[0]["words"][0] == (1,)


@pytest.fixture
def digits(tmp_path):
    return prepare(data_of(few_digits(tmp_path, 100), cache=tmp_path / "cache"))


def test_balanced_weights_are_scikit_learns_of_the_given_rows(digits):
    from sklearn.utils.class_weight import compute_class_weight

    rows = np.arange(10, 90)
    labels = np.asarray(digits.targets)[rows]
    expected = compute_class_weight("balanced", classes=np.arange(10), y=labels)
    found = weights_of("balanced", digits, rows)
    assert found == pytest.approx(expected)
    assert np.mean([found[label] for label in labels]) == pytest.approx(1)


def test_pixels_of_masks_are_counted_without_padding(mask_folder, ready):
    masked = ready(mask_folder(3), image_size=(8, 8))
    assert masked.ignore is not None
    assert class_counts(masked, np.array([2, 0])).tolist() == [64, 32]
    assert weights_of("balanced", masked, np.arange(3)) == pytest.approx((0.75, 1.5))


@pytest.mark.parametrize(
    ("asked", "told", "action"),
    [
        (
            (1.0, 2.0),
            r"10 class weights.*\(0, 1, 2",
            "Correct class_weights under [train].",
        ),
        (
            (0.0,) * 10,
            r"10 class weights.*\(0, 1, 2",
            "Correct class_weights under [train].",
        ),
        ("balanced", "none of 3", "class_weights = [1.0, 2.0]"),
    ],
)
def test_weights_of_other_classes_none_above_0_and_a_class_that_does_not_occur_are_refused(
    digits, asked, told, action
):
    with pytest.raises(UserError, match=told) as error:
        weights_of(asked, digits, np.flatnonzero(np.asarray(digits.targets) != 3))
    assert action in error.value.action
