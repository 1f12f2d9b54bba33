"""From the name of a strategy to its group and replicas, and the buckets in which gradients are exchanged."""

import sys
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.cluster.placement import Placement
from scalestudy.engines import group as joining
from scalestudy.engines.buckets import in_buckets, in_halves, sum_gradients
from scalestudy.engines.group import Group, Joined, Replicas
from scalestudy.plugins.strategies import traits, working_names
from scalestudy.plugins.traits import Traits
from scalestudy.util.errors import UserError

COMPUTED_HERE = [
    n for n in working_names() if traits(n).one_process and not traits(n).library
]
ALONE = Placement(0, 1, 0, 1, 0, ("localhost",), "test")


def test_the_row_of_a_strategy_is_enough_to_join_it(monkeypatch):
    asked = {}

    def join(placement, **given):
        asked.update(given)
        group = Group(placement.rank, placement.size)
        return Joined(group, Replicas(group, given["workers"], slices=[(0, 2)]))

    module = ModuleType("their_strategy")
    module.join = join
    monkeypatch.setitem(sys.modules, "their_strategy", module)
    row = Traits(
        "theirs", "another package's", "tensorflow", join="their_strategy:join"
    )
    monkeypatch.setattr(joining, "traits", {"theirs": row}.__getitem__)
    group, replicas = joining.join("theirs", ALONE, workers=2, device="cpu")
    assert (group.size, replicas.workers, replicas.slices) == (1, 2, ((0, 2),))
    assert asked == {"workers": 2, "device": "cpu", "communication": "auto"}


@pytest.mark.engine
@pytest.mark.parametrize("name", COMPUTED_HERE)
def test_the_workers_of_one_process_are_all_computed_there(framework, name):
    workers = 1 if traits(name).most_workers == 1 else 2
    group, replicas = joining.join(name, ALONE, workers=workers, device="cpu")
    assert (group.rank, group.size) == (0, 1)
    assert group.communication == ("ring" if name == "mirrored" else None)
    computed = [
        worker for first, last in replicas.slices for worker in range(first, last)
    ]
    assert computed == list(range(replicas.workers)) == list(range(workers))
    assert (
        len(replicas.slices) == replicas.size == traits(name).workers_at_once(workers)
    )
    if traits(name).engine != "tensorflow":
        return
    with replicas.scope():
        variable = framework.Variable([1.0, 2.0])
    assert [copy.tolist() for copy in replicas.copies(variable)] == [
        [1.0, 2.0]
    ] * replicas.size


@pytest.mark.engine
def test_more_mirrored_workers_than_devices_are_refused(framework):
    for name in ("mirrored", "central-storage"):
        with pytest.raises(UserError, match=r"3 CPU devices .*\. Received 2\."):
            joining.join(name, ALONE, workers=3, device="cpu")


@pytest.mark.engine
def test_a_worker_where_no_tpu_answers_is_refused(framework):
    with pytest.raises(UserError, match="a TPU on this host"):
        joining.join("tpu", ALONE, workers=2, device="cpu")


def test_one_process_alone_is_its_own_group():
    group = Group()
    values = np.array([[1.5, -0.0], [np.nan, 2.0]])
    assert group.host_sum(values) is values
    assert group.share(values).tobytes() == values.tobytes()
    (gathered,) = group.gather([values])
    assert gathered.tobytes() == values.tobytes()
    odd = np.arange(10, dtype=np.float16).reshape(2, 5)
    (first, empty, second) = group.gather(
        [odd, np.zeros((0, 3), np.float32), np.array([True])]
    )
    assert (first.tolist(), empty.shape, second.tolist()) == (
        odd.tolist(),
        (0, 3),
        [True],
    )
    assert group.gather([]) == []
    assert group.build_record() == {}


SIZES = st.lists(st.integers(0, 100), max_size=20)


@pytest.mark.parametrize(
    ("sizes", "limit", "buckets"),
    [
        # last gradients first, in the model's order within a bucket
        ([1, 2, 3, 4, 5], 7, ((3, 4), (0, 1, 2))),
        ([1, 2, 3, 4, 5], 5, ((4,), (2, 3), (0, 1))),
        (
            [1, 50, 1],
            10,
            ((1, 2), (0,)),
        ),  # a gradient larger than a bucket is not divided
        ([4, 4, 4], None, ((0, 1, 2),)),
        ([4, 4, 4], 100, ((0, 1, 2),)),
        ([], 10, ()),
        ([], None, ()),
    ],
)
def test_buckets_are_closed_as_soon_as_they_are_full(sizes, limit, buckets):
    assert in_buckets(sizes, limit) == buckets


@given(SIZES, st.integers(1, 200))
def test_each_gradient_is_in_one_bucket_and_all_buckets_but_the_last_are_full(
    sizes, limit
):
    buckets = in_buckets(sizes, limit)
    assert [index for bucket in reversed(buckets) for index in bucket] == list(
        range(len(sizes))
    )
    held = [[sizes[index] for index in bucket] for bucket in buckets]
    assert all(sum(each) >= limit for each in held[:-1])
    assert all(sum(each[1:]) < limit for each in held)  # closed as soon as it was full


@given(SIZES, st.integers(1, 200))
def test_sums_come_back_in_the_order_of_the_gradients(sizes, limit):
    asked = []

    def all_reduce(part):
        asked.append(part)
        return [10 * gradient for gradient in part]

    gradients = list(range(len(sizes)))
    buckets = in_buckets(sizes, limit)
    assert sum_gradients(gradients, buckets, all_reduce) == [
        10 * gradient for gradient in gradients
    ]
    assert [tuple(part) for part in asked] == list(buckets)


def test_halves_have_equal_work_and_the_last_layers_come_first():
    assert in_halves([1, 1, 1, 1]) == ((2, 3), (0, 1))
    assert in_halves([6, 1, 1]) == (
        (0, 1, 2),
    )  # the first half would hold all gradients
    assert in_halves([1, 1, 6]) == ((2,), (0, 1))
    assert in_halves([]) == ()
