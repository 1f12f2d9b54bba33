import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.analysis.scaling.karp_flatt import karp_flatt
from scalestudy.analysis.statistics import NOTHING, Estimate


@given(st.floats(0.001, 0.9), st.integers(2, 4096))
def test_of_amdahls_law_the_metric_is_the_serial_share_at_every_count(share, workers):
    speed = 1 / (share + (1 - share) / workers)
    assert karp_flatt(Estimate(speed), workers).value == pytest.approx(share, rel=1e-6)


def test_the_ends_of_the_speed_up_change_places():
    found = karp_flatt(Estimate(3.0, 2.5, 3.5), 4)
    assert found.low < found.value < found.high
    assert found.high == pytest.approx((1 / 2.5 - 1 / 4) / (3 / 4))


def test_more_than_ideal_is_below_zero():
    assert karp_flatt(Estimate(4.4), 4).value < 0


@pytest.mark.parametrize(("speed", "workers"), [(Estimate(1.0), 1), (NOTHING, 4), (Estimate(0.0), 4)])
def test_nothing_is_said_of_one_worker_or_of_no_speed_up(speed, workers):
    assert karp_flatt(speed, workers).value is None
