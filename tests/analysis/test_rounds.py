"""Which runs count as taken in one round, by the times at which they began."""

import pytest

import synthetic
from imported_runs import imported_run
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.measures import measure_rows
from scalestudy.analysis.rounds import ASSUMED, HOURS
from scalestudy.analysis.runs import group_runs, key_of

COUNTS = (1, 2, 4, 8)
SECONDS = 100.0
"""Seconds of a run: each begins when the one before has ended, unless the test says otherwise."""


def timed(order, step=SECONDS):
    """Runs (workers, seed) of one strategy, which begin in this order."""
    return [
        synthetic.changed(
            synthetic.run(
                "horovod", workers, seed, throughput=100.0 * workers**0.9 + seed
            ),
            began=1e9 + place * step,
            wall_seconds=SECONDS,
        )
        for place, (workers, seed) in enumerate(order)
    ]


BY_ROUND = [(workers, seed) for seed in range(3) for workers in COUNTS]
BY_ROW = [(workers, seed) for workers in COUNTS for seed in range(3)]
ADDED = [(workers, seed) for seed in range(3) for workers in (1, 2, 4)] + [
    (8, seed) for seed in range(3)
]


def compared(runs, workers=8, other=1):
    """Pairs of two rows, and whether they count as run apart."""
    rates = measure_rows(group_runs(runs)).throughput
    row, reference = key_of("horovod", workers, {}), key_of("horovod", other, {})
    return rates.contrast(row, reference).pairs, rates.rounds.apart(row, reference)


@pytest.mark.parametrize(
    ("order", "pairs", "apart"),
    [(BY_ROUND, 3, False), (BY_ROW, 0, True), (ADDED, 0, True)],
)
def test_rows_are_compared_within_seeds_where_their_runs_were_taken_in_rounds(
    order, pairs, apart
):
    assert compared(timed(order)) == (pairs, apart)


def test_rows_that_were_run_in_rounds_stay_paired_beside_one_that_was_added():
    assert compared(timed(ADDED), 4, 1) == (3, False)


def test_jobs_that_ran_at_once_were_taken_together_in_whatever_order_they_began():
    assert compared(timed(BY_ROW, step=1.0))[0] == 3


def test_runs_in_any_order_are_compared_unpaired_and_their_own_spread_holds_the_hours():
    mixed = [(1, 0), (8, 1), (1, 2), (8, 0), (1, 1), (8, 2)]
    assert compared(timed(mixed)) == (0, False)


def test_quality_is_compared_within_seeds_whenever_they_were_run():
    quality = measure_rows(group_runs(timed(BY_ROW))).quality
    assert (
        quality.contrast(key_of("horovod", 8, {}), key_of("horovod", 1, {})).pairs == 3
    )


def test_a_table_from_elsewhere_has_no_rounds_and_its_intervals_hold_an_assumed_part_between_rows():
    runs = [
        imported_run(
            workers,
            line=10 * workers + seed,
            seed=seed,
            training_seconds=600 / workers + seed / 10,
        )
        for workers in (1, 4)
        for seed in range(3)
    ]
    findings = analyse("made", runs)
    rates, (one, four) = findings.measures.rate, [row.key for row in findings.rows]
    assert (rates.contrast(four, one).pairs, rates.rounds.apart(four, one)) == (0, True)
    assert (rates.rounds.between.value, rates.rounds.between.freedom) == (
        HOURS**2,
        ASSUMED,
    )
    assert rates.ratio(four, one).high / rates.ratio(four, one).value > 1.15


def test_rows_off_a_smooth_curve_show_how_far_hours_differ():
    def between(slow):
        runs = [
            imported_run(
                workers,
                line=workers,
                training_seconds=600 / workers * (slow if workers == 4 else 1),
            )
            for workers in COUNTS
        ]
        return measure_rows(group_runs(runs)).rate.rounds.between.value

    assert between(1.3) > 4 * between(1.0)


def test_the_report_names_rows_that_were_run_apart_from_the_rest():
    def named(order):
        questions = analyse("made", timed(order)).advice.open_questions
        return [
            text
            for text in questions
            if "horovod on 8 workers" in text and "rounds" in text
        ]

    assert len(named(ADDED)) == 1
    assert named(BY_ROUND) == []
