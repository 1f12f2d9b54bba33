"""A larger global batch on more workers: its cause and cure, the samples that it needs."""

import numpy as np
import pytest

import mlperf
import synthetic
from runs_to_target import TARGET, learning
from scalestudy.analysis.estimate import student
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.larger_batch import fit_critical_batch
from scalestudy.analysis.wording.larger_batch import samples_needed


def runs_of(qualities, strategy="native", seeds=3, **options):
    noise = (-0.001, 0.0, 0.001)
    return [
        synthetic.run(
            strategy,
            workers,
            seed,
            quality=quality + noise[seed],
            throughput=100 * workers**0.9,
            **options,
        )
        for workers, quality in qualities.items()
        for seed in range(seeds)
    ]


def study(runs, **options):
    return analyse("made", runs, **options)


def test_a_worse_row_states_its_batch_its_updates_and_the_command_that_searches_a_recipe():
    sentences = study(runs_of({1: 0.95, 4: 0.95, 8: 0.80, 16: 0.70})).advice.sentences
    cause = next(sentence for sentence in sentences if "global batch" in sentence)
    assert "8 times that of 1" in cause
    assert "42 updates instead of 372" in cause
    assert "`scalestudy recipe STUDY --workers 8,16`" in cause


def test_a_variant_that_cures_it_is_named_instead():
    rule = "train.learning_rate_scaling"
    runs = [
        *runs_of({1: 0.95, 8: 0.80}, swept={rule: "none"}),
        *runs_of({1: 0.95, 8: 0.95}, swept={rule: "linear"}),
    ]
    cause = next(
        sentence
        for sentence in study(runs).advice.sentences
        if "global batch" in sentence
    )
    assert cause.endswith(
        "With train.learning_rate_scaling = linear, 8 workers are no worse."
    )


def test_an_equal_global_batch_is_no_cause():
    runs = [
        synthetic.changed(run, global_batch=16) for run in runs_of({1: 0.95, 8: 0.80})
    ]
    assert not any(
        "global batch" in sentence for sentence in study(runs).advice.sentences
    )


@pytest.mark.parametrize(
    ("qualities", "headline"),
    [
        (
            {1: 0.95, 2: 0.95, 8: 0.95, 16: 0.80, 32: 0.7},
            "Quality holds up to 8 workers; on 16: worse by",
        ),
        ({1: 0.95, 2: 0.95, 8: 0.95}, "Quality holds up to 8 workers."),
        ({1: 0.95, 2: 0.8}, "Quality holds on no larger number"),
    ],
)
def test_virtual_workers_alone_answer_up_to_which_number_quality_holds(
    qualities, headline
):
    assert study(runs_of(qualities, "virtual")).advice.headline.startswith(headline)


def test_beside_timed_workers_virtual_ones_add_a_sentence():
    advice = study(
        [*runs_of({1: 0.95, 2: 0.95}), *runs_of({1: 0.95, 8: 0.95, 16: 0.8}, "virtual")]
    ).advice
    assert advice.choice is not None
    assert any(
        sentence.startswith("Quality holds up to 8 workers; on 16")
        for sentence in advice.sentences
    )


def test_of_several_variants_the_one_that_holds_furthest_answers():
    rule = "train.learning_rate_scaling"
    runs = [
        *runs_of({1: 0.95, 8: 0.80}, "virtual", swept={rule: "none"}),
        *runs_of({1: 0.95, 8: 0.95}, "virtual", swept={rule: "linear"}),
    ]
    advice = study(runs).advice
    assert advice.headline.startswith(
        "Quality holds up to 8 workers with train.learning_rate_scaling = linear"
    )
    assert any(
        "no larger number" in sentence and "none" in sentence
        for sentence in advice.sentences
    )


def critical(counts, **options):
    runs = [
        learning("virtual", n, seed, 4000 * (1 + n / 10), **options)
        for n in counts
        for seed in range(2)
    ]
    return samples_needed(study(runs, target_quality=TARGET).rows)


def test_samples_and_the_critical_batch_are_stated_with_a_prediction():
    *needed, last = critical([1, 2, 4, 8])
    assert needed[-1].startswith("virtual on 8 workers: 1.6")
    assert "164 (158 to 170)" in last, "160, but for the curve between two evaluations"
    assert "16 workers, 2.3" in last
    assert "is off by" not in last


def test_samples_that_lie_off_the_curve_are_told():
    needed = {1: 4000, 2: 4000, 4: 9000, 8: 9000}
    runs = [
        learning("virtual", n, seed, samples)
        for n, samples in needed.items()
        for seed in range(2)
    ]
    assert (
        "The curve is off by"
        in samples_needed(study(runs, target_quality=TARGET).rows)[-1]
    )


