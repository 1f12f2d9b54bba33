"""What speaks against a table makes its decision provisional, and is named before all else."""

from dataclasses import replace

import pytest

import synthetic
from imported_runs import imported_run
from scalestudy.analysis.decision import Criteria
from scalestudy.analysis.estimate import NOTHING, Estimate
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.plausibility import with_doubts
from scalestudy.analysis.runs import key_of
from scalestudy.analysis.to_target import Useful
from scalestudy.analysis.wording.doubts import describe_doubt
from scalestudy.analysis.wording.verdicts import describe_verdict
from scalestudy.config.quality_margin import QualityMargin

SEEDS = (0.998, 1.0, 1.002)


def timed(
    workers,
    seconds,
    seed=0,
    *,
    quality=0.95,
    gpu=None,
    hosts=(),
    strategy="native",
    **options,
):
    """A run of so many seconds from start to result."""
    run = synthetic.run(
        strategy,
        workers,
        seed,
        quality=quality,
        training_seconds=seconds,
        throughput=1e6 / seconds,
        **options,
    )
    run = synthetic.changed(
        run, wall_seconds=seconds, phases={"steps": seconds}, hosts=list(hosts)
    )
    if gpu:
        ranks = [
            rank.model_copy(update={"devices": [gpu], "device_uuids": ["GPU-1"]})
            for rank in run.ranks
        ]
        run = replace(run, ranks=tuple(ranks))
    return run


def row(workers, seconds, *, qualities=(0.95, 0.951, 0.949), factors=SEEDS, **options):
    """A run for each factor of the time."""
    return [
        timed(workers, factor * seconds, seed, quality=quality, **options)
        for seed, (factor, quality) in enumerate(zip(factors, qualities, strict=True))
    ]


def decide(runs, **criteria):
    return analyse("made", runs, criteria=Criteria(**criteria)).advice


def doubts(advice):
    sentences = [describe_doubt(doubt) for doubt in advice.decision.doubts]
    return [text for text in advice.open_questions if text in sentences]


def test_a_table_that_nothing_speaks_against_is_settled():
    advice = decide([*row(1, 3600), *row(2, 1850), *row(4, 960)])
    assert (
        advice.decision.choice.workers,
        advice.decision.provisional,
        doubts(advice),
    ) == (4, (), [])


def test_rows_on_unlike_gpus_are_not_compared():
    """One worker on a P100; two, four and eight on A100s, with efficiencies of .9, .7 and .45 among them."""
    runs = row(1, 3600, gpu="Tesla P100-PCIE-16GB")
    for workers, seconds in {2: 1000, 4: 643, 8: 500}.items():
        runs += row(workers, seconds, gpu="NVIDIA A100-SXM4-40GB")
    findings = analyse("made", runs)
    decision = findings.advice.decision
    assert (decision.kind, decision.choice) == ("unlike-devices", None)
    (doubt,) = doubts(findings.advice)
    assert "P100" in doubt and "A100" in doubt
    speeds = {
        row.workers: row.speed.steady.value for row in findings.rows if row.workers > 1
    }
    assert set(speeds.values()) == {None}


@pytest.mark.parametrize(
    ("column", "old_counts", "kind", "workers"),
    [
        ("gpu", (1,), "unlike-devices", None),
        ("GPU type", (1,), "unlike-devices", None),
        ("gpu", (1, 2), "unlike-devices", None),
        ("mode", (1,), "ask", 8),
    ],
)
def test_a_column_that_names_unlike_gpus_keeps_their_rows_from_being_compared(
    column, old_counts, kind, workers
):
    """The same table, from elsewhere."""
    runs = [
        imported_run(
            n,
            line=3 * n + seed,
            seed=seed,
            swept={column: "P100"},
            training_seconds=3600.0 / n,
        )
        for n in old_counts
        for seed in range(3)
    ]
    for n, seconds in {2: 1000.0, 4: 643.0, 8: 500.0}.items():
        for seed, factor in enumerate(SEEDS):
            known = {
                "seed": seed,
                "swept": {column: "A100"},
                "training_seconds": factor * seconds,
            }
            runs.append(imported_run(n, line=100 * n + seed, **known))
    decision = decide(runs).decision
    assert decision.kind == kind
    assert (decision.choice and decision.choice.workers) == workers


