import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalestudy.features.diagnose.decomposition import (
    RoundTimes,
    jackknife,
    mean_times,
    parts,
    relative_speed,
    round_times,
    slow_rank,
)
from synthetic_diagnosis import WHOLE, block, made, point, rank

SECONDS = st.floats(1e-5, 10.0)


def of_workers(count):
    return st.builds(
        RoundTimes,
        *[SECONDS] * 4,
        together=st.tuples(*[SECONDS] * count),
        alone=SECONDS,
        full=SECONDS,
        reference=SECONDS,
        share=st.floats(0.05, 1.0),
    )


TIMES = st.integers(2, 8).flatmap(of_workers)


@given(TIMES, st.booleans())
def test_the_parts_add_up_to_what_a_step_loses(times, per_worker):
    lost = sum(parts(times, per_worker=per_worker).values())
    assert lost == pytest.approx(times.whole - times.ideal, rel=1e-9, abs=1e-9)
    assert lost / times.whole == pytest.approx(1 - times.efficiency, rel=1e-9, abs=1e-6)


@settings(max_examples=25)
@given(st.lists(of_workers(2), min_size=2, max_size=5))
def test_parts_stay_exact_over_rounds(rounds):
    rounds = [replace(each, share=0.5) for each in rounds]
    names = parts(rounds[0], per_worker=False)

    def part(name):
        return lambda times: parts(times, per_worker=False)[name] / times.whole

    found = [jackknife(rounds, part(name)).value for name in names]
    efficiency = jackknife(rounds, lambda times: times.efficiency).value
    assert sum(found) == pytest.approx(1 - efficiency, rel=1e-9, abs=1e-6)


def test_each_part_is_the_difference_between_two_ablations():
    found = {
        "input": 0.020 - 0.5 * 0.002,
        "exchange": 0.020,
        "imbalance": 0.002,
        "contention": 0.005,
        "fixed": 0.051 - 0.049,
        "rest": 0.002,
    }
    assert parts(WHOLE, per_worker=False) == pytest.approx(found)
    assert parts(WHOLE, per_worker=True) == pytest.approx(
        found | {"fixed": 0, "rest": 0.004}
    )
    neighbour = replace(
        WHOLE, together=(0.05, 0.2), slowest=0.2, alone=0.05
    )  # slow: no contention
    slow = parts(neighbour, per_worker=False)
    assert (slow["imbalance"], slow["contention"]) == (pytest.approx(0.15), 0)


def test_one_round_has_values_and_no_interval():
    found = jackknife([WHOLE], lambda times: times.efficiency)
    assert (found.value, found.low, found.high) == (0.5, None, None)


def test_the_interval_of_a_mean_is_students():
    rounds = [replace(WHOLE, whole=whole) for whole in (0.09, 0.10, 0.11)]
    found = jackknife(rounds, lambda times: times.whole)
    assert found.value == pytest.approx(0.10)
    assert (found.high - found.low) / 2 == pytest.approx(
        4.302653 * 0.01 / math.sqrt(3), rel=1e-5
    )


def test_intervals_of_ratios_hold_nearly_as_often_as_they_claim():
    rng = random.Random(0)
    held = 0
    for _ in range(400):
        rounds = [
            replace(WHOLE, whole=rng.gauss(0.1, 0.005), reference=rng.gauss(0.1, 0.005))
            for _ in range(4)
        ]
        found = jackknife(rounds, lambda times: times.efficiency)
        held += found.low <= 0.5 <= found.high
    assert held / 400 > 0.92


def test_times_of_rounds_are_averaged_worker_by_worker():
    found = mean_times([WHOLE, replace(WHOLE, whole=0.2, together=(0.1, 0.06))])
    assert found.whole == pytest.approx(0.15)
    assert found.together == pytest.approx((0.078, 0.056))


def test_a_ranks_speed_is_relative_to_the_others():
    assert relative_speed(replace(WHOLE, together=(1.0, 2.0, 3.0)), 2) == pytest.approx(
        2.0
    )


