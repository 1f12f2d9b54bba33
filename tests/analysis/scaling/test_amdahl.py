import made
import pytest
from hypothesis import given
from hypothesis import strategies as st

from published import TABLES
from scalestudy.analysis.scaling.amdahl import fit_amdahl


def test_the_published_cassava_times_have_a_serial_sixth():
    # Least squares of relative errors give 96 + 467/n. The quoted 101 + 465/n lies above all four times,
    # by 0.5 to 2.8 %; its serial share of 17.9 % and its limit of 5.6 are inside the intervals.
    fit = fit_amdahl(list(made.CASSAVA), list(made.CASSAVA.values()))
    assert fit.serial_seconds == pytest.approx(96.2, abs=0.1)
    assert fit.parallel_seconds == pytest.approx(466.6, abs=0.1)
    assert fit.fraction == pytest.approx(0.171, abs=0.001)
    assert fit.limit == pytest.approx(5.85, abs=0.01)
    quoted = TABLES["cassava"]["quoted_law"]
    assert fit.fraction_low < quoted["serial_percent"] / 100 < fit.fraction_high
    assert fit.limit_low < quoted["limit"] < fit.limit_high
    for count in made.CASSAVA:
        law = quoted["serial_seconds"] + quoted["parallel_seconds"] / count
        assert fit.seconds(count) == pytest.approx(law, rel=0.03)


@given(st.floats(0.01, 0.9), st.floats(10, 1e5))
def test_exact_times_give_the_law_back(fraction, seconds):
    counts = [1, 2, 4, 8, 16]
    times = [seconds * (fraction + (1 - fraction) / count) for count in counts]
    fit = fit_amdahl(counts, times)
    assert fit.fraction == pytest.approx(fraction, rel=1e-4)
    assert fit.fraction_low <= fit.fraction <= fit.fraction_high
    assert fit.workers_at(0.5) == pytest.approx(1 + 1 / fraction, rel=1e-3)
    assert [fit.seconds(count) for count in counts] == pytest.approx(times)


def test_two_worker_counts_are_not_enough():
    assert fit_amdahl([1, 2, 2, 1], [10.0, 6.0, 6.1, 9.9]) is None


def test_three_single_runs_give_a_fit_without_an_interval():
    fit = fit_amdahl([1, 2, 4], [100.0, 60.0, 40.0])
    assert fit.fraction == pytest.approx(0.2, abs=1e-3)
    assert fit.fraction_low is None
    assert fit.limit_high is None


def test_ideal_and_better_scaling_have_no_serial_part_and_no_limit():
    fit = fit_amdahl([1, 2, 4, 8], [100.0, 49.0, 24.0, 11.5])
    assert fit.serial_seconds == 0
    assert fit.limit is None
    assert fit.limit_high is None
    assert fit.fraction_low == 0
    assert fit.workers_at(0.7) is None


def test_times_that_do_not_fall_are_all_serial():
    fit = fit_amdahl([1, 2, 4, 8], [100.0, 101.0, 100.0, 102.0])
    assert fit.fraction > 0.95
    assert fit.fraction_high == 1


def test_times_that_are_no_times_are_not_fitted():
    assert fit_amdahl([1, 2, 4], [100.0, float("nan"), 30.0]) is None
