"""Made studies by the thousand: how often the intervals hold the truth they were made with.

Each test draws studies from a known truth and counts, over all rows, the intervals that hold it. A
coverage of 0.95 over `STUDIES` studies has a standard error of 0.01 (rows of one study share their spread,
so they do not count as studies of their own): `LEAST` is three of these below what is claimed. `MOST` says
that no coverage is bought by width: a row may only keep its own, wider interval now and then.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from scalestudy.analysis import pooling
from scalestudy.analysis.measures import measured
from scalestudy.analysis.scales import ARCSINE, LINEAR, LOGARITHM

STUDIES = 500
LEAST, MOST = 0.92, 0.99


@dataclass(frozen=True)
class Coverage:
    """Share of the intervals that hold the truth, for each row."""

    means: np.ndarray
    ratios: np.ndarray
    """Of every row to the first."""
    differences: np.ndarray
    """Of every row from the first."""


def coverage(draw, truth, scale=LINEAR, by_seed=False, studies=STUDIES):
    """Coverage over studies whose values [rows, seeds] `draw` makes from a generator."""
    generator = np.random.default_rng(20240229)
    first, *others = range(len(truth))
    held = []
    for _ in range(studies):
        rows = {index: dict(enumerate(values)) for index, values in enumerate(draw(generator).tolist())}
        made = measured(rows, dict.fromkeys(rows, scale), [list(rows)], by_seed)
        hits = [_holds(made.mean(row), truth[row]) for row in rows]
        if scale is LOGARITHM:
            hits += [_holds(made.ratio(row, first), truth[row] / truth[first]) for row in others]
        else:
            hits += [_holds(made.difference(row, first), truth[row] - truth[first]) for row in others]
        held.append(hits)
    shares = np.mean(held, axis=0)
    compared, nothing = shares[len(truth) :], np.array([])
    ratios, differences = (compared, nothing) if scale is LOGARITHM else (nothing, compared)
    return Coverage(shares[: len(truth)], ratios, differences)


def _holds(found, true):
    return found.low <= true <= found.high


def normal(centres, spreads=1.0, seeds=2, shared=0.0):
    """Values about their row's centre, with a part that all rows have in common under one seed."""
    centres = np.asarray(centres, float)[:, None]
    spreads = np.broadcast_to(spreads, len(centres))[:, None]

    def draw(generator):
        own = spreads * generator.normal(size=(len(centres), seeds))
        return centres + own + shared * generator.normal(size=(1, seeds))

    return draw


def as_claimed(found):
    return bool(np.all((found > LEAST) & (found < MOST)))


def test_geometric_means_and_ratios_of_two_runs_a_row_hold_the_truth():
    times = np.array([100.0, 52.0, 27.0, 15.0])
    draw = normal(np.log(times), 0.1)
    found = coverage(lambda generator: np.exp(draw(generator)), times, LOGARITHM)
    assert as_claimed(found.means), found
    assert as_claimed(found.ratios), found


@pytest.mark.parametrize("shared", [0.0, 20.0], ids=["nothing shared", "seeds decide"])
def test_differences_paired_by_seed_hold_the_truth_whatever_seeds_share(shared):
    centres = [0.0, 0.0, 1.0, 2.0]
    found = coverage(normal(centres, shared=shared), centres, by_seed=True)
    assert as_claimed(found.differences), found
    # What two seeds share is known by one degree of freedom, which Satterthwaite's approximation
    # overrates where that part is the larger one: there a mean's interval falls a little short.
    assert np.all(found.means > (LEAST if shared == 0 else 0.88)), found


def test_pairing_takes_away_what_seeds_share():
    values = normal([0.0, 0.0, 0.0, 0.0], shared=10.0)(np.random.default_rng(1)).tolist()
    paired = {row: dict(enumerate(numbers)) for row, numbers in enumerate(values)}
    strangers = {row: {10 * row + seed: v for seed, v in found.items()} for row, found in paired.items()}
    scales = dict.fromkeys(paired, LINEAR)
    narrow, wide = (measured(rows, scales, [list(rows)], True) for rows in (paired, strangers))
    assert narrow.difference(1, 0).half_width < wide.difference(1, 0).half_width / 3


@pytest.mark.parametrize(
    "rates",
    [(0.5, 0.5, 0.5, 0.5), (0.985, 0.985, 0.985, 0.985), (0.45, 0.7, 0.9, 0.99)],
    ids=["mid-range", "near one", "all over"],
)
def test_bounded_metrics_hold_the_truth_wherever_it_lies(rates):
    rates = np.array(rates)

    def draw(generator):
        return generator.binomial(1000, rates[:, None], size=(len(rates), 2)) / 1000

    found = coverage(draw, rates, ARCSINE, by_seed=True)
    assert as_claimed(found.means), found
    assert as_claimed(found.differences), found


WILD = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 100.0])
"""Five rows alike, and one that all but diverges."""


def test_a_wild_row_neither_loses_its_own_coverage_nor_spoils_the_others():
    found = coverage(normal([0.0] * 6, WILD), [0.0] * 6).means
    assert as_claimed(found), found


def test_pooling_without_the_check_would_not_hold_what_it_claims(monkeypatch):
    monkeypatch.setattr(pooling, "LEVEL", -1.0)
    found = coverage(normal([0.0] * 6, WILD), [0.0] * 6).means
    assert found[-1] < 0.75, found  # the wild row, whose spread the others dilute
    assert np.all(found[:-1] > 0.995), found  # the others, whose intervals it swells


def test_a_row_too_little_apart_to_be_seen_loses_some_coverage_and_no_more():
    found = coverage(normal([0.0] * 4, [1.0, 1.0, 1.0, 5.0]), [0.0] * 4).means
    assert found[-1] > 0.75, found
    assert found.mean() > 0.90, found


def test_two_seeds_over_four_rows_give_widths_that_tell_something():
    """A small study at two seeds: native and Horovod on 1 and 2 workers of a noisy machine."""
    throughput = [(68.9, 82.1), (71.1, 78.2), (141.0, 124.5), (124.8, 136.9)]
    quality = [(0.604, 0.562), (0.596, 0.571), (0.275, 0.125), (0.213, 0.160)]
    times, scores = (
        {row: dict(enumerate(v)) for row, v in enumerate(all_)} for all_ in (throughput, quality)
    )
    rows = list(times)

    alone = measured(times, dict.fromkeys(rows, LINEAR), [], by_seed=False).mean(0)
    assert alone.low < 0
    assert alone.high > 150
    found = measured(times, dict.fromkeys(rows, LOGARITHM), [rows], by_seed=False)
    assert all(0.7 < found.mean(row).low / found.mean(row).value < 1 for row in rows)
    assert found.ratio(2, 0).low > 1.2

    assert measured(scores, dict.fromkeys(rows, LINEAR), [], by_seed=False).mean(2).half_width > 0.9
    found = measured(scores, dict.fromkeys(rows, ARCSINE), [rows], by_seed=True)
    assert all(0 < found.mean(row).low < found.mean(row).high < 1 for row in rows)
    assert all(found.mean(row).half_width < 0.27 for row in rows)
    change = found.difference(2, 0)
    assert math.isclose(change.value, 0.200 - 0.583)
    assert change.high < -0.1
