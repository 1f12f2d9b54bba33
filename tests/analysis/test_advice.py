import made
import pytest

from scalestudy.analysis.findings import analyse


def advise(runs, planned=(), **options):
    return analyse("made", runs, planned, **options).advice


def several(strategy, workers, throughput, quality=0.95, swept=None, **options):
    """Three seeds that hardly differ."""
    return [
        made.run(
            strategy,
            workers,
            seed,
            throughput=throughput * (1 + 0.001 * seed),
            quality=quality + 0.0005 * seed,
            swept=swept,
            **options,
        )
        for seed in range(3)
    ]


def test_the_fastest_point_that_is_worth_its_cost_is_advised():
    runs = [
        *several("mirrored", 1, 100),
        *several("mirrored", 4, 350),
        *several("mirrored", 8, 500),
        *several("horovod", 1, 100),
        *several("horovod", 4, 320),
    ]
    found = advise(runs)
    assert found.headline == "Ask for 4 workers with mirrored."
    text = " ".join(found.sentences)
    assert "3.50 times as many samples per second" in text
    assert "Faster still, but below 0.7: mirrored on 8 workers, efficiency 0.62." in text
    assert found.worker_hours == pytest.approx(found.baseline_worker_hours * 4 / 3.5, rel=1e-2)


def test_the_efficiency_asked_for_can_be_changed():
    runs = [*several("mirrored", 1, 100), *several("mirrored", 4, 350), *several("mirrored", 8, 500)]
    assert advise(runs, target=0.5).choice.workers == 8
    assert advise(runs, target=0.9).headline.startswith("Stay with 1 worker (mirrored)")


def test_nothing_is_said_of_larger_counts_that_nobody_has_tried():
    assert advise(several("mirrored", 1, 100)).headline.startswith("Only 1 worker has been tried")


def test_a_point_that_learns_worse_is_not_advised():
    runs = [
        *several("horovod", 1, 100),
        *several("horovod", 4, 390),
        *several("horovod", 8, 780, quality=0.80),
    ]
    found = advise(runs)
    assert found.choice.workers == 4
    assert any("IoU is worse by 0.1" in sentence for sentence in found.sentences)


def test_a_batch_that_ruins_one_worker_too_does_not_pass_for_no_worse():
    small, large = {"train.batch_size": 8}, {"train.batch_size": 512}
    runs = [
        *several("horovod", 1, 100, swept=small),
        *several("horovod", 2, 190, swept=small),
        *several("horovod", 1, 200, quality=0.6, swept=large),
        *several("horovod", 2, 390, quality=0.6, swept=large),
    ]
    assert advise(runs).choice.key.swept == small


def test_single_runs_make_the_advice_provisional_and_ask_for_seeds():
    found = advise(made.published())
    assert found.headline == "Provisionally, ask for 6 workers with horovod."
    assert any("−0.009 between single runs" in sentence for sentence in found.sentences)
    assert found.open_questions == (
        "One seed only: no interval anywhere, so chance cannot be ruled out. Sweep three or more seeds.",
    )


def test_what_seems_to_lose_quality_is_passed_over_even_before_it_is_proven():
    found = advise(made.published())
    assert any("seems to suffer (−0.077 on average" in sentence for sentence in found.sentences)


def test_a_rival_that_the_runs_cannot_tell_apart_is_named():
    runs = [*several("mirrored", 1, 100), *several("horovod", 1, 100)]
    runs += [*several("mirrored", 2, 190.0), *several("horovod", 2, 190.05)]
    sentences = advise(runs).sentences
    assert "The runs do not show it to be faster than mirrored on 2 workers." in sentences


def test_what_is_missing_or_failed_is_named():
    questions = advise(made.seeded(), made.unfinished()).open_questions
    assert "1 run failed: horovod-w8-s2." in questions
    assert "1 run is missing: horovod-w16-s0." in questions


def test_oversubscribed_points_are_left_open_with_their_reason():
    found = advise(made.oversubscribed())
    assert found.choice.workers == 2
    assert found.open_questions == (
        "No speed-up of horovod on 4 workers: oversubscribed: 4 workers with 1 core each on 2 cores.",
    )


def test_virtual_workers_tell_how_far_quality_holds():
    runs = [*several("virtual", 1, 90), *several("virtual", 4, 90), *several("virtual", 14, 90, quality=0.8)]
    found = advise(runs)
    assert found.choice is None
    assert found.headline.startswith("No speed-up could be computed")
    assert any("from 14 workers on" in sentence for sentence in found.sentences)


def test_without_runs_there_is_no_advice():
    found = advise([], made.unfinished())
    assert found.headline == "No run has finished, so there is nothing to advise yet."
    assert len(found.open_questions) == 3


def test_the_limit_of_the_choices_scaling_model_is_said_where_it_is_known():
    found = advise(made.seeded((1, 2, 4, 8, 16), ("horovod",), serial=0.05))
    assert any(
        "95 % interval" in sentence and "speed-up stays below" in sentence for sentence in found.sentences
    )
    ideal = advise(made.seeded((1, 2, 4, 8, 16), ("horovod",), serial=0.0))
    assert not any("speed-up stays below" in sentence for sentence in ideal.sentences)


