import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from scalestudy.analysis.statistics import NOTHING, difference, mean, ratio

sensible = st.floats(min_value=1e-3, max_value=1e6)
samples = st.lists(sensible, min_size=2, max_size=8)


def test_one_run_has_a_value_but_no_interval():
    assert mean([3.0]).value == 3.0
    assert mean([3.0]).low is None
    assert difference([3.0], [1.0, 2.0]).half_width is None
    assert ratio([3.0, 4.0], [1.0]).high is None


def test_the_interval_of_a_mean_is_students():
    values = [9.8, 10.1, 10.4, 9.9]
    expected = stats.t.interval(0.95, 3, loc=10.05, scale=stats.sem(values))
    found = mean(values)
    assert (found.low, found.high) == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore:Precision loss")
@given(samples, samples)
def test_the_interval_of_a_difference_is_welchs(values, reference):
    found = difference(values, reference)
    if len(set(values)) == 1 and len(set(reference)) == 1:
        assert found.low == found.high == found.value
        return
    expected = stats.ttest_ind(values, reference, equal_var=False).confidence_interval(0.95)
    if math.isfinite(expected.low):
        assert found.low == pytest.approx(expected.low, rel=1e-5, abs=1e-6)
        assert found.high == pytest.approx(expected.high, rel=1e-5, abs=1e-6)


@given(samples, samples)
def test_swapping_a_ratio_inverts_it_and_its_interval(values, reference):
    there, back = ratio(values, reference), ratio(reference, values)
    assert there.value * back.value == pytest.approx(1)
    if there.high < 1e100 and back.high < 1e100:
        assert there.low * back.high == pytest.approx(1)


@given(samples, samples)
def test_an_interval_holds_its_value(values, reference):
    for found in (mean(values), difference(values, reference), ratio(values, reference)):
        assert found.low <= found.value + 1e-9
        assert found.value <= found.high + 1e-9


def test_constant_values_have_an_interval_without_width():
    found = ratio([4.0, 4.0], [2.0, 2.0])
    assert found.value == pytest.approx(2)
    assert found.half_width == 0


@pytest.mark.parametrize("values", [[], [math.nan, 1.0], [math.inf, 1.0]])
def test_a_diverged_run_leaves_nothing_to_average(values):
    assert mean(values) == NOTHING
    assert difference(values, [1.0]) == NOTHING


def test_a_ratio_needs_positive_values():
    assert ratio([1.0, 0.0], [1.0]) == NOTHING
