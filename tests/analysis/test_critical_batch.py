import numpy as np
import pytest

import mlperf
from scalestudy.analysis.critical_batch import fit_critical_batch
from scalestudy.analysis.statistics import student


def standard_error(estimate, points):
    return (estimate.high - estimate.low) / 2 / student(points - 2)


def test_the_published_points_of_resnet():
    found = fit_critical_batch(mlperf.RESNET)
    assert found.least.value == pytest.approx(34.5, abs=0.05)
    assert standard_error(found.least, 10) == pytest.approx(1.0, abs=0.05)
    assert found.critical.value == pytest.approx(46_000, rel=0.01)
    assert standard_error(found.critical, 10) == pytest.approx(3_000, rel=0.1)
    assert found.fits
    assert found.misfit == pytest.approx(0.065, abs=0.002)


def test_the_published_points_of_ssd_do_not_lie_on_a_line():
    found = fit_critical_batch(mlperf.SSD)
    assert found.least.value == pytest.approx(3.1, abs=0.05)
    assert found.critical.value == pytest.approx(1_100, rel=0.01)
    assert not found.fits
    assert (found.misfit_at, round(found.misfit, 2)) == (2048, 0.11)


def test_three_batches_are_refused():
    assert fit_critical_batch(dict(list(mlperf.RESNET.items())[:3])) is None


@pytest.mark.parametrize("critical", [50, 1_000, 40_000])
def test_an_exact_curve_is_found_again_and_continued(critical):
    curve = {batch: [900 * (1 + batch / critical)] for batch in (32, 64, 128, 256)}
    found = fit_critical_batch(curve)
    assert found.least.value == pytest.approx(900, rel=0.01)
    assert found.critical.value == pytest.approx(critical, rel=0.01)
    assert found.ratio(1024, 32).value == pytest.approx((critical + 1024) / (critical + 32), rel=0.01)
    assert found.ratio(1024, 32).low == pytest.approx(found.ratio(1024, 32).high)


def test_what_was_not_measured_lies_in_its_interval():
    """Six batches predict the largest of eight, which no run has seen."""
    generator, held, wide = np.random.default_rng(1), 0, 0
    for _ in range(400):
        curve = {b: 10 * (1 + b / 500) * (1 + generator.normal(0, 0.03, 3)) for b in (32, 64, 128, 256, 384)}
        found = fit_critical_batch(curve).ratio(1024, 32)
        held += found.low <= 1524 / 532 <= found.high
        wide += found.high > 1.5 * found.low
    assert held / 400 >= 0.93
    assert wide / 400 < 0.5


def test_spread_alone_is_no_misfit():
    generator = np.random.default_rng(2)
    found = [
        fit_critical_batch(
            {b: 10 * (1 + b / 500) * generator.lognormal(0, 0.22, 3) for b in (64, 256, 512, 1024)}
        )
        for _ in range(200)
    ]
    assert np.mean([curve is None or curve.fits for curve in found]) >= 0.97
    assert any(curve and curve.misfit > 0.1 for curve in found)


def test_without_a_significant_slope_the_critical_batch_has_no_upper_end():
    found = fit_critical_batch({64: [100, 104], 128: [98, 101], 256: [105, 97], 512: [104, 100]})
    assert found is None or (found.critical.high is None and found.critical.low > 100)
    assert fit_critical_batch({64: [104], 128: [102], 256: [101], 512: [99]}) is None
