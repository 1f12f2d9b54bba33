"""Synthetic studies with a known truth: how often predictions and decisions are right.

Each case: 200 studies, three runs per worker count, 2 % noise; twice the largest count is predicted."""

import math

import numpy as np
import pytest

from synthetic_series import model

pytestmark = pytest.mark.slow
STUDIES = 200
EIGHT, SIXTEEN = (1, 2, 4, 8), (1, 2, 4, 8, 16)


def step(n):
    return 1 / 0.847 if n > 1 else 1.0


CASES = {
    # name: (time of one training, counts, options, tolerance at twice the largest count, limit of speed-up)
    "E = 0.847 at every n > 1": (lambda n: step(n) / n, EIGHT, {}, 0.03, None),
    "saturating ring": (
        lambda n: (1 + 0.08 * 2 * (n - 1) / n) / n,
        EIGHT,
        {},
        0.08,
        None,
    ),
    "6 % a doubling": (lambda n: (1 + 0.06 * math.log2(n)) / n, EIGHT, {}, 0.10, None),
    "3 % a worker": (lambda n: (1 + 0.03 * (n - 1)) / n, EIGHT, {}, 0.10, 1 / 0.03),
    "second node": (
        lambda n: (1 + 0.05 * (n > 1) + 0.2 * (n > 4)) / n,
        SIXTEEN,
        {"per_node": 4},
        0.05,
        None,
    ),
    "Amdahl, one global batch": (
        lambda n: 0.05 + 0.95 / n,
        EIGHT,
        {"update": "fixed"},
        0.12,
        20.0,
    ),
    "each in turn, one global batch": (
        lambda n: 0.01 + 1 / n + 0.003 * (n - 1),
        (*SIXTEEN, 32),
        {"update": "fixed"},
        0.12,
        8.58,
    ),
    "ideal": (lambda n: 1 / n, EIGHT, {}, 0.03, None),
    "ideal, one global batch": (
        lambda n: 1 / n,
        EIGHT,
        {"update": "fixed"},
        0.05,
        None,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_known_truth_is_predicted_and_its_interval_holds(name):
    share, counts, options, tolerance, limit = CASES[name]
    noise, at = np.random.default_rng(11), 2 * counts[-1]
    times = {n: 600 * share(n) for n in counts}
    near = held = lacking = limits = limits_held = 0
    for study in range(STUDIES):
        found = model(times, spread=0.02, noise=noise, **options)
        seconds, truth = found.predict(at).seconds, 600 * share(at)
        near += abs(math.log(seconds.value / truth)) < tolerance
        held += seconds.low <= truth <= seconds.high
        lacking += found.lack_of_fit
        if study < 50 and found.limit.value is not None:
            limits += 1
            limits_held += (
                limit is not None and found.limit.low <= limit <= found.limit.high
            )
    assert near >= 0.9 * STUDIES
    assert held >= 0.9 * STUDIES
    assert lacking <= 0.03 * STUDIES
    if limit is None:
        assert limits <= 3
    else:
        assert limits_held >= 0.85 * limits


@pytest.mark.parametrize(
    ("name", "largest"), [("E = 0.847 at every n > 1", 8), ("ideal", 8)]
)
def test_the_largest_count_that_keeps_an_efficiency_does_not_waver(name, largest):
    share, counts, *_ = CASES[name]
    noise = np.random.default_rng(3)
    for _ in range(STUDIES):
        found = model({n: 600 * share(n) for n in counts}, spread=0.01, noise=noise)
        kept = [n for n in counts if found.predict(n).efficiency.value >= 0.8]
        assert max(kept) == largest


def test_no_limit_is_claimed_for_exchange_that_falls_with_the_updates():
    found = model({n: 600 * step(n) / n for n in EIGHT}, spread=0.003)
    assert found.limit.value is None
    assert set(found.fit.parts) == {"compute", "constant"}
    assert found.predict(64).efficiency.value == pytest.approx(0.847, rel=1e-3)
