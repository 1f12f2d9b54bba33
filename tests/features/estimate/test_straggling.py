"""The expected slowest of many workers, against simulated ones."""

import numpy as np
import pytest

from scalestudy.features.estimate.straggling import expected_maximum


@pytest.mark.parametrize("count", [2, 4, 32, 1024])
def test_it_is_the_mean_of_the_largest_of_so_many_normal_values(count):
    normal = np.random.default_rng(0).standard_normal((2000, count))
    assert expected_maximum(count) == pytest.approx(normal.max(axis=1).mean(), abs=0.06)


def test_one_worker_waits_for_nobody_and_growth_is_slower_than_any_power():
    assert expected_maximum(1) == 0
    assert expected_maximum(16) > 1.7 and expected_maximum(4096) < 3.7
