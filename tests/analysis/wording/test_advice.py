"""The advice apart from the decision, which `test_decision` tests."""

import synthetic
from scalestudy.analysis.findings import analyse
from synthetic_rows import NATIVE, series, several


def advise(runs, planned=(), **options):
    return analyse("made", runs, planned, **options).advice


def test_the_choice_has_its_row_price_and_verdict_and_its_cost_tells_the_ratio_of_what_is_billed():
    found = advise(series("native", NATIVE))
    price = found.decision.price
    assert (
        found.choice.workers,
        price.key,
        found.decision.verdicts[price.key].kind,
    ) == (
        4,
        found.choice.key,
        "no-worse",
    )
    assert found.headline.startswith("Ask for 4 workers with native")
    reference = found.decision.prices[found.decision.reference]
    assert f"{price.cost.value / reference.cost.value:.2f} times the cost" in found.cost
    assert advise(synthetic.published()).headline.startswith("Provisionally")


def test_a_rate_that_followed_a_rule_stands_in_the_headline_where_the_batch_grew():
    assert (
        "linear rule" in advise(series("native", NATIVE), rate_rule="linear").headline
    )
    assert "rule" not in advise(series("native", {1: 100}), rate_rule="linear").headline


def test_what_is_missing_failed_or_oversubscribed_is_named():
    questions = " ".join(
        advise(synthetic.oversubscribed(), synthetic.unfinished()).open_questions
    )
    for name in ("horovod-w8-s2", "horovod-w16-s0", "horovod-w16-s1"):
        assert name in questions
    assert "4 workers with 1 core each on 2 cores" in questions


def test_of_an_unknown_direction_the_advice_says_what_to_declare():
    found = advise(
        [
            *several("horovod", 1, 100, metric="badness"),
            *several("horovod", 4, 390, metric="badness"),
        ]
    )
    assert found.decision.provisional == ("quality-no-direction",)
    assert any(
        'better = {"badness": "higher"}' in question
        for question in found.open_questions
    )


def test_a_faster_point_that_diverged_is_named_and_not_advised():
    runs = [
        *series("horovod", {1: 100, 2: 190}),
        *several("horovod", 4, 390, epochs=3, losses=(0.7, 0.8, 40.0)),
    ]
    found = advise(runs)
    assert found.choice.workers == 2
    assert any("horovod on 4 workers" in s and "diverged" in s for s in found.sentences)


def test_a_cost_efficiency_just_below_the_target_is_not_rounded_to_it():
    found = advise(series("mirrored", {1: 100, 8: 563}))
    (price,) = (found.decision.prices[each.key] for each in found.decision.passed_over)
    assert 0.695 < price.efficiency.value < 0.7
    assert "0.70" not in " ".join(found.sentences)


def test_initial_statistics_of_batch_norm_are_warned_of():
    def questions(value):
        runs = [
            synthetic.changed(run, initial_statistics=value)
            for run in series("native", NATIVE)
        ]
        return advise(runs).open_questions

    (warning,) = set(questions(0.58)) - set(questions(0.009))
    assert "moving statistics still hold 58 % of their initial values" in warning
    assert len(questions(0.58)) == len(questions(0.009)) + 1


def test_of_many_rows_that_tie_with_the_choice_three_are_named_and_the_rest_counted():
    runs = []
    for name in (
        "mirrored",
        "multiworker",
        "horovod",
        "native",
        "ddp",
        "central-storage",
    ):
        runs += [*several(name, 1, 100), *several(name, 2, 190)]
    found = advise(runs)
    assert len(found.decision.rivals) == 5
    assert (
        "2 others" in found.headline
        and sum(key.strategy in found.headline for key in found.decision.rivals) == 3
    )
