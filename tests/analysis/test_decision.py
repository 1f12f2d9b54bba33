import math
from dataclasses import replace

import pytest

import synthetic
from imported_runs import imported_run
from scalestudy.analysis.decision import Criteria
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.planned_training import PlannedTraining
from scalestudy.analysis.runs import Planned, key_of
from scalestudy.config.quality_margin import QualityMargin
from scalestudy.store.records import Allocation
from synthetic_rows import LONG, NATIVE, series, several


def decide(runs, **criteria):
    return analyse("made", runs, criteria=Criteria(**criteria)).advice.decision


def wild(strategy, workers, throughputs):
    """Runs whose throughput differs from seed to seed."""
    return synthetic.rows(strategy, "throughput", {workers: throughputs}, samples=LONG)


def chosen(found):
    return found.choice and (found.choice.strategy, found.choice.workers)


HOROVOD = {1: 80, 2: 152, 4: 272, 8: 467}


def test_strategies_are_compared_by_what_a_training_costs_and_not_by_their_own_one_worker():
    found = decide([*series("native", NATIVE), *series("horovod", HOROVOD)])
    assert (found.kind, chosen(found)) == ("ask", ("native", 4))
    assert found.reference == key_of("native", 1, {})
    passed = {(row.key.strategy, row.key.workers, row.why) for row in found.passed_over}
    assert passed == {("native", 8, "cost"), ("horovod", 8, "cost")}
    prices = {(key.strategy, key.workers): price for key, price in found.prices.items()}
    efficiencies = [
        prices[row].efficiency.value
        for row in (("native", 4), ("horovod", 4), ("horovod", 1))
    ]
    assert efficiencies == pytest.approx([0.78, 0.68, 0.80], abs=0.005)
    assert {row for row, price in prices.items() if price.on_front} == {
        ("native", n) for n in NATIVE
    }
    later = decide([*series("native", NATIVE), *series("horovod", {2: 152, 4: 300})])
    assert (chosen(later), later.relative) == (("native", 4), False)


def test_the_cost_efficiency_asked_for_can_be_changed():
    runs = series("native", NATIVE)
    assert chosen(decide(runs, target=0.5)) == ("native", 8)
    strict = decide(runs, target=0.95)
    assert (strict.kind, chosen(strict)) == ("stay", ("native", 1))


def test_a_point_that_learns_worse_is_not_chosen_by_the_margin_of_the_study():
    found = decide(
        [
            *series("horovod", {1: 100, 4: 390}),
            *several("horovod", 8, 780, quality=0.80),
        ]
    )
    assert chosen(found) == ("horovod", 4)
    assert [(row.key.workers, row.why) for row in found.passed_over] == [(8, "worse")]
    runs = [*series("horovod", {1: 100}), *several("horovod", 2, 190, quality=0.92)]
    assert decide(runs).kind == "stay"
    assert chosen(decide(runs, margin=QualityMargin(0.05, False))) == ("horovod", 2)


@pytest.mark.parametrize(
    ("metric", "good", "bad"), [("iou", 0.95, 0.6), ("mse", 0.1, 0.4)]
)
def test_a_batch_that_ruins_one_worker_too_does_not_pass_for_no_worse(
    metric, good, bad
):
    small, large = {"train.batch_size": 8}, {"train.batch_size": 512}
    found = decide(
        [
            *series(
                "horovod", {1: 100, 2: 190}, swept=small, quality=good, metric=metric
            ),
            *series(
                "horovod", {1: 200, 2: 390}, swept=large, quality=bad, metric=metric
            ),
        ]
    )
    assert found.choice.swept == found.reference.swept == small


CERTAIN = (98.0, 100.0, 102.0)
UNCERTAIN = {
    "its interval contains the target": (
        {1: CERTAIN, 8: (560.0, 600.0, 690.0)},
        "ask",
        8,
        ("interval-contains-target",),
    ),
    "a faster row may qualify": (
        {1: CERTAIN, 4: (235.0, 270.0, 315.0)},
        "stay",
        1,
        ("faster-may-qualify",),
    ),
    "a gain may be anything": (
        {1: (90.0, 110.0), 2: (150.0, 260.0)},
        "uncertain",
        None,
        (),
    ),
    "a smaller one is certain": (
        {1: CERTAIN, 2: (191, 190, 192), 3: (281, 280, 283), 4: (150.0, 300.0, 900.0)},
        "ask",
        3,
        ("faster-may-qualify",),
    ),
    "slower": ({1: CERTAIN, 2: (80.0, 81.0, 82.0)}, "stay", 1, ()),
}