NEARLY = [replace(WHOLE, together=(0.05, 0.07 + 0.001 * i)) for i in range(3)]


def test_a_diagnosis_holds_its_parts_and_every_rank():
    found = made([WHOLE, replace(WHOLE, whole=0.11)])
    assert found.efficiency.value == pytest.approx(0.05 / 0.105)
    assert sum(part.share.value for part in found.parts) == pytest.approx(
        1 - found.efficiency.value
    )
    assert found.efficiency.low < found.efficiency.value < found.efficiency.high
    assert [(rank.rank, rank.host, rank.cpus) for rank in found.ranks] == [
        (0, "node", (0,)),
        (1, "node", (1,)),
    ]


def test_a_rank_that_is_slow_in_every_round_is_named():
    found = slow_rank(made(NEARLY))
    assert found is not None
    assert found.rank == 1
    assert found.ratio.value == pytest.approx(0.071 / 0.05)


@pytest.mark.parametrize(
    "times",
    [[(0.05, 0.05), (0.05, 0.05), (0.05, 0.09)], [(0.050, 0.052)]],
    ids=["once", "by little"],
)
def test_a_rank_that_is_slow_in_one_round_only_or_by_less_than_a_twentieth_is_not(
    times,
):
    assert slow_rank(made([replace(WHOLE, together=each) for each in times])) is None


def test_the_digest_changes_with_what_the_point_computes_and_not_with_where_its_data_lie():
    same = made(of=point().with_files("/elsewhere", "/split"))
    assert made().digest == same.digest
    assert made(of=point(workers=3)).digest != made().digest


APART = (
    rank(
        0,
        block("alone", 0.02, 32),
        block("full", 0.04, 64),
        block("reference", 0.05, 64),
        block("together", 0.025, 32),
        block("together", 0.027, 32),
    ),
    rank(1, block("together", 0.03, 32), block("together", 0.028, 32)),
)
JOINED = tuple(
    rank(
        number,
        block("whole", 0.06, 64, wait=0.01 * number),
        block("without input", 0.05, 64),
        block("without exchange", 0.03 + 0.01 * number, 64),
    )
    for number in (0, 1)
)


def test_each_time_is_that_of_its_block_and_turns_are_averaged():
    found = round_times(JOINED, APART, 2)
    assert found.whole == pytest.approx(0.06)
    assert found.without_input == pytest.approx(0.05)
    assert found.without_exchange == pytest.approx(0.04)  # the slowest rank's
    assert found.slowest == pytest.approx((0.03 + 0.028) / 2)
    assert found.together == pytest.approx((0.026, 0.029))
    assert (found.alone, found.full, found.reference) == pytest.approx(
        (0.02, 0.04, 0.05)
    )


def test_the_share_of_a_worker_is_half_under_a_global_batch_and_one_with_a_batch_each():
    assert round_times(JOINED, APART, 2).share == 0.5
    each = [rank(0, *(block(b.name, 1.0, 32) for b in APART[0].blocks)), APART[1]]
    assert round_times(JOINED, each, 2).share == 1.0


def test_the_slowest_rank_of_each_call_counts():
    first, second = (
        block("together", 1.0).model_copy(
            update={"calls": calls, "waits": (0.0,) * len(calls), "seconds": sum(calls)}
        )
        for calls in ((1.0, 3.0, 9.0), (3.0, 1.0))
    )
    apart = (rank(0, *APART[0].blocks[:3], first), rank(1, second))
    assert round_times(JOINED, apart, 2).slowest == pytest.approx(3.0)


def test_what_a_device_does_after_the_last_call_was_handed_over_is_spread_over_all_calls():
    late = block("together", 0.03, 32).model_copy(update={"seconds": 0.24})
    apart = (rank(0, *APART[0].blocks[:3], late), rank(1, block("together", 0.03, 32)))
    assert round_times(JOINED, apart, 2).slowest == pytest.approx(0.06)
