"""Shares and folds: disjoint, complete, whole groups, sizes near the request, the same on every machine."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_settings import labelled_set
from scalestudy.data.splits.held_out import Fold, apportion, held_out
from scalestudy.util.errors import UserError

seeds = st.integers(0, 2**32)


@st.composite
def grouped_sets(draw, least=2):
    """Sets of samples in groups of very different sizes, with classes or masks."""
    sizes = draw(st.lists(st.integers(1, 30), min_size=least, max_size=25))
    groups = [f"g{index}" for index, size in enumerate(sizes) for _ in range(size)]
    groups = draw(st.permutations(groups))
    labels = draw(st.none() | st.lists(st.integers(0, 4), min_size=len(groups), max_size=len(groups)))
    return labelled_set(labels=labels, count=len(groups), groups=groups)


def folds_of(prepared, of, seed):
    every = np.arange(prepared.count)
    return [held_out(prepared, every, Fold(index, of), seed).tolist() for index in range(of)]


def largest_group(prepared):
    return max(Counter(prepared.groups).values())


def groups_of(prepared, rows):
    return {prepared.groups[row] for row in rows}


@given(grouped_sets(), st.integers(2, 6), seeds)
def test_folds_are_disjoint_complete_whole_in_groups_and_alike_in_size(prepared, of, seed):
    if len(set(prepared.groups)) < of:
        with pytest.raises(UserError, match=f"at least {of} "):
            folds_of(prepared, of, seed)
        return
    folds = folds_of(prepared, of, seed)
    assert sorted(row for fold in folds for row in fold) == list(range(prepared.count))
    for fold in folds:
        others = set(range(prepared.count)) - set(fold)
        assert fold == sorted(fold)
        assert fold
        assert not groups_of(prepared, fold) & groups_of(prepared, others)
    splittable = [len(fold) for fold in folds if len(groups_of(prepared, fold)) > 1]
    if splittable:
        # One more than the largest group, because the samples may not divide evenly.
        assert max(splittable) - min(map(len, folds)) <= largest_group(prepared) + 1
    assert folds == folds_of(prepared, of, seed)


@given(grouped_sets(), st.none() | st.floats(0.05, 0.95), seeds)
def test_a_share_keeps_groups_whole_and_is_met_as_nearly_as_they_allow(prepared, share, seed):
    every = np.arange(prepared.count)
    wanted = round((0.2 if share is None else share) * prepared.count)
    if share is not None and not 0 < wanted < prepared.count:
        return
    held = held_out(prepared, every, share, seed).tolist()
    train = sorted(set(range(prepared.count)) - set(held))
    assert held
    assert train
    assert not groups_of(prepared, held) & groups_of(prepared, train)
    single = 1 in (len(groups_of(prepared, held)), len(groups_of(prepared, train)))
    assert single or abs(len(held) - wanted) <= largest_group(prepared) / 2
    assert held == held_out(prepared, every, share, seed).tolist()


@given(st.lists(st.integers(0, 4), min_size=6, max_size=200), st.integers(2, 6), seeds)
def test_folds_without_groups_differ_by_one_in_size_and_in_every_class(labels, of, seed):
    folds = folds_of(labelled_set(labels=labels), of, seed)
    assert sorted(row for fold in folds for row in fold) == list(range(len(labels)))
    sizes = sorted(map(len, folds))
    assert sizes[-1] - sizes[0] <= 1
    for label in set(labels):
        of_class = sorted(sum(labels[row] == label for row in fold) for fold in folds)
        assert of_class[-1] - of_class[0] <= 1


@given(seeds)
def test_classes_are_alike_on_all_sides_to_within_a_group(seed):
    # 60 groups of 5 samples with one class per group: three classes of 150, 100 and 50 samples.
    classes = np.repeat([0, 1, 2], [30, 20, 10])
    labels, groups = np.repeat(classes, 5), [f"g{row // 5}" for row in range(300)]
    prepared = labelled_set(labels=labels, groups=groups)
    held = held_out(prepared, np.arange(300), 0.2, seed)
    for part in [held, *folds_of(prepared, 5, seed)]:
        assert np.abs(np.bincount(labels[part]) - [30, 20, 10]).max() <= 5


def test_what_is_drawn_is_the_same_on_every_machine():
    labels, every = [row % 3 for row in range(24)], np.arange(24)
    grouped = labelled_set(labels=labels, groups="aabbbbccddddddeefgghijkl")
    assert held_out(grouped, every, 0.25, 7).tolist() == [6, 7, 19, 20, 21, 23]
    assert held_out(labelled_set(labels=labels), every, Fold(1, 4), 7).tolist() == [6, 10, 17, 18, 20, 22]


def test_one_group_for_all_is_refused():
    with pytest.raises(UserError, match="at least 2 groups"):
        held_out(labelled_set(count=9, groups="a" * 9), np.arange(9), 0.3, 0)


def test_more_folds_than_samples_are_refused():
    with pytest.raises(UserError, match="4 folds"):
        held_out(labelled_set(count=3), np.arange(3), Fold(0, 4), 0)


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