@pytest.mark.parametrize(
    ("rows", "kind", "workers", "provisional"), UNCERTAIN.values(), ids=UNCERTAIN
)
def test_what_is_uncertain_is_provisional_passed_over_or_not_advised(
    rows, kind, workers, provisional
):
    found = decide(
        [run for n, rates in rows.items() for run in wild("horovod", n, rates)]
    )
    assert (found.kind, found.choice and found.choice.workers) == (kind, workers)
    assert found.provisional == provisional
    if workers == 3:
        assert [row.why for row in found.passed_over if row.key.workers == 4] == [
            "uncertain"
        ]


def test_swept_values_are_compared_with_the_best_one_worker_row_of_the_whole_study():
    large, small = {"train.batch_size": 64}, {"train.batch_size": 8}
    found = decide(
        [
            *series("native", {1: 1000, 2: 1300, 4: 2000}, swept=large),
            *series("native", {1: 400, 2: 760, 4: 1440}, swept=small),
        ]
    )
    assert (found.kind, chosen(found), found.choice.swept) == (
        "stay",
        ("native", 1),
        large,
    )


def test_start_up_is_paid_for_by_the_planned_training():
    runs = series("native", NATIVE, samples=1000)
    found = decide(runs)
    assert found.price.basis == "wall"
    assert chosen(found) == ("native", 2)
    longer = decide(runs, planned=PlannedTraining(epochs=10_000))
    assert chosen(longer) == ("native", 4)
    assert longer.price.duration > 100 * found.price.duration


def test_a_much_faster_row_about_the_target_is_a_matter_of_preference():
    """Sixteen workers keep .67 and are 3.3 times as fast as four, which keep .81."""
    runs = [
        timed(
            "native",
            n,
            seconds * (1 + 0.001 * seed),
            seed=seed,
            throughput=1e6 / seconds,
        )
        for n, seconds in {1: 36000, 4: 11111, 16: 3358}.items()
        for seed in range(3)
    ]
    findings = analyse("made", runs)
    assert chosen(findings.advice.decision) == ("native", 4)
    (sentence,) = [text for text in findings.advice.sentences if "16 workers" in text]
    assert "about the target 0.7" in sentence
    assert "3.3 times as fast" in sentence
    assert "efficiency = 0.65" in sentence


def timed(strategy, workers, seconds, *, per_node=1, quality=0.95, seed=0, **options):
    """A run of that many seconds from start to result, with `per_node` workers on each node."""
    run = synthetic.run(
        strategy, workers, seed, quality=quality, training_seconds=seconds, **options
    )
    return synthetic.on_nodes(synthetic.changed(run, wall_seconds=seconds), per_node)


def test_where_sites_bill_nodes_costs_are_of_nodes():
    """Four GPUs per node, T = 600 + 36000 / n seconds."""
    times = {n: 600 + 36000 / n for n in (1, 2, 4, 8)}
    runs = [
        timed("native", n, t, per_node=4, seed=seed, throughput=1e6 / t)
        for n, t in times.items()
        for seed in range(3)
    ]
    by_worker, by_node = decide(runs), decide(runs, bill="node")
    costs = {key.workers: price.cost.value for key, price in by_node.prices.items()}
    assert (costs[1], costs[4]) == (
        pytest.approx(10.17, abs=0.01),
        pytest.approx(2.67, abs=0.01),
    )
    assert by_worker.prices[key_of("native", 4, {})].cost.value == pytest.approx(
        10.67, abs=0.01
    )
    assert [key.workers for key, price in by_node.prices.items() if price.on_front] == [
        4,
        8,
    ]
    assert chosen(by_node) == ("native", 8)


def test_without_one_worker_quality_and_cost_fall_back_to_the_fewest_workers_and_say_so():
    runs = [
        run
        for workers, throughput, quality in (
            (2, 200, 0.9),
            (4, 400, 0.5),
            (8, 800, 0.2),
        )
        for run in several("native", workers, throughput, quality)
    ]
    found = decide(runs)
    assert (found.kind, chosen(found)) == ("stay", ("native", 2))
    assert found.relative
    assert "relative" in found.provisional
    assert {each.why for each in found.passed_over} == {"worse"}


def test_single_runs_are_provisional():
    found = decide(synthetic.published())
    assert chosen(found) == ("horovod", 6)
    assert {"single-run", "quality-unclear"} <= set(found.provisional)
    assert decide(
        [synthetic.run("native", 1), synthetic.run("native", 2, throughput=101.0)]
    ).provisional == ("single-run",)


