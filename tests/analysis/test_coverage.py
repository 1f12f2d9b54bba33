"""Thousands of synthetic studies: how often the intervals contain the true value.

Each test draws studies from a known truth and counts, for every row, the intervals that contain it. The
standard error of a coverage of 0.95 over `STUDIES` studies is 0.014, and less for a mean over rows. `LEAST`
is the claimed coverage less about two of those; `MOST` shows that wide intervals are not the reason. One test
of each kind is not `slow`.
"""

import numpy as np
import pytest

from imported_runs import imported_run
from scalestudy.analysis.measures import build_measure
from scalestudy.analysis.rounds import Rounds, rounds_of
from scalestudy.analysis.runs import Run, key_of
from scalestudy.analysis.scales import ARCSINE, LINEAR, LOGARITHM

STUDIES = 250
LEAST, MOST = 0.93, 0.995
COUNTS = np.array([1, 2, 4, 8])


def coverage(draw, truth, scale=LINEAR, differences=LINEAR, studies=STUDIES):
    """Coverage of means and of contrasts with the first row; `draw` returns values [rows, blocks]."""
    generator = np.random.default_rng(20240229)
    first, *others = range(len(truth))
    means, contrasts = [], []
    for _ in range(studies):
        rows = {
            index: dict(enumerate(values))
            for index, values in enumerate(draw(generator).tolist())
        }
        study = build_measure(
            rows, dict.fromkeys(rows, scale), [list(rows)], differences
        )
        means.append([_holds(study.mean(row), truth[row]) for row in rows])
        if differences is LOGARITHM:
            held = [
                _holds(study.ratio(row, first), truth[row] / truth[first])
                for row in others
            ]
        else:
            held = [
                _holds(study.difference(row, first), truth[row] - truth[first])
                for row in others
            ]
        contrasts.append(held)
    return np.mean(means, axis=0), np.mean(contrasts, axis=0)


def _holds(found, true):
    return found.low <= true <= found.high


def in_blocks(hours, rows, seeds, generator):
    """Assign the conditions `hours` [runs], in order of execution, to runs [rows, seeds] in random blocks."""
    met = np.empty((rows, seeds))
    for seed in range(seeds):
        met[generator.permutation(rows), seed] = hours[seed * rows : (seed + 1) * rows]
    return met


def row_by_row(hours, rows, seeds, _):
    """The same with all seeds of one row before the next row."""
    return hours.reshape(rows, seeds)


def drifting(generator, runs, level=0.03, memory=0.95):
    """An AR(1) process with standard deviation `level`."""
    found = np.empty(runs)
    found[0] = generator.normal(0, level)
    for place in range(1, runs):
        found[place] = memory * found[place - 1] + generator.normal(
            0, level * np.sqrt(1 - memory**2)
        )
    return found


def times(met, seeds, rows=8, noise=0.005, order=in_blocks):
    """Times of two strategies on 1 to 8 workers, with machine conditions drawn by `met`: (truth, draw)."""
    truth = np.concatenate([100.0 / COUNTS**0.9, 110.0 / COUNTS**0.8])[:rows]

    def draw(generator):
        factors = order(met(generator, rows * seeds), rows, seeds, generator)
        return truth[:, None] * np.exp(
            factors + generator.normal(0, noise, (rows, seeds))
        )

    return truth, draw


DRIFTS = {
    "AR(1) of 3 %": drifting,
    "a linear drift of 8 %": lambda generator, runs: np.linspace(0, 0.08, runs),
    "hours of 10 %": lambda generator, runs: np.repeat(
        generator.normal(0, 0.1, runs), 8
    )[:runs],
    "heavy tails": lambda generator, runs: 0.01 * generator.standard_t(3, runs),
    "nothing": lambda generator, runs: np.zeros(runs),
}


