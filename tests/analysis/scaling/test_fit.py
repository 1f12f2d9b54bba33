"""A law's prediction intervals are counted in made studies: how often they hold a run yet to be measured."""

import math

import numpy as np
import pytest

from scalestudy.analysis.scaling.amdahl import AMDAHL
from scalestudy.analysis.scaling.choose import choose
from scalestudy.analysis.scaling.communication import COMMUNICATION
from scalestudy.analysis.scaling.fit import fit

STUDIES = 200
LEAST = 0.95 - 3 * math.sqrt(0.95 * 0.05 / STUDIES)


def coverage(truth, counts, runs, noise, at, fitted, studies=STUDIES):
    generator = np.random.default_rng(5)
    held = 0
    everyone = [n for n in counts for _ in range(runs)]
    for _ in range(studies):
        times = [truth(n) * math.exp(noise * generator.standard_normal()) for n in everyone]
        found = fitted(everyone, times).time(at)
        held += found.low <= truth(at) * math.exp(noise * generator.standard_normal()) <= found.high
    return held / studies


@pytest.mark.parametrize("serial", [0.0, 1.0, 10.0], ids="serial {} %".format)
@pytest.mark.parametrize(("runs", "noise"), [(1, 0.05), (3, 0.02)])
def test_intervals_of_amdahls_law_hold_four_times_beyond_what_was_measured(serial, runs, noise):
    def truth(n):
        return serial + (100 - serial) / n

    found = coverage(truth, [1, 2, 4, 8], runs, noise, 32, lambda n, t: fit(AMDAHL, n, t))
    assert found > LEAST


def test_intervals_with_communication_hold_beyond_what_was_measured():
    def truth(n):
        return 1 + 99 / n + 0.5 * n

    counts = [1, 2, 4, 8, 16, 32]
    assert coverage(truth, counts, 3, 0.02, 128, lambda n, t: fit(COMMUNICATION, n, t)) > LEAST
    assert coverage(truth, counts, 3, 0.02, 128, lambda n, t: choose(n, t).fit, 40) > 0.85


def test_an_interval_holds_only_as_long_as_the_law_does():
    """Communication that four counts cannot show is in no interval: the docs say so."""

    def truth(n):
        return 1 + 99 / n + 0.5 * n

    assert coverage(truth, [1, 2, 4, 8], 3, 0.02, 32, lambda n, t: choose(n, t).fit, 40) < 0.5


def test_intervals_widen_with_the_distance_from_what_was_measured():
    found = fit(AMDAHL, [1, 2, 4, 8], [100.0, 56.0, 32.0, 21.0])
    widths = [math.log(found.time(n).high / found.time(n).low) for n in (4, 8, 16, 32)]
    assert widths == sorted(widths)
    assert not found.beyond(8)
    assert found.beyond(9)


def test_too_few_runs_predict_without_an_interval():
    found = fit(AMDAHL, [1, 2, 4], [100.0, 56.0, 32.0])
    assert found.time(8).value == pytest.approx(found.seconds(8))
    assert found.time(8).low is None


def test_a_law_that_misses_something_is_told_from_runs_that_scatter():
    counts = [n for n in (1, 2, 4, 8, 16) for _ in range(3)]
    bent = [
        t * f
        for n in (1, 2, 4, 8, 16)
        for t in [10 + 90 / n + (8 if n == 4 else 0)]
        for f in (0.999, 1, 1.001)
    ]
    lacking = fit(AMDAHL, counts, bent)
    assert lacking.lacks
    assert lacking.freedom == 3
    straight = [t * f for n in (1, 2, 4, 8, 16) for t in [10 + 90 / n] for f in (0.999, 1, 1.001)]
    assert not fit(AMDAHL, counts, straight).lacks
    assert lacking.time(32).high / lacking.time(32).low > 1.3


def test_a_ratio_of_times_is_surer_than_the_times_where_the_law_moves_them_together():
    counts = [n for n in (1, 2, 4, 8) for _ in range(3)]
    found = fit(AMDAHL, counts, [(10 + 90 / n) * f for n in (1, 2, 4, 8) for f in (0.98, 1.0, 1.02)])
    speed = found.ratio(8, 1)
    assert speed.value == pytest.approx(found.seconds(1) / found.seconds(8))
    assert speed.low < speed.value < speed.high
    one = found.ratio(4, 4)
    assert (one.low, one.value, one.high) == (1, 1, 1)


def test_the_law_is_written_with_its_numbers_and_without_terms_that_are_nothing():
    exact = fit(COMMUNICATION, [1, 2, 4, 8, 16], [5 + 100 / n + 2 * n for n in (1, 2, 4, 8, 16)])
    assert exact.written == "T(n) = 5 + 100/n + 2 n s"


def test_fewer_counts_than_terms_fit_nothing():
    assert fit(COMMUNICATION, [1, 2, 4, 1], [100.0, 52.0, 30.0, 99.0]) is None