def test_unlike_gpus_that_each_have_a_reference_are_a_choice():
    runs = []
    for gpu, alone in (("P100", 3600.0), ("A100", 1800.0)):
        for n in (1, 2, 4):
            for seed, factor in enumerate(SEEDS):
                known = {
                    "seed": seed,
                    "swept": {"gpu": gpu},
                    "training_seconds": factor * alone / n**0.9,
                }
                runs.append(
                    imported_run(n, line=100 * n + seed, file=f"{gpu}.csv", **known)
                )
    decision = decide(runs).decision
    assert (decision.kind, decision.choice.workers, decision.choice.swept) == (
        "ask",
        4,
        {"gpu": "A100"},
    )


def test_times_that_do_not_fall_may_be_of_the_whole_work_on_each_worker():
    seconds = {1: (3600, 3610), 2: (3700, 3712), 8: (3990, 4001)}
    runs = [
        imported_run(
            n,
            line=10 * n + i,
            training_seconds=float(time),
            quality=0.9,
            metric="accuracy",
        )
        for n, times in seconds.items()
        for i, time in enumerate(times)
    ]
    advice = decide(runs)
    assert "times-do-not-fall" in advice.decision.provisional
    assert "samples_processed" in doubts(advice)[0]
    known = [
        replace(run, result=run.result.model_copy(update={"samples_processed": 1000}))
        for run in runs
    ]
    assert "times-do-not-fall" not in decide(known).decision.provisional


def test_a_seed_that_fails_everywhere_is_no_matter_of_workers():
    table = {
        1: ((3600, 0.1), (3605, 0.95), (3610, 0.951)),
        4: ((1000, 0.1), (1003, 0.95), (1002, 0.951)),
    }
    runs = [
        imported_run(
            n,
            line=10 * n + i,
            training_seconds=float(seconds),
            quality=quality,
            metric="accuracy",
        )
        for n, rows in table.items()
        for i, (seconds, quality) in enumerate(rows)
    ]
    advice = decide(runs)
    assert advice.decision.choice.workers == 4
    assert "fails-everywhere" in advice.decision.provisional
    assert "1 of 3" in doubts(advice)[0]


def test_numbers_of_workers_between_two_rows_are_worth_trying():
    """E(64) is .62: nothing was measured between 1 and 64."""
    advice = decide([*row(1, 36000), *row(64, 36000 / 64 / 0.62)])
    assert advice.decision.choice.workers == 1
    assert "gap" in advice.decision.provisional
    assert "try 2 to 32" in doubts(advice)[0]


def test_no_gap_is_named_between_doublings():
    advice = decide([*row(1, 3600), *row(2, 3000), *row(4, 2800)])
    assert "gap" not in advice.decision.provisional


def test_a_super_linear_speed_up_doubts_the_reference():
    advice = decide([*row(1, 3600), *row(8, 3600 / 10.9)])
    assert "super-linear" in advice.decision.provisional
    assert "native on 8 workers" in doubts(advice)[0]


def test_two_groups_of_times_are_named_with_the_slow_host():
    slow = [
        timed(4, 1000 * factor, seed, hosts=[host])
        for seed, (factor, host) in enumerate(
            [(1, "n1"), (1.003, "n2"), (1.3, "n7"), (1.302, "n7")]
        )
    ]
    even = row(
        1,
        3600,
        factors=(0.998, 1.0, 1.002, 1.001),
        qualities=(0.95, 0.951, 0.949, 0.95),
    )
    advice = decide([*even, *slow])
    assert "two-groups-of-times" in advice.decision.provisional
    assert "2 of 4" in doubts(advice)[0] and "n7" in doubts(advice)[0]


def test_half_of_the_seeds_at_another_quality_is_an_unstable_training():
    even = row(
        1,
        3600,
        factors=(0.998, 1.0, 1.002, 1.001),
        qualities=(0.95, 0.951, 0.949, 0.95),
    )
    unstable = row(
        4, 1000, factors=(0.998, 1.0, 1.002, 1.001), qualities=(0.95, 0.802, 0.951, 0.8)
    )
    advice = decide([*even, *unstable])
    assert "two-groups-of-qualities" in advice.decision.provisional
    assert "2 of 4" in doubts(advice)[0] and "0.801" in doubts(advice)[0]


