import json
from itertools import pairwise

import pytest

from scalestudy.measure.clock import MOST, StepTimes, class_of, quantile, seconds_of


def test_a_time_is_known_to_one_percent():
    for seconds in (2e-6, 0.00123, 0.5, 77.0):
        assert seconds_of(class_of(seconds)) == pytest.approx(seconds, rel=0.006)
    assert class_of(0.0) == class_of(1e-9) == 0


def test_calls_and_waits_are_counted_by_how_long_they_took():
    times = StepTimes(3)
    for _ in range(9):
        times.add(8, 0.010, 0.0)
    times.add(2, 0.100, 0.050)
    times.epoch_end(1)
    found = times.record()
    assert (found.rank, found.steps_per_call) == (3, 8)
    assert found.calls == {class_of(0.010): 9}, "calls of fewer steps are shorter for no other reason"
    assert found.waits == {0: 9, class_of(0.050): 1}
    (epoch,) = found.epochs
    assert (epoch.epochs, epoch.calls, epoch.steps) == ((1, 1), 10, 74)
    assert epoch.step_seconds == pytest.approx(0.19)
    assert epoch.input_seconds == pytest.approx(0.05)
    assert epoch.longest == 0.1
    assert quantile(found.calls, 0.5) == pytest.approx(0.010, rel=0.05)


@pytest.mark.parametrize("epochs", [MOST + 1, 5000])
def test_a_record_stays_small_however_long_the_run_and_loses_no_epoch(epochs):
    times = StepTimes(0)
    for epoch in range(1, epochs + 1):
        times.add(1, 0.001 * (epoch % 7 + 1), 0.0)
        times.epoch_end(epoch)
    found = times.record()
    assert len(found.epochs) <= MOST
    assert sum(each.calls for each in found.epochs) == epochs
    bounds = [each.epochs for each in found.epochs]
    assert bounds[0][0] == 1
    assert bounds[-1][1] == epochs
    assert all(one[1] + 1 == other[0] for one, other in pairwise(bounds))
    assert len(json.dumps(found.model_dump(mode="json"))) < 100_000
