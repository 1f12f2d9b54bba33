import itertools

import pytest

from scalestudy.data.samples import Slice
from scalestudy.features.diagnose.ablation import (
    FEWEST,
    IN_FLIGHT,
    MOST,
    calls_of_block,
    time_steps,
)
from scalestudy.measure.heartbeat import Heartbeat

CALL = (Slice(None, None, 0, 1, 1),)


class Device:
    """Accepts calls at once and counts those waited for."""

    def __init__(self):
        self.taken, self.waited = 0, 0

    def train(self, call):
        self.taken += 1
        return self

    def __float__(self):
        self.waited += 1
        assert self.taken - self.waited <= IN_FLIGHT + 1
        return 0.0


def test_a_block_has_as_many_calls_as_asked_and_waits_for_all_of_them():
    device = Device()
    found = time_steps(device.train, itertools.repeat(CALL), 10, Heartbeat())
    assert device.taken == device.waited == len(found.begin) == len(found.end) == 10
    assert found.seconds >= found.end[-1] - found.begin[0]


def test_what_a_call_waits_for_is_told_from_what_it_computes():
    times = iter(range(100))

    def slow():
        while True:
            next(times)
            yield CALL

    found = time_steps(Device().train, slow(), 3, Heartbeat())
    assert found.begin[1] >= found.end[0]
    assert found.arrived[0] >= found.begin[0]


@pytest.mark.parametrize(
    ("seconds", "each", "calls"),
    [(2.0, 0.02, 100), (2.0, 10.0, FEWEST), (2.0, 1e-6, MOST), (2.0, 0.0, MOST)],
)
def test_a_block_is_as_long_as_asked_within_bounds(seconds, each, calls):
    assert calls_of_block(seconds, each) == calls
