"""Splits are disjoint, cover the set, repeat for the same seed, and are never empty."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_settings import data_of, labelled_set
from scalestudy.data.splits.held_out import Fold
from scalestudy.data.splits.split import Split, find_split, make_split, stored_split, validation_of
from scalestudy.util.errors import UserError


def rows(split):
    return [getattr(split, name).tolist() for name in ("train", "validation", "test")]


counts = st.integers(2, 200)
shares = st.floats(0.01, 0.99)
seeds = st.integers(0, 2**32)


@st.composite
def sets(draw):
    count = draw(counts)
    labels = draw(st.none() | st.lists(st.integers(0, 6), min_size=count, max_size=count))
    test = draw(st.integers(0, count - 2))
    held = draw(st.integers(0, count - test - 2))
    ends = {"train": (0, count - held - test)}
    if held:
        ends["validation"] = (count - held - test, count - test)
    if test:
        ends["test"] = (count - test, count)
    return labelled_set(count, labels=labels, given=ends if len(ends) > 1 else {})


@given(sets(), st.none() | shares, seeds)
def test_every_split_is_disjoint_covering_sorted_and_repeatable(prepared, share, seed):
    try:
        split = make_split(prepared, share, seed)
    except UserError:
        assert share is not None
        return
    train, validation, test = rows(split)
    assert sorted(train + validation + test) == list(range(prepared.count))
    assert train
    assert validation
    assert train == sorted(train)
    assert validation == sorted(validation)
    assert rows(make_split(prepared, share, seed)) == [train, validation, test]
    assert {array.dtype for array in (split.train, split.validation, split.test)} == {np.dtype(np.int64)}


@given(sets(), shares, seeds)
def test_given_test_rows_are_never_trained_on(prepared, share, seed):
    try:
        split = make_split(prepared, share, seed)
    except UserError:
        return
    start, stop = prepared.given.get("test", (0, 0))
    assert split.test.tolist() == list(range(start, stop))
    assert split.quality_split == "validation"


def test_every_class_is_held_out_alike():
    labels = [0] * 50 + [1] * 30 + [2] * 20
    split = make_split(labelled_set(100, labels=labels), 0.1, 3)
    assert np.bincount(np.array(labels)[split.validation]).tolist() == [5, 3, 2]


GIVEN = {"train": (0, 6), "validation": (6, 8), "test": (8, 10)}


@pytest.mark.parametrize("validation", [None, "given"])
def test_a_given_validation_set_is_taken(validation):
    split = make_split(labelled_set(10, given=GIVEN), validation, 0)
    assert rows(split) == [[0, 1, 2, 3, 4, 5], [6, 7], [8, 9]]
    assert split.quality_split == "validation"


@pytest.mark.parametrize("validation", [None, "given"])
def test_a_given_test_set_alone_is_what_quality_is_measured_on(validation):
    split = make_split(labelled_set(10, given={"train": (0, 8), "test": (8, 10)}), validation, 0)
    assert rows(split) == [list(range(8)), [8, 9], []]
    assert split.quality_split == "test"


def test_given_without_a_given_set_is_refused():
    with pytest.raises(UserError, match="neither"):
        make_split(labelled_set(10), "given", 0)


@pytest.mark.parametrize("share", [0.01, 0.99])
def test_a_share_that_empties_a_side_is_refused(share):
    with pytest.raises(UserError, match=f"validation = {share}"):
        make_split(labelled_set(10), share, 0)


def test_a_stored_split_is_read_again_and_not_made_again(mask_folder, ready):
    prepared = ready(mask_folder(10))
    first = stored_split(prepared, 0.3, 7)
    assert first.path is not None
    assert first.path.parent == prepared.path
    stored = json.loads(first.path.read_text())
    stored["train"], stored["validation"] = list(range(7)), [7, 8, 9]
    first.path.write_text(json.dumps(stored))
    assert (
        rows(stored_split(prepared, 0.3, 7)) == rows(Split.load(first.path)) == [[*range(7)], [7, 8, 9], []]
    )


def test_a_split_is_found_once_it_was_stored_and_never_made_by_looking(mask_folder, ready):
    prepared = ready(mask_folder(10))
    assert find_split(prepared, 0.3, 7) is None
    assert not list(prepared.path.glob("split-*"))
    made = stored_split(prepared, 0.3, 7)
    found = find_split(prepared, 0.3, 7)
    assert found is not None
    assert rows(found) == rows(made)
    assert find_split(prepared, 0.3, 8) is None


def test_a_damaged_split_is_made_anew_when_stored_and_refused_when_loaded(mask_folder, ready):
    prepared = ready(mask_folder(10))
    split = stored_split(prepared, None, 0)
    assert split.path is not None
    split.path.write_text(split.path.read_text()[:50])
    with pytest.raises(UserError, match=r"split-default-0\.json"):
        Split.load(split.path)
    assert rows(stored_split(prepared, None, 0)) == rows(split)


@pytest.mark.parametrize(
    "change", [{"train": [0, 1]}, {"validation": []}, {"schema_version": 9}, {"test": None}]
)
def test_a_split_that_overlaps_or_leaves_out_is_refused(tmp_path, change):
    good = {
        "schema_version": 1,
        "quality_split": "validation",
        "train": [0, 2],
        "validation": [1],
        "test": [],
    }
    (tmp_path / "s.json").write_text(json.dumps(good))
    assert rows(Split.load(tmp_path / "s.json")) == [[0, 2], [1], []]
    (tmp_path / "s.json").write_text(json.dumps({**good, **change}))
    with pytest.raises(UserError, match=r"s\.json"):
        Split.load(tmp_path / "s.json")


def test_a_group_that_a_given_split_parts_is_refused_by_name():
    groups = [f"patient {row // 4}" for row in range(10)]
    with pytest.raises(UserError, match="'patient 1' in train and in validation"):
        make_split(labelled_set(10, given=GIVEN, groups=groups), None, 0)
    with pytest.raises(UserError, match="each group of samples on one side"):
        make_split(labelled_set(10, given={"train": (0, 9), "test": (9, 10)}, groups=groups), 0.3, 0)


def test_a_fold_is_drawn_from_all_rows_but_the_given_test_set():
    split = make_split(labelled_set(10, given=GIVEN), Fold(0, 4), 0)
    assert [len(part) for part in rows(split)] == [6, 2, 2]
    assert split.quality_split == "validation"


def test_each_fold_has_its_own_file(mask_folder, ready):
    prepared = ready(mask_folder(10))
    folds = [stored_split(prepared, Fold(index, 5), 3) for index in range(5)]
    assert [split.path.name for split in folds] == [f"split-fold{i}of5-3.json" for i in range(5)]
    assert sorted(row for split in folds for row in split.validation) == list(range(10))
    assert json.loads(folds[1].path.read_text())["validation"] == folds[1].validation.tolist()


@pytest.mark.parametrize("keys", [{"folds": 5, "fold": 5}, {"folds": 5, "validation": 0.2}])
def test_a_fold_that_there_is_not_and_folds_beside_a_share_are_refused(keys):
    with pytest.raises(UserError, match="a fold from 0 to 4"):
        validation_of(data_of("set", **keys))
