"""Splits are disjoint, cover the set, repeat for the same seed, and are never empty."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_settings import labelled_set
from scalestudy.data.split import (
    Split,
    apportion,
    counts,
    ensure_split,
    find_split,
    hold_out,
    make_split,
)
from scalestudy.util.errors import UserError


def rows(split):
    return [getattr(split, name).tolist() for name in ("train", "validation", "test")]


sizes = st.integers(2, 200)
shares = st.floats(0.01, 0.99)
seeds = st.integers(0, 2**32)


@st.composite
def sets(draw):
    count = draw(sizes)
    labels = draw(
        st.none() | st.lists(st.integers(0, 6), min_size=count, max_size=count)
    )
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
    assert train and validation
    assert (train, validation) == (sorted(train), sorted(validation))
    assert rows(make_split(prepared, share, seed)) == [train, validation, test]
    assert {array.dtype for array in (split.train, split.validation, split.test)} == {
        np.dtype(np.int64)
    }
    if share is not None:  # given test rows are never trained on
        assert test == list(range(*prepared.given.get("test", (0, 0))))
        assert split.quality_split == "validation"


def test_every_class_is_held_out_alike():
    labels = [0] * 50 + [1] * 30 + [2] * 20
    split = make_split(labelled_set(100, labels=labels), 0.1, 3)
    assert np.bincount(np.array(labels)[split.validation]).tolist() == [5, 3, 2]


GIVEN = {"train": (0, 6), "validation": (6, 8), "test": (8, 10)}


@pytest.mark.parametrize("validation", [None, "given"])
@pytest.mark.parametrize(
    ("given", "expected", "side"),
    [
        (GIVEN, [[0, 1, 2, 3, 4, 5], [6, 7], [8, 9]], "validation"),
        ({"train": (0, 8), "test": (8, 10)}, [[*range(8)], [8, 9], []], "test"),
    ],
)
def test_a_given_validation_set_is_taken_else_a_given_test_set(
    validation, given, expected, side
):
    split = make_split(labelled_set(10, given=given), validation, 0)
    assert (rows(split), split.quality_split) == (expected, side)


@pytest.mark.parametrize(
    ("validation", "told"),
    [("given", "neither"), (0.01, "validation = 0.01"), (0.99, "validation = 0.99")],
)
def test_a_set_that_is_not_given_and_a_share_that_empties_a_side_are_refused(
    validation, told
):
    with pytest.raises(UserError, match=told):
        make_split(labelled_set(10), validation, 0)


def test_a_stored_split_is_found_read_again_and_never_made_by_looking(
    mask_folder, ready
):
    prepared = ready(mask_folder(10))
    assert find_split(prepared, 0.3, 7) is None
    assert not list(prepared.path.glob("split-*"))
    first = ensure_split(prepared, 0.3, 7)
    assert first.path is not None and first.path.parent == prepared.path
    assert rows(find_split(prepared, 0.3, 7)) == rows(first)
    assert find_split(prepared, 0.3, 8) is None
    stored = json.loads(first.path.read_text()) | {
        "train": [*range(7)],
        "validation": [7, 8, 9],
    }
    first.path.write_text(json.dumps(stored))
    for again in (ensure_split(prepared, 0.3, 7), Split.load(first.path)):
        assert rows(again) == [[*range(7)], [7, 8, 9], []]


def test_a_damaged_split_is_made_anew_when_stored_and_refused_when_loaded(
    mask_folder, ready
):
    prepared = ready(mask_folder(10))
    split = ensure_split(prepared, None, 0)
    assert split.path is not None
    split.path.write_text(split.path.read_text()[:50])
    with pytest.raises(UserError, match=r"split-default-0\.json"):
        Split.load(split.path)
    assert rows(ensure_split(prepared, None, 0)) == rows(split)


@pytest.mark.parametrize(
    "change",
    [{"train": [0, 1]}, {"validation": []}, {"schema_version": 9}, {"test": None}],
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
        make_split(
            labelled_set(10, given={"train": (0, 9), "test": (9, 10)}, groups=groups),
            0.3,
            0,
        )


def told(prepared):
    return counts(prepared, ensure_split(prepared, 0.5, 0))


def test_each_side_tells_its_samples_of_every_class_and_its_groups(
    class_folder, mask_folder, ready
):
    class_folder({"ant": 3, "bee": 5}, at="set/train")
    root = class_folder({"bee": 2}, at="set/test").parent
    assert told(ready(root)) == [
        "train: 4 (ant 1, bee 3)",
        "validation: 4 (ant 2, bee 2)",
        "test: 2 (ant 0, bee 2)",
    ]
    root = mask_folder(6, at="masked")
    assert told(ready(root)) == ["train: 3", "validation: 3"]
    in_groups = ["train: 3 in 3 groups", "validation: 3 in 3 groups"]
    assert told(ready(root, group_pattern="s.")) == in_groups


@st.composite
def grouped_sets(draw):
    """Sets of samples in groups of very different sizes, with classes or masks."""
    sizes = draw(st.lists(st.integers(1, 30), min_size=2, max_size=25))
    groups = [f"g{index}" for index, size in enumerate(sizes) for _ in range(size)]
    groups = draw(st.permutations(groups))
    labels = draw(
        st.none()
        | st.lists(st.integers(0, 4), min_size=len(groups), max_size=len(groups))
    )
    return labelled_set(labels=labels, count=len(groups), groups=groups)


def largest_group(prepared):
    return max(Counter(prepared.groups).values())


def groups_of(prepared, rows):
    return {prepared.groups[row] for row in rows}


@given(grouped_sets(), st.none() | st.floats(0.05, 0.95), seeds)
def test_a_share_keeps_groups_whole_and_is_met_as_nearly_as_they_allow(
    prepared, share, seed
):
    every = np.arange(prepared.count)
    wanted = round((0.2 if share is None else share) * prepared.count)
    if share is not None and not 0 < wanted < prepared.count:
        return
    held = hold_out(prepared, every, share, seed).tolist()
    train = sorted(set(range(prepared.count)) - set(held))
    assert held
    assert train
    assert not groups_of(prepared, held) & groups_of(prepared, train)
    single = 1 in (len(groups_of(prepared, held)), len(groups_of(prepared, train)))
    assert single or abs(len(held) - wanted) <= largest_group(prepared) / 2
    assert held == hold_out(prepared, every, share, seed).tolist()


@given(seeds)
def test_classes_are_alike_on_all_sides_to_within_a_group(seed):
    # 60 groups of 5 samples with one class per group: three classes of 150, 100 and 50 samples.
    classes = np.repeat([0, 1, 2], [30, 20, 10])
    labels, groups = np.repeat(classes, 5), [f"g{row // 5}" for row in range(300)]
    prepared = labelled_set(labels=labels, groups=groups)
    held = hold_out(prepared, np.arange(300), 0.2, seed)
    assert np.abs(np.bincount(labels[held]) - [30, 20, 10]).max() <= 5


def test_what_is_drawn_is_the_same_on_every_machine():
    labels, every = [row % 3 for row in range(24)], np.arange(24)
    grouped = labelled_set(labels=labels, groups="aabbbbccddddddeefgghijkl")
    assert hold_out(grouped, every, 0.25, 7).tolist() == [14, 15, 17, 18, 19, 22]
    assert hold_out(labelled_set(labels=labels), every, 0.25, 7).tolist() == [
        0,
        10,
        11,
        14,
        18,
        22,
    ]


def test_one_group_for_all_is_refused():
    with pytest.raises(UserError, match="at least 2 groups"):
        hold_out(labelled_set(count=9, groups="a" * 9), np.arange(9), 0.3, 0)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=9), st.data())
def test_classes_share_out_within_one_of_their_part(sizes, data):
    total = sum(sizes)
    count = data.draw(st.integers(0, max(0, total - 1)))
    if total == 0:
        return
    quotas = apportion(np.array(sizes), count)
    assert quotas.sum() == count
    assert (quotas <= sizes).all()
    assert (quotas >= 0).all()
    if count <= total - sum(size > 0 for size in sizes):
        emptied = [q == s for q, s in zip(quotas, sizes, strict=True) if s > 1]
        assert not any(emptied)
