from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.launch.queue.submit import LARGEST_ARRAY, Batch, Wanted, plan


def sweep(workers: tuple[int, ...] = (1, 2, 4), seeds: int = 3) -> list[Wanted]:
    return [
        Wanted(f"w{count}-s{seed}", count, 60.0 * count, reference=count == 1)
        for count in workers
        for seed in range(seeds)
    ]


def names(batches: list[Batch]) -> list[str]:
    return [name for batch in batches for name in batch.names]


def test_points_that_are_alike_share_an_array_and_others_do_not() -> None:
    batches = plan(sweep())
    assert [batch.names for batch in batches] == [
        ("w1-s0", "w1-s1", "w1-s2"), ("w2-s0", "w2-s1", "w2-s2"), ("w4-s0", "w4-s1", "w4-s2"),
    ]  # fmt: skip
    assert all(batch.throttle is None and not batch.afterok and not batch.afterany for batch in batches)


def test_without_arrays_every_point_is_a_job() -> None:
    assert [len(batch.names) for batch in plan(sweep(), arrays=False)] == [1] * 9


def test_one_array_at_most_k_at_a_time_is_slurms_own_limit() -> None:
    assert plan(sweep((2,), 5), at_most=2) == [
        Batch(("w2-s0", "w2-s1", "w2-s2", "w2-s3", "w2-s4"), throttle=2)
    ]


def test_single_jobs_run_in_lanes() -> None:
    batches = plan(sweep((1,), 5), at_most=2, arrays=False)
    assert [batch.afterany for batch in batches] == [(), (), (0,), (1,), (2,)]
    assert all(batch.throttle is None for batch in batches)


def test_one_at_a_time_is_one_chain() -> None:
    batches = plan(sweep(), at_most=1)
    assert [batch.afterany for batch in batches] == [(), (0,), (1,)]
    assert {batch.throttle for batch in batches} == {1}


def test_all_others_wait_for_the_references_to_succeed() -> None:
    wanted = sweep((4, 1, 2), 2)
    batches = plan(wanted, reference_first=True)
    assert batches[0] == Batch(("w1-s0", "w1-s1"))
    assert [batch.afterok for batch in batches[1:]] == [(0,), (0,)]
    assert sorted(names(batches)) == sorted(each.name for each in wanted)


def test_without_references_nothing_waits() -> None:
    assert all(not batch.afterok for batch in plan(sweep((2, 4)), reference_first=True))


def test_no_array_is_longer_than_slurm_takes() -> None:
    batches = plan(sweep((2,), 2 * LARGEST_ARRAY + 1))
    assert [len(batch.names) for batch in batches] == [LARGEST_ARRAY, LARGEST_ARRAY, 1]
    assert [len(batch.names) for batch in plan(sweep((2,), 7), largest=3)] == [3, 3, 1]
    assert [len(batch.names) for batch in plan(sweep((2,), 3), largest=1)] == [1, 1, 1]


def test_nothing_wanted_is_nothing_planned() -> None:
    assert plan([]) == []


@dataclass
class Queue:
    """Slurm's scheduler, as far as dependencies and limits of arrays go."""

    batches: list[Batch]

    def __post_init__(self) -> None:
        self.waiting = [list(batch.names) for batch in self.batches]
        self.running: list[tuple[int, str]] = []
        self.ended: list[str] = []

    def over(self, index: int) -> bool:
        return not self.waiting[index] and all(index != other for other, _ in self.running)

    def start_all(self) -> None:
        for index, batch in enumerate(self.batches):
            if all(self.over(other) for other in (*batch.afterok, *batch.afterany)):
                mine = sum(index == other for other, _ in self.running)
                room = len(self.waiting[index]) if batch.throttle is None else batch.throttle - mine
                for _ in range(min(room, len(self.waiting[index]))):
                    self.running.append((index, self.waiting[index].pop(0)))

    def end(self, position: int) -> None:
        self.ended.append(self.running.pop(position % len(self.running))[1])


@given(
    kinds=st.lists(st.integers(1, 4), max_size=25),
    at_most=st.integers(1, 6),
    reference_first=st.booleans(),
    arrays=st.booleans(),
    ends=st.lists(st.integers(0, 100), min_size=25, max_size=25),
)
def test_never_more_than_k_run_at_once_whatever_ends_first_and_all_run(
    kinds: list[int], at_most: int, reference_first: bool, arrays: bool, ends: list[int]
) -> None:
    wanted = [
        Wanted(f"{number}", kind, 10.0 * kind, reference=kind == 1) for number, kind in enumerate(kinds)
    ]
    queue = Queue(plan(wanted, at_most=at_most, reference_first=reference_first, arrays=arrays))
    for end in ends[: len(wanted)]:
        queue.start_all()
        assert 0 < len(queue.running) <= at_most
        queue.end(end)
    assert sorted(queue.ended, key=int) == [each.name for each in wanted]
    assert all(other < index for index, batch in enumerate(queue.batches) for other in batch.afterany)


@pytest.mark.parametrize("at_most", [2, 3])
def test_lanes_are_filled_by_the_time_that_jobs_may_take(at_most: int) -> None:
    long = Wanted("long", "a", 1000.0)
    short = [Wanted(f"short{number}", "b", 1.0) for number in range(4)]
    batches = plan([long, *short], at_most=at_most, arrays=False)
    assert all(0 not in batch.afterany for batch in batches)