def test_noise_alone_forms_no_groups():
    noisy = row(
        4, 1000, factors=(0.9, 0.97, 1.05, 1.1), qualities=(0.94, 0.946, 0.953, 0.96)
    )
    even = row(
        1,
        3600,
        factors=(0.998, 1.0, 1.002, 1.001),
        qualities=(0.95, 0.951, 0.949, 0.95),
    )
    found = decide([*even, *noisy]).decision.provisional
    assert not {"two-groups-of-times", "two-groups-of-qualities"} & set(found)


def test_a_wild_seed_leaves_the_verdict_of_other_rows_and_makes_passing_over_its_own_provisional():
    wild = row(8, 500, qualities=(0.95, 0.951, 0.75))
    advice = decide([*row(1, 3600), *row(2, 1850), *row(4, 960), *wild])
    decision = advice.decision
    assert decision.verdicts[key_of("native", 4, {})].kind == "no-worse"
    assert decision.choice == key_of("native", 4, {})
    assert decision.provisional == ("faster-may-learn",)
    worse = row(8, 500, qualities=(0.75, 0.751, 0.749))
    settled = decide([*row(1, 3600), *row(2, 1850), *row(4, 960), *worse]).decision
    assert (settled.choice, settled.provisional) == (decision.choice, ())


def test_a_small_margin_is_shown_with_its_digits():
    runs = [
        *row(1, 3600, qualities=(0.9993, 0.99931, 0.99929)),
        *row(4, 1000, qualities=(0.9991, 0.99911, 0.99909)),
    ]
    findings = analyse("made", runs, criteria=Criteria(margin=QualityMargin(0.0005)))
    verdict = findings.advice.decision.verdicts[key_of("native", 4, {})]
    assert verdict.kind == "no-worse"
    words = describe_verdict(verdict)
    assert "0.0005" in words and "<" not in words
    assert any(
        "is 0.9991 (95 % interval 0.99" in sentence
        for sentence in findings.advice.sentences
    )


def test_a_row_that_learns_better_gets_a_word():
    advice = decide([*row(1, 3600), *row(8, 520, qualities=(0.97, 0.971, 0.969))])
    (sentence,) = [
        text for text in advice.sentences if text.startswith("Learns better")
    ]
    assert "native on 8 workers" in sentence and "+0.020" in sentence


@pytest.mark.parametrize(("runs", "most"), [(3, "63%"), (5, "45%")])
def test_few_trainings_cannot_exclude_failures(runs, most):
    factors, qualities = (
        (1.0,) * runs,
        tuple(0.95 + 0.001 * seed for seed in range(runs)),
    )
    advice = decide([*row(1, 3600, factors=factors, qualities=qualities)])
    assert any(f"0 of {runs}" in text and most in text for text in advice.sentences)


def test_a_single_training_says_nothing_of_failures():
    assert not any(
        "0 of 1" in text
        for text in decide(row(1, 3600, factors=(1.0,), qualities=(0.95,))).sentences
    )


@pytest.mark.parametrize(
    ("ratio", "doubted"), [((1.57, 0.94, 2.65), True), ((1.02, 0.99, 1.05), False)]
)
def test_a_choice_that_may_need_more_samples_is_provisional(ratio, doubted):
    """The efficiency for the same quality is that of the fixed epochs divided by the ratio of samples."""
    findings = analyse("made", [*row(1, 3600), *row(2, 2000)])
    decision, key = findings.advice.decision, key_of("native", 2, {})
    assert decision.choice == key
    needed = Useful(
        0.9, 3, 3, (), Estimate(*ratio), NOTHING, False, key, key_of("native", 1, {})
    )
    found = with_doubts(decision, findings.rows, findings.measures, {key: needed})
    assert ("samples-unclear" in found.provisional) == doubted
    if doubted:
        words = describe_doubt(found.doubts[0])
        assert "1.57 (0.94 to 2.65)" in words and "0.57" in words
