import math

import numpy as np
import pytest

import synthetic
from imported_runs import imported_run
from scalestudy.analysis.estimate import NOTHING, Estimate
from scalestudy.analysis.measures import measure_rows
from scalestudy.analysis.quality import MARGIN, accepted_loss, classify_change, judge
from scalestudy.analysis.runs import group_runs, key_of
from scalestudy.analysis.statistics import contrast
from scalestudy.analysis.wording.verdicts import describe_verdict
from scalestudy.config.metric_senses import Sense
from scalestudy.config.quality_margin import QualityMargin

SHARE, ERROR = (
    Sense("higher", bounded=True, whole=1.0),
    Sense("lower", bounded=True, whole=1.0),
)


def verdict(
    reference, values, strategy="horovod", reference_strategy="horovod", **options
):
    runs = synthetic.rows(reference_strategy, "quality", {1: reference}, **options)
    runs += synthetic.rows(strategy, "quality", {4: values}, **options)
    return judge(key_of(strategy, 4, {}), measure_rows(group_runs(runs)))


@pytest.mark.parametrize(
    ("reference", "values", "kind", "seems_worse"),
    [
        ([0.950, 0.951, 0.949], [0.951, 0.950, 0.952], "no-worse", False),
        ([0.95, 0.951, 0.949], [0.90, 0.905, 0.895], "worse", True),
        ([0.90, 0.901, 0.899], [0.95, 0.951, 0.949], "no-worse", False),
        ([0.95], [0.5], "unclear", True),  # single runs
        ([0.95, 0.955], [0.9], "unclear", True),  # one run, beside another row's spread
        ([0.95, 0.951], [0.949], "no-worse", False),
        ([0.95, 0.90], [0.94, 0.91], "unclear", False),  # a wide interval
        ([0.95, 0.951], [0.95, math.nan], "diverged", True),
        ([0.95, 0.951, 0.949], [0.96, 0.3, 0.96], "collapsed", True),
        (
            [0.95, 0.2, 0.949],
            [0.96, 0.95, 0.96],
            "no-reference",
            False,
        ),  # one reference seed failed
    ],
)
def test_a_row_is_held_against_its_reference_and_seems_worse_proven_or_not(
    reference, values, kind, seems_worse
):
    found = verdict(reference, values)
    assert (found.kind, found.seems_worse) == (kind, seems_worse)
    if kind == "worse":
        assert found.change.high < 0


def test_a_study_to_which_seeds_were_added_has_had_a_look_before():
    def low(planned):
        """Lower end of a verdict on five seeds, of which the last two were started by another plan."""
        runs = [
            synthetic.changed(
                synthetic.run("horovod", workers, seed, quality=0.95 + 0.001 * step),
                blocks=planned if seed < 3 else 5,
            )
            for workers, steps in ((1, (0, 1, 2, 0, 1)), (4, (1, 0, 2, 2, 0)))
            for seed, step in enumerate(steps)
        ]
        measures = measure_rows(group_runs(runs))
        assert measures.looks == tuple(sorted({planned, 5}))
        return judge(key_of("horovod", 4, {}), measures).change.low

    assert low(planned=3) < low(planned=5)


def test_without_one_worker_the_fewest_are_the_reference_and_the_verdict_is_relative():
    runs = [
        synthetic.run("native", workers, seed, quality=quality + 0.001 * seed)
        for workers, quality in ((2, 0.9), (4, 0.5), (8, 0.2))
        for seed in range(3)
    ]
    measures = measure_rows(group_runs(runs))
    fewest, more = (
        judge(key_of("native", workers, {}), measures) for workers in (2, 8)
    )
    assert (fewest.kind, fewest.relative) == ("reference", True)
    assert (more.kind, more.reference.workers, more.relative) == ("worse", 2, True)


def test_plain_training_is_the_reference_where_the_strategy_has_none():
    assert (
        verdict([0.95, 0.951], [0.95, 0.951], "virtual", "single").reference.strategy
        == "single"
    )
    assert (
        verdict([0.95, 0.951], [0.95, 0.951], "virtual", "mirrored").kind
        == "no-reference"
    )
    single = [synthetic.run("horovod", 1, seed) for seed in range(2)]
    assert (
        judge(key_of("horovod", 1, {}), measure_rows(group_runs(single))).kind
        == "reference"
    )


def test_accuracy_and_error_rate_of_one_model_have_one_margin():
    for accuracy in (0.6, 0.95, 0.9905, 1.0):
        of_accuracy = accepted_loss(accuracy, SHARE, None)
        assert of_accuracy == pytest.approx(accepted_loss(1 - accuracy, ERROR, None))
    assert (
        verdict(
            [0.9905, 0.9906, 0.9904], [0.975, 0.9751, 0.9749], metric="accuracy"
        ).kind
        == "worse"
    )
    errors = [0.0095, 0.0096, 0.0094], [0.025, 0.0251, 0.0249]
    assert verdict(*errors, metric="badness", better="lower").kind == "worse"


@pytest.mark.parametrize("metric", ["accuracy", "error"])
def test_a_percentage_has_the_margin_of_the_share(metric):
    shares = [0.9905, 0.9906, 0.9904], [0.975, 0.9751, 0.9749]
    if metric == "error":
        shares = [[1 - share for share in row] for row in shares]
    percent = [[100 * share for share in row] for row in shares]
    kinds = {verdict(*rows, metric=metric).kind for rows in (shares, percent)}
    assert kinds == {"worse"}