def all_but_first_slow(values, ids=None):
    names = [str(value) for value in (ids or values)]
    return [
        pytest.param(value, id=name, marks=[pytest.mark.slow] * (place > 0))
        for place, (value, name) in enumerate(zip(values, names, strict=True))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seeds", all_but_first_slow([3, 5]))
@pytest.mark.parametrize("met", all_but_first_slow(DRIFTS.values(), DRIFTS))
def test_speed_ups_of_runs_in_randomised_blocks_hold_whatever_the_machine_does(
    met, seeds
):
    truth, draw = times(met, seeds)
    _, ratios = coverage(draw, truth, LOGARITHM, LOGARITHM)
    assert ratios.mean() >= LEAST, ratios
    assert np.all(ratios >= 0.91), ratios
    assert ratios.mean() <= MOST, ratios


@pytest.mark.slow
@pytest.mark.parametrize("met", ["AR(1) of 3 %", "a linear drift of 8 %"])
def test_taken_row_by_row_the_same_studies_would_not_hold(met):
    truth, draw = times(DRIFTS[met], 3, order=row_by_row)
    _, ratios = coverage(draw, truth, LOGARITHM, LOGARITHM, studies=200)
    assert ratios[2] < 0.75, ratios  # the contrast for S(8)


def apart(order, seeds):
    """Rounds of two strategies on 1 to 8 workers: imported, or begun in this order."""
    keys = [
        key_of(strategy, int(n), {})
        for strategy in ("native", "horovod")
        for n in COUNTS
    ]
    groups = {key: [] for key in keys}
    for place, (row, seed) in enumerate(order):
        key, began = keys[row], 100.0 * place
        run = imported_run(
            key.workers, strategy=key.strategy, line=place, seed=seed, wall_seconds=90.0
        )
        own = Run(run.result.model_copy(update={"began": began}))
        groups[key].append(run if order is IMPORTED[seeds] else own)
    return keys, groups


ROWS = range(8)
IMPORTED = {
    seeds: [(row, seed) for row in ROWS for seed in range(seeds)] for seeds in (2, 3, 5)
}
INTERRUPTED = {seeds: list(IMPORTED[seeds]) for seeds in IMPORTED}
"""All seeds of one row before the next row, which the start of each run tells."""


@pytest.mark.parametrize(
    "orders", [IMPORTED, INTERRUPTED], ids=["imported", "row by row"]
)
@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_speed_ups_hold_though_each_row_has_an_hour_of_its_own(orders, seeds):
    """Hours of 5 %; compared within seeds, as if they were rounds, many would not hold."""
    generator, studies = np.random.default_rng(8), 150
    keys, groups = apart(orders[seeds], seeds)
    truth = np.concatenate([100.0 / COUNTS**0.9, 110.0 / COUNTS**0.8])
    held, naive = [], []
    for _ in range(studies):
        noise = generator.normal(0, 0.05, (8, 1)) + generator.normal(
            0, 0.02, (8, seeds)
        )
        drawn = (truth[:, None] * np.exp(noise)).tolist()
        values = {
            key: dict(enumerate(row)) for key, row in zip(keys, drawn, strict=True)
        }
        scales = dict.fromkeys(keys, LOGARITHM)
        for found, rounds in ((held, rounds_of(groups, values)), (naive, Rounds())):
            study = build_measure(values, scales, [keys], LOGARITHM, rounds)
            found += [
                _holds(study.ratio(keys[row], keys[0]), truth[row] / truth[0])
                for row in (3, 7)
            ]
    assert np.mean(held) >= 0.90
    assert np.mean(naive) < 0.85


def normal(centres, spreads=1.0, seeds=2, shared=0.0):
    """Values around each row's centre, plus a term that all rows share under one seed."""
    centres = np.asarray(centres, float)[:, None]
    spreads = np.broadcast_to(spreads, len(centres))[:, None]

    def draw(generator):
        own = spreads * generator.normal(size=(len(centres), seeds))
        return centres + own + shared * generator.normal(size=(1, seeds))

    return draw


@pytest.mark.slow
@pytest.mark.parametrize("seeds", all_but_first_slow([3, 2, 5]))
@pytest.mark.parametrize(
    "shared", all_but_first_slow([20.0, 0.0], ["seeds decide", "nothing shared"])
)
def test_differences_of_quality_hold_whatever_seeds_share(shared, seeds):
    centres = [0.0, 0.0, 1.0, 2.0]
    means, differences = coverage(normal(centres, shared=shared, seeds=seeds), centres)
    assert differences.mean() >= LEAST, differences
    # The shared term has few degrees of freedom, which Satterthwaite's approximation overestimates.
    assert means.mean() >= (LEAST if shared == 0 else 0.88), means


RATES = {
    "all over": (0.45, 0.7, 0.9, 0.99),
    "mid-range": (0.5,) * 4,
    "near one": (0.985,) * 4,
}


@pytest.mark.slow
@pytest.mark.parametrize("rates", all_but_first_slow(RATES.values(), RATES))
def test_bounded_metrics_hold_the_truth_wherever_it_lies(rates):
    rates = np.array(rates)

    def draw(generator):
        return generator.binomial(1000, rates[:, None], size=(len(rates), 3)) / 1000

    means, differences = coverage(draw, rates, ARCSINE)
    assert means.mean() >= LEAST, means
    assert differences.mean() >= LEAST, differences


UNEQUAL = {
    "spreads from 1 to 4": (np.geomspace(1, 4, 8), LEAST),
    "one row of 8 spreads 3 times as far": ([1, 1, 1, 1, 1, 1, 1, 3], 0.92),
    "one row of 8 spreads 5 times as far": ([1, 1, 1, 1, 1, 1, 1, 5], 0.89),
    "one row of 8 spreads 10 times as far": ([1, 1, 1, 1, 1, 1, 1, 10], 0.87),
}


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [2, 3, 5])
@pytest.mark.parametrize(("spreads", "odd"), UNEQUAL.values(), ids=UNEQUAL)
def test_rows_of_unequal_spread_hold_on_the_whole_and_growing_ones_each(
    spreads, odd, seeds
):
    """Two or three blocks hardly show that a single row spreads more than the others."""
    _, differences = coverage(normal([0.0] * 8, spreads, seeds=seeds), [0.0] * 8)
    assert differences.mean() >= LEAST, differences
    assert differences.min() >= odd, differences


@pytest.mark.slow
@pytest.mark.parametrize(
    "spreads", [np.ones(8), np.geomspace(1, 4, 8)], ids=["equal", "growing"]
)
def test_a_reference_of_one_run_has_intervals_that_hold(spreads):
    draw, generator, held = (
        normal([0.0] * 8, spreads, seeds=3, shared=20.0),
        np.random.default_rng(7),
        [],
    )
    for _ in range(STUDIES):
        rows = {
            index: dict(enumerate(values))
            for index, values in enumerate(draw(generator).tolist())
        }
        rows[0] = {0: rows[0][0]}
        study = build_measure(rows, dict.fromkeys(rows, LINEAR), [list(rows)], LINEAR)
        held.append([_holds(study.difference(row, 0), 0.0) for row in range(1, 8)])
    assert np.mean(held) >= LEAST, np.mean(held, axis=0)