def test_a_row_of_which_one_seed_in_seven_collapsed_is_not_chosen():
    runs = [
        synthetic.run("horovod", 1, seed, quality=0.95, samples=LONG)
        for seed in range(7)
    ]
    runs += [
        synthetic.run(
            "horovod",
            2,
            seed,
            throughput=199.0,
            quality=0.3 if seed == 4 else 0.95,
            samples=LONG,
        )
        for seed in range(7)
    ]
    found = analyse("made", runs)
    assert (found.advice.decision.kind, chosen(found.advice.decision)) == (
        "stay",
        ("horovod", 1),
    )
    row = next(row for row in found.rows if row.workers == 2)
    assert (row.failed_runs, row.worst_quality) == (1, 0.3)


def test_a_reference_that_learned_nothing_leaves_the_choice_provisional():
    found = decide(
        [
            *several("horovod", 1, 100, quality=0.1, chance=0.115, metric="accuracy"),
            *several("horovod", 2, 190, quality=0.9, chance=0.115, metric="accuracy"),
        ]
    )
    assert chosen(found) == ("horovod", 2)
    assert set(found.provisional) == {"quality-no-reference", "relative"}


def test_a_rival_that_the_runs_cannot_tell_apart_is_named():
    runs = [*wild("mirrored", 1, (100, 101, 99)), *wild("mirrored", 2, (190, 192, 189))]
    runs += [*wild("horovod", 1, (99, 101, 100)), *wild("horovod", 2, (191, 190, 192))]
    assert decide(runs).rivals == (key_of("mirrored", 2, {}),)


@pytest.mark.parametrize(
    ("runs", "kind"),
    [
        ([], "no-runs"),
        ([synthetic.run("horovod", 1)], "only-smallest"),
        ([synthetic.run("virtual", n) for n in (1, 4)], "no-timing"),
        (
            [
                synthetic.run("horovod", 1),
                synthetic.run("horovod", 4, oversubscribed="4 on 2 cores"),
            ],
            "no-timing",
        ),
        ([synthetic.run("horovod", 1, quality=math.nan)], "nothing-learned"),
        (
            series(
                "horovod",
                {1: 97, 2: 194},
                quality=0.11,
                chance=0.115,
                metric="accuracy",
            ),
            "nothing-learned",
        ),
        # The decision is certain although another one-worker row may be slower.
        (
            [
                *wild("native", 1, (99, 100, 101)),
                *wild("horovod", 1, (90, 95, 99)),
                *wild("native", 2, (118, 120, 122)),
                *wild("horovod", 2, (128, 132, 136)),
            ],
            "stay",
        ),
    ],
)
def test_where_nothing_can_be_compared_the_kind_says_why(runs, kind):
    assert decide(runs).kind == kind


def test_rows_of_unlike_work_are_compared_by_the_time_of_a_sample():
    runs = [
        run
        for n in (1, 2, 4)
        for run in several("horovod", n, 95 * n, samples=1000 * n)
    ]
    found = decide(runs)
    assert found.price.basis == "rate"
    assert found.price.cost.value is None
    assert chosen(found) == ("horovod", 4)


def test_a_row_that_takes_exactly_as_long_on_more_workers_is_not_the_reference():
    runs = [synthetic.run("native", 2, seed, samples=LONG) for seed in range(2)]
    runs += [synthetic.run("horovod", 1, seed, samples=LONG) for seed in range(2)]
    alike = {"wall_seconds": 1000.0, "training_seconds": 900.0}
    found = decide([synthetic.changed(run, **alike) for run in runs])
    assert found.reference == key_of("horovod", 1, {})
    assert chosen(found) == ("horovod", 1)


def test_a_job_is_billed_for_all_that_it_held_from_its_start_to_its_end():
    """Whole nodes of four cores: one worker on one core pays for four, as four workers do."""

    def held(run, cores, seconds):
        job = Allocation(
            job="7", nodes=1, cores=cores, gpus=0, began=0.0, ended=seconds
        )
        return replace(run, allocations=(job,))

    runs = [
        held(synthetic.run("native", workers, seed, samples=LONG), 4, seconds + seed)
        for workers, seconds in ((1, 600.0), (2, 400.0))
        for seed in range(3)
    ]
    found = decide(runs, bill="core")
    prices = {key.workers: price for key, price in found.prices.items()}
    assert [prices[workers].units for workers in (1, 2)] == [4, 4]
    assert prices[1].cost.value == pytest.approx(4 * 601 / 3600, rel=1e-3)
    assert found.reference.workers == 2
    assert prices[1].efficiency.value == pytest.approx(1 / 1.5, rel=1e-2)