def test_an_error_rate_and_an_r2_near_zero_have_absolute_margins():
    errors = [0.0095, 0.0096, 0.0094], [0.0135, 0.0136, 0.0134]
    assert verdict(*errors, metric="error").kind == "no-worse"
    assert (
        verdict([0.01, 0.011, 0.009], [0.005, 0.006, 0.004], metric="r2").kind
        == "no-worse"
    )


def test_a_loss_within_the_margin_is_named_as_one():
    lost = verdict([0.90, 0.901, 0.899], [0.89, 0.891, 0.889])
    assert (lost.kind, describe_verdict(lost)) == (
        "no-worse",
        "worse by 0.010 to 0.010, within the accepted 0.020",
    )


def test_an_imported_metric_of_unknown_scale_has_no_verdict_without_a_margin():
    known = {"metric": "badness", "better": "lower"}
    runs = [
        imported_run(n, line=n, quality=quality, **known)
        for n, quality in ((1, 0.0095), (4, 0.0135))
    ]
    assert (
        judge(key_of("horovod", 4, {}), measure_rows(group_runs(runs))).kind
        == "no-margin"
    )
    margin = QualityMargin(0.01)
    assert (
        judge(key_of("horovod", 4, {}), measure_rows(group_runs(runs)), margin).kind
        == "unclear"
    )


@pytest.mark.parametrize(
    ("margin", "loss"),
    [
        (QualityMargin(0.03, False), 0.03),
        (QualityMargin(0.05, True), 0.045),
        (None, 0.02),
    ],
)
def test_the_margin_of_the_study_file_is_absolute_or_relative(margin, loss):
    assert accepted_loss(0.9, SHARE, margin) == pytest.approx(loss)
    negative = accepted_loss(
        -0.9, Sense("higher", bounded=False), QualityMargin(0.05, True)
    )
    assert negative == pytest.approx(0.045)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"metric": "mse"}, "worse"),
        ({"metric": "loss"}, "worse"),
        (
            {"metric": "mse", "better": "higher"},
            "no-worse",
        ),  # as recorded, whatever the name
        ({"metric": "badness", "better": "lower"}, "worse"),
        ({"metric": "badness"}, "no-direction"),
    ],
)
def test_of_an_error_less_is_better_and_of_what_nothing_is_known_there_is_no_verdict(
    options, kind
):
    small, large = [0.100, 0.101, 0.099], [0.143, 0.144, 0.142]
    assert verdict(small, large, **options).kind == kind
    opposite = {"worse": "no-worse", "no-worse": "worse"}.get(kind, kind)
    assert verdict(large, small, **options).kind == opposite


def test_small_errors_are_told_apart_in_words():
    lost = verdict(
        [4.00e-4, 4.01e-4, 3.99e-4], [4.40e-4, 4.41e-4, 4.39e-4], metric="mse"
    )
    assert "0.00004" in describe_verdict(lost)


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_the_interval_is_held_against_the_margin_and_not_against_zero(better):
    def of(low, high):
        ends = (low, high) if better == "higher" else (-high, -low)
        return classify_change(Estimate(sum(ends) / 2, *ends), 0.02, better)

    assert (
        of(-0.015, -0.005) == "no-worse"
    )  # a certain loss, but within the accepted margin
    assert of(-0.02, 0.01) == "no-worse"
    assert of(-0.03, -0.01) == "unclear"
    assert of(-0.05, 0.05) == "unclear"
    assert of(-0.05, -0.021) == "worse"
    assert of(0.01, 0.02) == "no-worse"
    assert classify_change(NOTHING, 0.02, better) == "unclear"


def shares(loss: float, seeds: int, studies: int = 2000) -> dict[str, float]:
    """How often each verdict is given to a row whose true quality is `loss` below its reference."""
    generator = np.random.default_rng(20120626)
    shared = generator.normal(0.9, 0.02, (studies, seeds))
    reference = shared + generator.normal(0, 0.006, (studies, seeds))
    row = shared - loss + generator.normal(0, 0.006, (studies, seeds))
    kinds = [
        classify_change(
            contrast(_blocks(ours), _blocks(theirs)).estimate,
            MARGIN * theirs.mean(),
            "higher",
        )
        for ours, theirs in zip(row, reference, strict=True)
    ]
    return {
        kind: kinds.count(kind) / studies for kind in ("no-worse", "worse", "unclear")
    }


def _blocks(values):
    return dict(enumerate(values.tolist()))


LOSS = MARGIN * 0.9


@pytest.mark.parametrize("seeds", [3, 10, 30])
def test_a_row_at_the_margin_passes_in_one_of_forty_studies_and_fails_in_as_many(seeds):
    found = shares(LOSS, seeds)
    assert found["no-worse"] == pytest.approx(0.025, abs=0.0125)
    assert found["worse"] == pytest.approx(0.025, abs=0.0125)


def test_more_seeds_settle_more_and_are_never_stricter():
    # With 500 studies a share of 0.025 has a standard error of 0.007; counts differ by far more.
    within, beyond = (
        [shares(part * LOSS, seeds, 500) for seeds in (3, 10, 30, 100)]
        for part in (0.5, 1.5)
    )
    assert all(found["worse"] < 0.025 for found in within)
    assert all(found["no-worse"] < 0.025 for found in beyond)
    for found, right in ((within, "no-worse"), (beyond, "worse")):
        settled = [verdicts[right] for verdicts in found]
        assert settled == sorted(settled)
        assert settled[0] < 0.5
        assert settled[-1] > 0.99
