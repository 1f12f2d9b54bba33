"""All ranks stop and write checkpoints at the same call."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalestudy.engines.group import Group
from scalestudy.training.checkpoint import ASK_EVERY, KEEP_EVERY, KEEP_WITHIN, LOOK_EVERY, CheckpointConsensus


class Time:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Threads(Group):
    """Ranks that are threads of this process and really wait for each other."""

    def __init__(self, rank: int, size: int, barrier: threading.Barrier, table: np.ndarray) -> None:
        super().__init__(rank, size)
        self._barrier, self._table = barrier, table

    def host_sum(self, values):
        self._table[self.rank] = values
        self._barrier.wait(20)
        total = self._table.sum(0)
        self._barrier.wait(20)
        return total


def alone(time: Time, asked=lambda: False) -> CheckpointConsensus:
    return CheckpointConsensus(asked, Group(), time)


def test_a_process_alone_looks_after_the_first_call_and_then_once_a_second():
    time = Time()
    agreement = alone(time)
    looked = []
    for call in range(1, 30):
        time.now += LOOK_EVERY / 8
        if agreement.due():
            agreement.within_epoch()
            looked.append(call)
    assert looked == [1, 9, 17, 25]


def test_a_request_stops_the_run_with_a_checkpoint():
    agreement = alone(Time(), asked=lambda: True)
    assert agreement.within_epoch() == (True, True)
    assert agreement.after_epoch() == (True, True)


def test_checkpoints_follow_epochs_once_a_minute():
    time = Time()
    agreement = alone(time)
    assert agreement.after_epoch() == (False, False)
    time.now += KEEP_EVERY
    assert agreement.within_epoch() == (False, False)
    assert agreement.after_epoch() == (False, True)
    assert agreement.after_epoch() == (False, False)


def test_a_long_epoch_is_kept_on_the_way():
    time = Time()
    agreement = alone(time)
    time.now += KEEP_WITHIN
    assert agreement.within_epoch() == (False, True)
    assert agreement.within_epoch() == (False, False)


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.floats(1e-6, 60), min_size=2, max_size=5),
    st.integers(0, 400),
    st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=1, max_size=6),
)
def test_every_rank_leaves_at_the_same_call_however_their_speeds_differ(paces, request_at, drift):
    ranks, barrier = len(paces), threading.Barrier(len(paces))
    table, left, asks = np.zeros((ranks, 3)), [-1] * ranks, [0] * ranks

    def work(rank: int) -> None:
        time, call = Time(), 0
        agreement = CheckpointConsensus(
            lambda: call >= request_at if rank == 0 else True, Threads(rank, ranks, barrier, table), time
        )
        while left[rank] < 0:
            call += 1
            time.now += paces[rank] * drift[call % len(drift)]
            if agreement.due():
                asks[rank] += 1
                if agreement.within_epoch().stop:
                    left[rank] = call
            elif call > request_at and call % 1000 == 0 and agreement.after_epoch().stop:
                left[rank] = call

    threads = [threading.Thread(target=work, args=(rank,), daemon=True) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert len(set(left)) == 1
    assert left[0] >= request_at
    assert len(set(asks)) == 1


def test_several_processes_ask_after_the_first_call_and_then_every_few_seconds():
    time = Time()

    class Two(Group):
        def host_sum(self, values):
            return values * [1, 1, 2]  # the other rank is as fast

    agreement = CheckpointConsensus(lambda: False, Two(0, 2), time)
    asked = []
    for call in range(1, 200):
        time.now += 0.1
        if agreement.due():
            agreement.within_epoch()
            asked.append(call)
    step = round(ASK_EVERY / 0.1)
    assert asked[0] == 1
    assert asked[1:] == pytest.approx([1 + step, 1 + 2 * step, 1 + 3 * step], abs=3)