def test_the_reference_is_the_cheapest_row_with_the_fewest_billed_units():
    speedups = {1: 1.0, 4: 3.8, 8: 5.0, 16: 6.0, 32: 7.0}
    runs = [
        timed("native", n, 36000 / s * (1 + 0.001 * seed), per_node=4, seed=seed)
        for n, s in speedups.items()
        for seed in range(3)
    ]
    found = decide(runs, bill="node")
    assert (found.reference.workers, chosen(found), found.kind) == (
        4,
        ("native", 4),
        "ask",
    )
    assert not found.relative
    assert found.prices[key_of("native", 32, {})].efficiency.value == pytest.approx(
        7 / 3.8 / 8
    )
    assert chosen(decide(runs)) == ("native", 4)


ZONE = {
    "just above": ((68, 70, 74), 4, ()),
    "just below": ((67, 69, 71), 1, ()),
    "wide": ((60, 70, 82), 4, ("interval-contains-target",)),
}


@pytest.mark.parametrize(("percent", "workers", "provisional"), ZONE.values(), ids=ZONE)
def test_a_row_about_the_target_is_judged_and_named_without_being_provisional(
    percent, workers, provisional
):
    low, value, high = percent
    shares = (low, value + 0.5, value + 1, value + 0.5, high)
    runs = [timed("native", 1, 1000.0, seed=seed) for seed in range(5)]
    runs += [
        timed("native", 4, 1000.0 / (0.04 * share), seed=seed)
        for seed, share in enumerate(shares)
    ]
    advice = analyse("made", runs).advice
    assert (advice.decision.choice.workers, advice.decision.provisional) == (
        workers,
        provisional,
    )
    assert ("Provisionally" in advice.headline) == bool(provisional)
    if not provisional:
        assert decide(runs, zone=0.0).provisional
    if workers == 8:
        assert ("about the target 0.7" in advice.cost) == (not provisional)


def test_a_reference_of_which_a_seed_collapsed_gives_way_to_the_smallest_healthy_row():
    quality = {1: (0.95, 0.95, 0.05), 2: (0.94,) * 3, 4: (0.90,) * 3, 8: (0.80,) * 3}
    findings = analyse(
        "made",
        [
            synthetic.run(
                "native",
                n,
                seed,
                throughput=100 * n**0.95,
                samples=LONG,
                quality=value + 0.001 * seed,
            )
            for n, values in quality.items()
            for seed, value in enumerate(values)
        ],
    )
    found = findings.advice.decision
    assert found.verdicts[key_of("native", 8, {})].kind == "worse"
    assert (found.reference, chosen(found)) == (key_of("native", 2, {}), ("native", 2))
    questions = " ".join(findings.advice.open_questions)
    assert "native on 1 worker" in questions and "1 of 3 runs collapsed" in questions
    assert "No one-worker run was timed" not in questions


def failing(workers, runs, bad):
    qualities = [0.3] * bad + [0.95] * (runs - bad)
    return synthetic.rows(
        "horovod",
        "quality",
        {workers: qualities},
        throughput=99.0 * workers,
        samples=LONG,
    )


def test_a_few_failures_of_a_faster_row_leave_the_choice_provisional_and_many_settle_it():
    few = analyse(
        "made", [*failing(1, 5, 0), *failing(4, 5, 0), *failing(8, 5, 1)]
    ).advice
    assert (chosen(few.decision), few.decision.provisional) == (
        ("horovod", 4),
        ("failures",),
    )
    assert "1 of 5 runs" in few.headline
    many = analyse(
        "made", [*failing(1, 9, 0), *failing(4, 9, 0), *failing(8, 9, 4)]
    ).advice
    assert (chosen(many.decision), many.decision.provisional) == (("horovod", 4), ())


def test_a_row_of_which_runs_ended_in_an_error_is_not_asked_for():
    runs = [*failing(1, 3, 0), *failing(4, 3, 0), *failing(8, 3, 0)[:1]]
    planned = [Planned(f"p{seed}", "horovod", 8, seed, "failed") for seed in (1, 2)]
    advice = analyse("made", runs, planned).advice
    assert chosen(advice.decision) == ("horovod", 4)
    assert "failures" in advice.decision.provisional
    assert "2 of 3 runs" in advice.headline


def test_rows_of_other_numbers_of_epochs_are_no_faster_for_it():
    runs = [
        synthetic.changed(run, epochs=epochs)
        for n, seconds, epochs in ((1, 1000.0, 10), (4, 300.0, 10), (8, 73.5, 5))
        for run in [imported_run(n, line=n, training_seconds=seconds)]
    ]
    found = decide(runs)
    assert found.choice.workers == 4
    assert key_of("horovod", 8, {}) not in found.prices
