import pytest
from made_diagnosis import block

from scalestudy.features.diagnose.step_times import step_times
from scalestudy.features.diagnose.twin import AblationTimes


def rank(number, *blocks):
    return AblationTimes(rank=number, host="node", cpus=(number,), parameters=10, blocks=blocks)


APART = (
    rank(
        0,
        block("alone", 0.02, 32), block("full", 0.04, 64), block("reference", 0.05, 64),
        block("together", 0.025, 32), block("together", 0.027, 32),
    ),
    rank(1, block("together", 0.03, 32), block("together", 0.028, 32)),
)  # fmt: skip
JOINED = tuple(
    rank(
        number,
        block("whole", 0.06, 64, wait=0.01 * number), block("without input", 0.05, 64),
        block("without exchange", 0.03 + 0.01 * number, 64),
    )
    for number in (0, 1)
)  # fmt: skip


def test_each_time_is_that_of_its_block_and_turns_are_averaged():
    found = step_times(JOINED, APART, 2)
    assert found.whole == pytest.approx(0.06)
    assert found.without_input == pytest.approx(0.05)
    assert found.without_exchange == pytest.approx(0.04)  # of the slowest
    assert found.slowest == pytest.approx((0.03 + 0.028) / 2)
    assert found.together == pytest.approx((0.026, 0.029))
    assert (found.alone, found.full, found.reference) == pytest.approx((0.02, 0.04, 0.05))
    assert found.waits == pytest.approx((0.0, 0.01))


def test_the_share_of_a_worker_is_half_under_a_global_batch_and_one_with_a_batch_each():
    assert step_times(JOINED, APART, 2).share == 0.5
    each = [rank(0, *(block(b.name, 1.0, 32) for b in APART[0].blocks)), APART[1]]
    assert step_times(JOINED, each, 2).share == 1.0


def test_one_process_of_several_workers_waits_for_all_of_them():
    assert step_times(JOINED[1:], APART, 2).waits == pytest.approx((0.01, 0.01))


def test_what_a_device_does_after_the_last_call_was_handed_over_is_spread_over_all_calls():
    late = block("together", 0.03, 32).model_copy(update={"seconds": 0.24})
    apart = (rank(0, *APART[0].blocks[:3], late), rank(1, block("together", 0.03, 32)))
    assert step_times(JOINED, apart, 2).slowest == pytest.approx(0.06)
