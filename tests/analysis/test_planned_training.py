"""The time of a planned training, from trainings and from timing runs, and where the decision changes."""

from dataclasses import replace
from itertools import pairwise

import pytest

import synthetic
from scalestudy.analysis.decision import Criteria
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.planned_training import (
    PlannedTraining,
    planned_seconds,
    time_parts,
)
from scalestudy.analysis.study_runs import as_training
from scalestudy.store.records import EpochRecord, Timing

START, COMPILE, SAVING = 20.0, 12.0, 1.5


def training(
    workers=1,
    seed=0,
    *,
    epochs=6,
    step=30.0,
    evaluation=4.0,
    every=1,
    factor=1.0,
    **options,
):
    """A training of known times: the first epoch and the first evaluation compile for 2 s more.

    `step` are the seconds of the steps of an epoch; times are multiplied by `factor`.
    """
    due = [
        number
        for number in range(1, epochs + 1)
        if number % every == 0 or number == epochs
    ]
    records = [
        EpochRecord(
            epoch=number,
            steps=10,
            samples=100,
            train_seconds=factor * (step + 2.0 * (number == 1)),
            evaluation_seconds=factor * (evaluation + 2.0 * (number == due[0]))
            if number in due
            else 0.0,
            elapsed_training_seconds=0.0,
        )
        for number in range(1, epochs + 1)
    ]
    phases = {
        "start-up": factor * START,
        "compile": factor * COMPILE,
        "steps": sum(record.train_seconds for record in records),
        "evaluation": sum(record.evaluation_seconds for record in records),
        "saving": factor * SAVING,
    }
    run = synthetic.run("native", workers, seed, epochs=epochs, samples=100, **options)
    run = synthetic.changed(
        run,
        phases=phases,
        wall_seconds=sum(phases.values()),
        training_seconds=phases["steps"],
        throughput=100 / (factor * step),
        global_batch=10,
    )
    return replace(run, epochs=tuple(records))


def truth(epochs, *, step=30.0, evaluation=4.0):
    """Seconds of a whole training."""
    return START + COMPILE + SAVING + 4.0 + epochs * (step + evaluation)


def test_a_training_is_split_into_what_is_paid_once_and_what_every_epoch_costs():
    parts = time_parts(training())
    assert (parts.steps, parts.evaluation, parts.repeated) == (30.0, 4.0, 0.0)
    assert parts.fixed == pytest.approx(START + COMPILE + SAVING + 4.0)


@pytest.mark.parametrize("epochs", [6, 60, 600])
def test_a_long_training_takes_as_long_as_it_would_if_it_were_run(epochs):
    assert planned_seconds(training(), PlannedTraining(epochs)) == pytest.approx(
        truth(epochs)
    )
    assert training(epochs=epochs).wall_seconds == pytest.approx(truth(epochs))


def test_without_a_plan_the_time_is_the_measured_one():
    run = training()
    assert planned_seconds(run, PlannedTraining()) == run.wall_seconds


def test_evaluations_that_come_every_few_epochs_are_counted_as_often():
    planned = planned_seconds(training(epochs=12, every=5), PlannedTraining(600))
    assert planned == pytest.approx(
        START + COMPILE + SAVING + 4.0 + 600 * 30 + 120 * 4.0, rel=0.002
    )


def test_an_evaluation_at_the_end_alone_is_paid_once():
    parts = time_parts(training(epochs=6, every=100))
    assert parts.evaluation == 0.0
    assert parts.fixed == pytest.approx(START + COMPILE + SAVING + 4.0 + 4.0)


def test_more_samples_take_more_steps_and_longer_evaluations():
    planned = planned_seconds(training(), PlannedTraining(epochs=6, samples=1005))
    steps = 30.0 * 101 / 10  # the last of 101 batches holds five samples
    assert planned == pytest.approx(
        START + COMPILE + SAVING + 4.0 + 6 * (steps + 4.0 * 10.05)
    )


def test_a_timing_run_foretells_the_same_time():
    timing = Timing(
        warm_up_steps=10,
        warm_up_seconds=5.0,
        steps=10,
        seconds=2.0,
        evaluations=[4.0, 1.5],
        training_epochs=5,
        training_updates=1000,
        training_samples=50_000,
        training_evaluations=5,
        losses=[1.0],
    )
    run = synthetic.run("native", 1, 0)
    result = run.result.model_copy(
        update={
            "timing": timing,
            "training_seconds": 7.0,
            "wall_seconds": 40.0,
            "phases": {"start-up": 27.5},
        }
    )
    run = as_training(replace(run, result=result, epochs=()))
    one, two = (planned_seconds(run, PlannedTraining(epochs)) for epochs in (5, 10))
    assert one == pytest.approx(run.result.wall_seconds)
    assert two - one == pytest.approx(5 * (200 * 0.2 + 1.5))


def study(steps, *, evaluation=4.0, noise=(0.99, 1.0, 1.01), epochs=6):
    """Three seeds of one row for each number of workers."""
    return [
        training(
            n, seed, epochs=epochs, step=step, evaluation=evaluation, factor=factor
        )
        for n, step in steps.items()
        for seed, factor in enumerate(noise)
    ]


def test_evaluations_that_workers_do_not_divide_do_not_vanish_in_long_trainings():
    """Ten hours of steps / n and evaluations of 4000 s: E(8) is .59 at a thousand epochs, too."""
    runs = study({n: 6000 / n for n in (1, 8)}, evaluation=670.0)
    for planned in (PlannedTraining(), PlannedTraining(1000)):
        decision = analyse(
            "made", runs, criteria=Criteria(planned=planned)
        ).advice.decision
        assert decision.choice.workers == 1
        (price,) = [price for key, price in decision.prices.items() if key.workers == 8]
        assert price.efficiency.value == pytest.approx(
            6670 / (8 * (750 + 670)), rel=0.02
        )
    assert analyse("made", runs).switch is None


def test_the_length_from_which_the_decision_changes_is_that_of_the_formula():
    """E(2) reaches .7 where 37.5 + 4 e = 1.4 (37.5 + 2 e), in seconds."""
    findings = analyse("made", study({1: 4.0, 2: 2.0}, evaluation=0.0))
    assert findings.advice.decision.choice.workers == 1
    exact = 37.5 * 0.4 / (4 - 2.8)
    assert findings.switch.choice.workers == 2
    assert exact <= findings.switch.epochs <= 2 * exact
    assert findings.switch.seconds == pytest.approx(
        37.5 + 2 * findings.switch.epochs, rel=0.02
    )
    assert any("2 workers" in sentence for sentence in findings.advice.sentences)


def test_no_length_is_named_where_noise_leaves_it_open():
    runs = study({1: 10.0, 4: 3.6}, evaluation=0.0, noise=(0.75, 1.0, 1.35))
    assert analyse("made", runs).switch is None


def test_a_plan_changes_the_choice_and_quality_keeps_its_length():
    runs = study({1: 4.0, 2: 2.0}, evaluation=0.0)
    findings = analyse("made", runs, criteria=Criteria(planned=PlannedTraining(600)))
    assert findings.advice.decision.choice.workers == 2
    assert findings.switch is None
    assert any(
        "6 epochs" in text and "600" in text for text in findings.advice.sentences
    )


def test_longer_trainings_are_never_cheaper_by_the_epoch_than_the_epoch_itself():
    run = training()
    times = [
        planned_seconds(run, PlannedTraining(epochs)) for epochs in (1, 2, 10, 100)
    ]
    assert all(later > earlier for earlier, later in pairwise(times))
