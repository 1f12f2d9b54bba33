"""A prepared folder is opened completely or refused by name."""

import json
import os
import shutil

import numpy as np
import pytest
from PIL import Image

from data_settings import data_of
from few_digits import few_digits
from scalestudy.data.loader import Stored
from scalestudy.data.store.preparation import prepare
from scalestudy.data.store.prepared import Prepared, Ragged, class_counts, weights_of
from scalestudy.util.errors import UserError


@pytest.fixture
def folder(mask_folder, ready):
    return ready(mask_folder()).path


def refusal(folder):
    with pytest.raises(UserError) as refused:
        Prepared.open(folder)
    assert str(folder) in refused.value.received
    assert "Delete that folder" in refused.value.action
    return refused.value.received


def test_groups_are_given_one_a_sample(folder):
    file = folder / "meta.json"
    meta = json.loads(file.read_text())
    file.write_text(json.dumps({**meta, "groups": ["a", "a", "b", "b"]}))
    assert Prepared.open(folder).groups == ("a", "a", "b", "b")
    file.write_text(json.dumps({**meta, "groups": ["a"]}))
    assert "1 groups for 4 samples" in refusal(folder)


@pytest.mark.parametrize("name", ["meta.json", "inputs.npy", "targets.npy"])
def test_a_missing_or_truncated_file_is_refused(folder, name):
    size = (folder / name).stat().st_size
    os.truncate(folder / name, size - 3)
    refusal(folder)
    (folder / name).unlink()
    assert name in refusal(folder)


def test_a_folder_of_another_version_is_refused(folder):
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({**meta, "schema_version": 99}))
    assert "99" in refusal(folder)


def test_a_moved_folder_opens_where_it_is(folder, tmp_path):
    moved = shutil.move(folder, tmp_path / "elsewhere")
    assert Prepared.open(moved).inputs.shape == (4, 6, 8, 1)


@pytest.mark.parametrize(
    "change",
    [{"given": []}, {"left_out": 3}, {"left_out": [{}]}, {"names": 7}, {"input_shape": None}, {"count": -1}],
    ids=str,
)
def test_a_manifest_of_other_things_is_refused(folder, change):
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({**meta, **change}))
    refusal(folder)


ROWS = [[1, 2, 3], [4], [], [5, 6]]


@pytest.fixture
def ragged():
    lengths = [len(row) for row in ROWS]
    return Ragged(np.array([one for row in ROWS for one in row], np.int32), np.cumsum([0, *lengths]))


@pytest.mark.parametrize(("rows", "length"), [([1, 3], 2), ([0, 1], 3), ([2], 1)])
def test_sequences_are_padded_with_zeros_to_the_longest_of_their_batch(ragged, rows, length):
    chosen = np.array(rows)
    shape, dtype = ragged.form(chosen)
    assert (shape, dtype) == ((length,), np.int32)
    into = np.full((len(rows), *shape), -1, dtype)
    ragged.copy(chosen, into)
    assert into.tolist() == [ROWS[row] + [0] * (length - len(ROWS[row])) for row in rows]


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


def test_pixels_of_masks_are_counted_without_padding(tmp_path):
    for folder in ("images", "masks"):
        (tmp_path / "set" / folder).mkdir(parents=True)
    mask = np.zeros((10, 20), "uint8")
    mask[:2] = 255
    for number in range(3):
        Image.fromarray(np.full((10, 20), 100, "uint8")).save(tmp_path / f"set/images/{number}.png")
        Image.fromarray(mask).save(tmp_path / f"set/masks/{number}.png")
    ready = prepare(data_of(str(tmp_path / "set"), image_size=(20, 20), cache=tmp_path / "cache"))
    assert ready.ignore is not None
    assert class_counts(ready, np.array([2, 0])).tolist() == [320, 80]
    assert weights_of("balanced", ready, np.arange(3)) == pytest.approx((0.625, 2.5))


@pytest.mark.parametrize("asked", [(1.0, 2.0), (0.0,) * 10])
def test_weights_of_other_classes_or_none_above_0_are_refused(digits, asked):
    with pytest.raises(UserError, match=r"10 class weights.*\(0, 1, 2") as error:
        weights_of(asked, digits, np.arange(100))
    assert error.value.action == "Correct class_weights under [train]."


def test_a_class_that_does_not_occur_cannot_be_balanced(digits):
    rows = np.flatnonzero(np.asarray(digits.targets) != 3)
    with pytest.raises(UserError, match="none of 3") as error:
        weights_of("balanced", digits, rows)
    assert "class_weights = [1.0, 2.0]" in error.value.action
