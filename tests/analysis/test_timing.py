"""Timing runs: computed times of the training, and proof of equal updates."""

from dataclasses import replace

import numpy as np
import pytest

import synthetic
from scalestudy.analysis.failure_counts import Failures, count_failures, pool
from scalestudy.analysis.measures import equal_updates, measure_rows
from scalestudy.analysis.quality import judge
from scalestudy.analysis.runs import group_runs, key_of
from scalestudy.analysis.study_runs import as_training, runs_of
from scalestudy.launch.study_status import study_status
from scalestudy.store.records import Timing

LOSSES = [2.3, 2.2, 2.1]


def timing_run(strategy, workers, seed=0, *, losses=LOSSES, steps=(10, 10), **options):
    """A timing run of 20 of 1000 steps: 10 to warm up in 3 s, then 0.2 s a step."""
    run = synthetic.run(strategy, workers, seed, **options)
    timing = Timing(
        warm_up_steps=steps[0],
        warm_up_seconds=3.0,
        steps=steps[1],
        seconds=2.0,
        evaluations=[4.0, 1.5],
        training_epochs=5,
        training_updates=1000,
        training_samples=50_000,
        training_evaluations=5,
        losses=losses,
    )
    result = run.result.model_copy(
        update={
            "timing": timing,
            "quality": None,
            "training_seconds": 5.0,
            "wall_seconds": 40.0,
            "phases": {
                "start-up": 20.0,
                "steps": 4.0,
                "input": 1.0,
                "evaluation": 5.5,
                "saving": 2.0,
            },
        }
    )
    return replace(run, result=result, epochs=())


def test_times_of_the_training_follow_from_start_up_steps_and_evaluations():
    result = as_training(timing_run("native", 1)).result
    assert result.training_seconds == pytest.approx(3.0 + 990 * 0.2)
    assert result.wall_seconds == pytest.approx(40 - 5 + 201 + 3 * 1.5 + 2)
    assert (result.epochs, result.updates, result.samples_processed) == (
        5,
        1000,
        50_000,
    )
    assert result.phases["steps"] + result.phases["input"] == pytest.approx(201)


def test_trainings_are_left_as_they_are():
    run = synthetic.run("native", 1, 0)
    assert as_training(run) is run


def test_points_with_the_same_training_have_its_computed_times(tmp_path):
    folder = synthetic.write(tmp_path / "study", "made", [timing_run("native", 1)])
    (status,) = study_status(folder).points
    point = status.point.model_copy(
        update={"also": ({"train.learning_rate_scaling": "sqrt"},)}
    )
    one, other = runs_of(replace(status, point=point), folder.path)
    assert (
        one.result.training_seconds
        == other.result.training_seconds
        == pytest.approx(201)
    )


@pytest.mark.parametrize(
    ("losses", "equal"),
    [
        ([x * (1 + 1e-6) for x in LOSSES], True),
        ([2.3, 2.2, 2.101], False),
        ([2.3], False),
        ([float("nan")] * 3, False),
    ],
    ids=["rounding", "another update", "too few", "diverged"],
)
def test_strategies_make_equal_updates_if_their_first_losses_agree(losses, equal):
    runs = [
        timing_run("native", 2),
        timing_run("horovod", 2, losses=losses),
        timing_run("native", 4),
    ]
    firsts = equal_updates(group_runs(runs))
    native, horovod = key_of("native", 2, {}), key_of("horovod", 2, {})
    assert (firsts[horovod] == native) is equal
    assert firsts[key_of("native", 4, {})] == key_of("native", 4, {})


@pytest.mark.parametrize(("batch", "equal"), [(64, True), (128, False)])
def test_trainings_speak_for_other_numbers_of_workers_with_the_same_global_batch(
    batch, equal
):
    runs = [timing_run("native", 1), timing_run("native", 2)]
    runs += [
        synthetic.run("native", 1, seed, quality=0.9 + 0.05 * seed) for seed in (0, 1)
    ]
    batches = {1: 64, 2: batch}
    runs = [
        synthetic.changed(run, global_batch=batches[run.result.workers]) for run in runs
    ]
    measures = measure_rows(group_runs(runs))
    verdict = judge(key_of("native", 2, {}), measures, None)
    assert (verdict.kind == "no-worse") is equal


