import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_diagnosis import WHOLE

from scalestudy.features.diagnose.decomposition import (
    StepTimes,
    factors,
    jackknifed,
    mean_times,
    parts,
    relative_speed,
    slowest_of,
)

SECONDS = st.floats(1e-5, 10.0)


def of_workers(count):
    return st.builds(
        StepTimes, *[SECONDS] * 4, together=st.tuples(*[SECONDS] * count), alone=SECONDS, full=SECONDS,
        reference=SECONDS, waits=st.tuples(*[st.floats(0, 1)] * count), share=st.floats(0.05, 1.0),
    )  # fmt: skip


TIMES = st.integers(2, 8).flatmap(of_workers)


@given(TIMES, st.booleans())
def test_the_parts_add_up_to_what_a_step_loses(times, per_worker):
    lost = sum(parts(times, per_worker=per_worker).values())
    assert lost == pytest.approx(times.whole - times.ideal, rel=1e-9, abs=1e-9)
    assert lost / times.whole == pytest.approx(1 - times.efficiency, rel=1e-9, abs=1e-6)


@given(TIMES)
def test_pops_factors_multiply_to_the_efficiency(times):
    assert math.prod(factors(times).values()) == pytest.approx(times.efficiency, rel=1e-12)
    assert 0 < factors(times)["load balance"] <= 1 + 1e-12


@settings(max_examples=25)
@given(st.lists(of_workers(2), min_size=2, max_size=5))
def test_parts_and_factors_stay_exact_over_rounds(rounds):
    rounds = [replace(each, share=0.5) for each in rounds]
    names = parts(rounds[0], per_worker=False)

    def part(name):
        return lambda times: parts(times, per_worker=False)[name] / times.whole

    found = [jackknifed(rounds, part(name)).value for name in names]
    efficiency = jackknifed(rounds, lambda times: times.efficiency).value
    assert sum(found) == pytest.approx(1 - efficiency, rel=1e-9, abs=1e-6)


def test_each_part_is_the_difference_that_its_twins_show():
    found = parts(WHOLE, per_worker=False)
    assert found == pytest.approx(
        {
            "input": 0.020 - 0.5 * 0.002,
            "exchange": 0.020,
            "imbalance": 0.002,
            "contention": 0.005,
            "fixed": 0.051 - 0.049,
            "rest": 0.002,
        }
    )


def test_with_a_batch_per_worker_nothing_is_a_fixed_cost():
    found = parts(WHOLE, per_worker=True)
    assert found["fixed"] == 0
    assert found["rest"] == pytest.approx(0.004)


def test_pops_factors_of_a_slow_rank_and_a_slow_exchange_are_those_below_one():
    fine = replace(WHOLE, whole=0.05, together=(0.05, 0.05), reference=0.1)
    assert factors(fine) == pytest.approx(dict.fromkeys(factors(fine), 1.0))
    slow_rank = factors(replace(fine, whole=0.1, together=(0.05, 0.1)))
    assert slow_rank["load balance"] == pytest.approx(0.75)
    assert slow_rank["communication efficiency"] == pytest.approx(1.0)
    exchange = factors(replace(fine, whole=0.1))
    assert exchange["communication efficiency"] == pytest.approx(0.5)
    assert exchange["load balance"] == exchange["computation scaling"] == pytest.approx(1.0)


def test_waiting_for_input_is_useful_to_pop_who_counts_what_is_outside_of_the_exchange():
    found = factors(replace(WHOLE, whole=0.2, together=(0.05, 0.05), waits=(0.05, 0.05)))
    assert found["communication efficiency"] == pytest.approx(0.5)
    assert found["computation scaling"] == pytest.approx(0.5)


def test_one_round_has_values_and_no_interval():
    found = jackknifed([WHOLE], lambda times: times.efficiency)
    assert (found.value, found.low, found.high) == (0.5, None, None)


def test_the_interval_of_a_mean_is_students():
    rounds = [replace(WHOLE, whole=whole) for whole in (0.09, 0.10, 0.11)]
    found = jackknifed(rounds, lambda times: times.whole)
    assert found.value == pytest.approx(0.10)
    assert found.half_width == pytest.approx(4.302653 * 0.01 / math.sqrt(3), rel=1e-5)


def test_intervals_of_ratios_hold_nearly_as_often_as_they_claim():
    rng = random.Random(0)
    held = 0
    for _ in range(400):
        rounds = [
            replace(WHOLE, whole=rng.gauss(0.1, 0.005), reference=rng.gauss(0.1, 0.005)) for _ in range(4)
        ]
        found = jackknifed(rounds, lambda times: times.efficiency)
        held += found.low <= 0.5 <= found.high
    assert held / 400 > 0.92


def test_times_of_rounds_are_averaged_worker_by_worker():
    found = mean_times([WHOLE, replace(WHOLE, whole=0.2, together=(0.1, 0.06))])
    assert found.whole == pytest.approx(0.15)
    assert found.together == pytest.approx((0.078, 0.056))


def test_the_slowest_of_each_step_counts_however_ranks_take_turns():
    assert slowest_of([[1.0, 3.0, 9.0], [3.0, 1.0]]) == 3.0
    assert relative_speed(replace(WHOLE, together=(1.0, 2.0, 3.0)), 2) == pytest.approx(2.0)


def test_a_slow_neighbour_is_an_imbalance_and_no_contention():
    alone = replace(WHOLE, together=(0.05, 0.2), slowest=0.2, alone=0.05)
    found = parts(alone, per_worker=False)
    assert found["imbalance"] == pytest.approx(0.15)
    assert found["contention"] == 0