def test_an_error_that_grew_is_not_advised():
    runs = [
        *several("horovod", 1, 100, quality=0.100, metric="mse"),
        *several("horovod", 2, 190, quality=0.100, metric="mse"),
        *several("horovod", 4, 390, quality=0.143, metric="mse"),
    ]
    found = advise(runs)
    assert found.headline == "Ask for 2 workers with horovod."
    assert any(sentence.startswith("Faster still, but mse is worse by 0.04") for sentence in found.sentences)
    assert any(sentence.startswith("Its mse (lower is better) is 0.100") for sentence in found.sentences)


def test_of_swept_values_the_best_one_worker_row_is_that_of_the_least_error():
    good, bad = {"train.batch_size": 8}, {"train.batch_size": 512}
    runs = [
        *several("horovod", 1, 100, quality=0.1, swept=good, metric="mse"),
        *several("horovod", 2, 190, quality=0.1, swept=good, metric="mse"),
        *several("horovod", 1, 200, quality=0.4, swept=bad, metric="mse"),
        *several("horovod", 2, 390, quality=0.4, swept=bad, metric="mse"),
    ]
    assert advise(runs).choice.key.swept == good


def test_of_an_unknown_direction_the_advice_is_provisional_and_says_what_to_declare():
    runs = [*several("horovod", 1, 100, metric="badness"), *several("horovod", 4, 390, metric="badness")]
    found = advise(runs)
    assert found.headline == "Provisionally, ask for 4 workers with horovod."
    assert any('better = {"badness": "higher"}' in question for question in found.open_questions)


def test_nothing_is_advised_on_models_at_chance():
    options = {"quality": 0.11, "chance": 0.115, "metric": "accuracy"}
    found = advise(
        [run for workers in (1, 2, 4) for run in several("horovod", workers, 97.0 * workers, **options)]
    )
    assert found.choice is None
    assert found.headline == "No point has learned anything, so there is nothing to advise."
    assert any(
        sentence.startswith("Nothing is advised on horovod on 1 worker, horovod on 2 workers or horovod on")
        for sentence in found.sentences
    )


def test_a_faster_point_that_diverged_is_named_and_not_advised():
    runs = [
        *several("horovod", 1, 100),
        *several("horovod", 2, 190),
        *several("horovod", 4, 390, epochs=3, losses=(0.7, 0.8, 40.0)),
    ]
    found = advise(runs)
    assert found.choice.workers == 2
    sentence = (
        "Nothing is advised on horovod on 4 workers: diverged: 3 of 3 runs: the training loss grew from"
        " 0.7 to 40."
    )
    assert sentence in found.sentences


def test_what_learned_nothing_is_no_reference():
    runs = [
        *several("horovod", 1, 100, quality=0.1, chance=0.115, metric="accuracy"),
        *several("horovod", 2, 190, quality=0.9, chance=0.115, metric="accuracy"),
    ]
    found = advise(runs)
    assert found.headline == "Provisionally, ask for 2 workers with horovod."
    assert found.verdict.kind == "no-reference"


def wild(strategy, workers, throughputs):
    return [made.run(strategy, workers, seed, throughput=value) for seed, value in enumerate(throughputs)]


def test_a_speed_up_that_may_be_anything_is_not_advised():
    runs = [*wild("horovod", 1, (90.0, 110.0)), *wild("horovod", 2, (150.0, 260.0))]
    found = advise(runs)
    assert found.choice is None
    assert found.headline == "What was measured is too uncertain to advise a number of workers."
    question = next(each for each in found.open_questions if each.startswith("Speed-ups too uncertain"))
    assert "horovod on 2 workers (1.98, 95 % interval 0.1" in question
    assert "More seeds would settle them" in question


def test_an_uncertain_point_is_passed_over_for_a_smaller_one_that_is_not():
    runs = [*several("horovod", 1, 100), *several("horovod", 2, 190)]
    found = advise([*runs, *wild("horovod", 4, (150.0, 300.0, 900.0))])
    assert found.choice.workers == 2
    assert any("Faster still, but too uncertain: horovod on 4" in sentence for sentence in found.sentences)


def test_a_point_that_surely_scales_badly_leaves_one_worker_advised():
    found = advise([*several("horovod", 1, 100), *several("horovod", 2, 80)])
    assert found.headline.startswith("Stay with 1 worker")
    assert not any("uncertain" in question for question in found.open_questions)


def test_against_four_workers_the_advice_says_what_is_relative_and_to_what():
    found = advise([*several("horovod", 4, 400), *several("horovod", 8, 720)])
    assert found.headline == "Provisionally, ask for 8 workers with horovod."  # no quality of one worker
    assert "as horovod on 4 workers" in found.sentences[0]
    assert "an efficiency of 0.90 (relative to 4 workers)" in found.sentences[0]


def test_where_no_larger_count_pays_the_fewest_workers_stay_advised():
    found = advise([*several("horovod", 4, 400), *several("horovod", 8, 440)])
    assert found.headline.startswith("Stay with 4 workers (horovod): no larger count tried")


def test_where_no_larger_count_has_a_speed_up_none_is_said_to_lack_efficiency():
    runs = [made.run("horovod", 1, seed) for seed in range(2)]
    runs += [made.run("horovod", 4, seed, oversubscribed="4 workers on 2 cores") for seed in range(2)]
    found = advise(runs)
    assert found.headline == "No speed-up could be computed, so no worker count can be advised."
    assert any("oversubscribed" in question for question in found.open_questions)


def test_an_efficiency_just_below_the_target_is_not_rounded_to_it():
    runs = [*several("mirrored", 1, 100), *several("mirrored", 8, 558)]
    assert "Faster still, but below 0.7: mirrored on 8 workers, efficiency 0.698." in advise(runs).sentences