@pytest.mark.parametrize(
    ("counts", "options", "place", "words"),
    [
        ([1, 2, 4], {}, -1, "add 8 workers"),
        ([1, 2, 4, 32], {"epochs": 8}, -1, "train for more epochs"),
        ([1, 2, 32], {"epochs": 8}, 1, "virtual on 32 workers: 0 of 2 runs reached"),
        (
            [1, 2, 32, 64],
            {"epochs": 8},
            1,
            "virtual on 32 and 64 workers: 0 of 4 runs reached",
        ),
    ],
)
def test_three_batches_are_refused_with_the_runs_to_add_and_runs_that_never_arrive_counted(
    counts, options, place, words
):
    assert words in critical(counts, **options)[place]


def advice_of(needed):
    """The advice if all reach the target after `needed` samples, and end with the same quality."""
    runs = []
    for workers, samples in needed.items():
        for seed in range(3):
            run = learning(
                "native",
                workers,
                seed,
                samples * (1 + 0.01 * seed),
                40,
                throughput=95.0 * workers,
            )
            seconds = 40_000 / run.result.throughput
            times = {
                "wall_seconds": seconds,
                "training_seconds": seconds,
                "phases": {"training": seconds},
            }
            runs.append(synthetic.changed(run, **(times | {"quality": 0.999})))
    return study(runs, target_quality=TARGET).advice


def test_a_row_that_is_fast_but_needs_three_times_the_samples_is_not_chosen():
    found = advice_of({1: 4000, 4: 4000, 8: 12_000}).decision
    assert found.choice.workers == 4
    assert [(row.key.workers, row.why) for row in found.passed_over] == [(8, "samples")]
    same = advice_of({1: 4000, 4: 4000, 8: 4000})
    assert same.choice.workers == 8
    assert same.sentences[0].startswith(
        "It is 8 times as useful as native on 1 worker: it needs 1 times"
    )


def test_a_rule_that_cures_8_workers_but_not_14_chooses_8():
    rule = "train.learning_rate_scaling"
    rates = {1: 100, 8: 760, 14: 1300}
    runs = [
        synthetic.run(
            "native",
            n,
            seed,
            quality=quality + 0.001 * seed,
            throughput=rates[n],
            samples=10**6,
            swept={rule: name},
        )
        for name, qualities in (
            ("none", {1: 0.95, 8: 0.7, 14: 0.5}),
            ("linear", {1: 0.95, 8: 0.95, 14: 0.8}),
        )
        for n, quality in qualities.items()
        for seed in range(3)
    ]
    found = study(runs).advice.decision
    assert (found.choice.workers, found.choice.swept, found.provisional) == (
        8,
        {rule: "linear"},
        (),
    )


def standard_error(estimate, points):
    return (estimate.high - estimate.low) / 2 / student(points - 2)


def test_the_published_points_of_resnet():
    found = fit_critical_batch(mlperf.RESNET)
    assert found.least.value == pytest.approx(34.5, abs=0.05)
    assert standard_error(found.least, 10) == pytest.approx(1.0, abs=0.05)
    assert found.critical.value == pytest.approx(46_000, rel=0.01)
    assert standard_error(found.critical, 10) == pytest.approx(3_000, rel=0.1)
    assert found.misfit == pytest.approx(0.065, abs=0.002)


def test_the_published_points_of_ssd_do_not_lie_on_a_line():
    found = fit_critical_batch(mlperf.SSD)
    assert found.least.value == pytest.approx(3.1, abs=0.05)
    assert found.critical.value == pytest.approx(1_100, rel=0.01)
    assert (found.misfit_at, round(found.misfit, 2)) == (2048, 0.11)


@pytest.mark.parametrize("critical", [50, 1_000, 40_000])
def test_an_exact_curve_is_found_again_and_continued(critical):
    curve = {batch: [900 * (1 + batch / critical)] for batch in (32, 64, 128, 256)}
    found = fit_critical_batch(curve)
    assert found.least.value == pytest.approx(900, rel=0.01)
    assert found.critical.value == pytest.approx(critical, rel=0.01)
    assert found.ratio(1024, 32).value == pytest.approx(
        (critical + 1024) / (critical + 32), rel=0.01
    )
    assert found.ratio(1024, 32).low == pytest.approx(found.ratio(1024, 32).high)


def test_what_was_not_measured_lies_in_its_interval():
    """Six batches predict the largest of eight, which no run has seen."""
    generator, held, wide = np.random.default_rng(1), 0, 0
    for _ in range(400):
        curve = {
            b: 10 * (1 + b / 500) * (1 + generator.normal(0, 0.03, 3))
            for b in (32, 64, 128, 256, 384)
        }
        found = fit_critical_batch(curve).ratio(1024, 32)
        held += found.low <= 1524 / 532 <= found.high
        wide += found.high > 1.5 * found.low
    assert held / 400 >= 0.93
    assert wide / 400 < 0.5


def test_without_a_significant_slope_the_critical_batch_has_no_upper_end():
    found = fit_critical_batch(
        {64: [100, 104], 128: [98, 101], 256: [105, 97], 512: [104, 100]}
    )
    assert found is None or (found.critical.high is None and found.critical.low > 100)
    assert fit_critical_batch({64: [104], 128: [102], 256: [101], 512: [99]}) is None