def test_failures_are_shares_of_trainings_and_counted_once_for_equal_updates():
    trained = [
        synthetic.run("native", n, seed, quality=0.95)
        for n in (1, 8)
        for seed in range(3)
    ]
    collapsed = [synthetic.run("native", 8, seed, quality=0.3) for seed in (3, 4, 5)]
    timed = [
        as_training(timing_run(name, n))
        for name in ("native", "horovod")
        for n in (1, 8)
    ]
    measures = measure_rows(group_runs([*trained, *collapsed, *timed]))
    failures = count_failures(list(measures.groups), measures, ())
    assert (
        failures[key_of("native", 8, {})]
        == failures[key_of("horovod", 8, {})]
        == Failures(3, 6)
    )
    ones = [key_of(name, 1, {}) for name in ("native", "horovod")]
    assert pool(failures, ones, measures) == Failures(0, 3)
    only_timed = measure_rows(group_runs(timed))
    assert count_failures(list(only_timed.groups), only_timed, ())[ones[0]].share == 0


def test_runs_without_timing_or_steps_enough_prove_nothing():
    plain = [synthetic.run("native", 2, 0), synthetic.run("horovod", 2, 0)]
    short = [timing_run(name, 2, steps=(0, 2)) for name in ("native", "horovod")]
    for runs in (plain, short):
        assert all(
            key == first for key, first in equal_updates(group_runs(runs)).items()
        )


def test_trainings_of_one_strategy_speak_for_those_with_equal_updates():
    trained = [
        synthetic.run("native", 2, seed, quality=0.9 + 0.01 * seed) for seed in range(2)
    ]
    timed = [as_training(timing_run(strategy, 2)) for strategy in ("native", "horovod")]
    found = measure_rows(group_runs([*trained, *timed]))
    native, horovod = key_of("native", 2, {}), key_of("horovod", 2, {})
    assert (
        found.quality.values[horovod]
        == found.quality.values[native]
        == {0: 0.9, 1: 0.91}
    )
    assert len(found.wall_seconds.values[native]) == 3
    assert found.sequential


@pytest.mark.slow
@pytest.mark.parametrize("hours", [0.0, 0.05], ids=["quiet", "hours of 5 %"])
def test_intervals_of_computed_times_hold_what_trainings_take(hours):
    """Start-up spreads by 5 %, the steps of a run by 2 %, evaluations by 5 %, hours beside; 20 of 1000 steps.

    The standard error of a coverage of 0.95 is 0.005.
    """
    generator, held = np.random.default_rng(20240229), {"time": [], "ratio": []}

    def spread(by):
        return float(np.exp(generator.normal(0, by)))

    for _ in range(250):
        speeds = {n: (30 * (1 + 0.1 * n), 0.2 / n**0.9) for n in (1, 2, 4, 8)}
        true = {n: start + 1000 * step + 5 * 1.5 for n, (start, step) in speeds.items()}
        runs = []
        for block in range(2):
            hour = spread(hours)
            for n, (start, step) in speeds.items():
                run = timing_run("native", n, block)
                steps = step * spread(0.02) * hour
                timing = run.result.timing.model_copy(
                    update={
                        "warm_up_seconds": 10 * steps,
                        "seconds": 10 * steps * spread(0.01),
                        "evaluations": [1.5 * hour * spread(0.05) for _ in range(2)],
                    }
                )
                training = timing.warm_up_seconds + timing.seconds
                before = start * hour * spread(0.05)
                result = run.result.model_copy(
                    update={
                        "timing": timing,
                        "training_seconds": training,
                        "wall_seconds": before + training + sum(timing.evaluations),
                        "phases": {"start-up": before},
                    }
                )
                runs.append(as_training(replace(run, result=result)))
        found = measure_rows(group_runs(runs)).wall_seconds
        one, *others = (key_of("native", n, {}) for n in speeds)
        for key in (one, *others):
            held["time"].append(contains(found.mean(key), true[key.workers]))
        for key in others:
            held["ratio"].append(
                contains(found.ratio(one, key), true[1] / true[key.workers])
            )
    assert 0.93 <= np.mean(held["ratio"]) < 0.995
    # Two hours say little about how much hours differ.
    assert 0.93 - 0.05 * (hours > 0) <= np.mean(held["time"]) < 0.995


def contains(estimate, value):
    return estimate.low <= value <= estimate.high
