"""`run --until decided`: what is timed and trained, limits, and going on after an interruption."""

import csv
from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import synthetic_result
from few_digits import few_digits
from recording_listener import RecordingListener
from scalestudy.analysis.next_runs import MOST_BLOCKS, MOST_DISTURBED, Limits
from scalestudy.app.plan import Request, plan_study, request_of
from scalestudy.app.result import StudyResult
from scalestudy.app.row_points import RowPoints
from scalestudy.app.run_study import Interrupted
from scalestudy.app.until import dry_run_until, run_until
from scalestudy.engines.tensorflow import installation
from scalestudy.features.proposal.panel import find_panel
from scalestudy.features.proposal.resource_request import (
    resource_request as request_of_panel,
)
from scalestudy.features.proposal.subject import RequestOptions, subject_of
from scalestudy.launch import local_run as run
from scalestudy.launch.environments import refuse_missing_software
from scalestudy.launch.launcher import Options
from scalestudy.launch.study_status import study_status
from scalestudy.report.formats import to_csv
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import UserError

TEXT = 'task = "cnn"\n[sweep]\nstrategy = ["native", "horovod"]\nworkers = [1, 2]\nseed = [0, 1, 2]\n'


@pytest.fixture
def request_(tmp_path: Path, launcher, monkeypatch) -> Request:
    """Two strategies on one and two workers; two workers take 0.6 of the time of one, horovod 5 % more."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    launcher.wall = lambda point: (
        100
        * (0.6 if point.workers == 2 else 1)
        * (1.05 if point.strategy == "horovod" else 1)
    )
    launcher.quality = lambda point: 0.75 + 0.001 * (point.seed % 3)
    file = tmp_path / "study.toml"
    file.write_text(TEXT)
    return request_of(file)


def rows_run(launcher) -> Counter:
    """How often each row was timed or trained."""
    return Counter(
        (point.strategy, point.workers, "timed" if point.timing else "trained")
        for point in launcher.points
    )


def decided(request: Request, limits: Limits | None = None, **more: Any) -> StudyResult:
    """Run a study until it is decided, without its report, which takes seconds."""
    return run_until(request, limits or Limits(), report=False, **more)


@pytest.fixture
def listener() -> RecordingListener:
    return RecordingListener()


def test_rows_are_timed_first_and_only_the_candidate_and_its_reference_are_trained(
    request_, launcher
):
    result = decided(request_)
    counts = rows_run(launcher)
    assert {row for row in counts if row[2] == "trained"} == {
        ("native", 1, "trained"),
        ("native", 2, "trained"),
    }
    assert counts["native", 1, "trained"] == counts["native", 2, "trained"] == 3
    assert all(
        counts[strategy, workers, "timed"]
        for strategy in ("native", "horovod")
        for workers in (1, 2)
    )
    kinds = [point.timing for point in launcher.points]
    assert kinds == sorted(kinds, reverse=True)
    decision = result.advice.decision
    assert (
        decision.choice.strategy,
        decision.choice.workers,
        decision.provisional,
    ) == ("native", 2, ())
    assert all(point.why for point in launcher.points)


def test_times_of_trainings_are_computed_from_timing_runs(request_, launcher):
    rows = {(row.strategy, row.workers): row for row in decided(request_).findings.rows}
    assert rows["horovod", 2].wall_seconds.value == pytest.approx(63)
    assert rows["horovod", 2].runs == rows["horovod", 2].timings == 2
    assert (
        rows["horovod", 2].quality.value == rows["native", 2].quality.value
    )  # equal updates


@pytest.mark.parametrize(
    ("measure", "values", "trained"),
    [
        ("wall", lambda point: 100 / (1 if point.workers == 1 else 1.1), 0),
        (
            "quality",
            lambda point: 0.75 - 0.2 * (point.workers == 2) + 0.001 * (point.seed % 3),
            2,
        ),
    ],
    ids=["costs too much", "learns worse"],
)
def test_a_row_that_cannot_be_chosen_is_left_after_few_trainings(
    request_, launcher, measure, values, trained
):
    setattr(launcher, measure, values)
    decision = decided(request_).advice.decision
    assert (decision.kind, decision.choice.workers, decision.provisional) == (
        "stay",
        1,
        (),
    )
    counts = rows_run(launcher)
    assert (counts["native", 2, "trained"], counts["horovod", 2, "trained"]) == (
        trained,
        0,
    )


def test_one_training_speaks_for_all_rows_of_one_global_batch(request_, launcher):
    file = request_.base / "global.toml"
    file.write_text(TEXT.replace("[sweep]", '[train]\nbatch = "global"\n[sweep]'))
    result = decided(request_of(file))
    assert [row for row in rows_run(launcher).elements() if row[2] == "trained"] == [
        ("native", 2, "trained")
    ]
    decision = result.advice.decision
    assert (decision.choice.workers, decision.provisional) == (2, ())
    assert all(
        verdict.kind in ("reference", "no-worse")
        for verdict in decision.verdicts.values()
    )


def test_strategies_with_other_updates_are_each_trained(
    request_, launcher, monkeypatch
):
    made = synthetic_result.result_of

    def result_of(point, *args):
        result = made(point, *args)
        if result.timing is None or point.strategy != "horovod" or point.workers != 2:
            return result
        timing = result.timing.model_copy(update={"losses": [0.9, 0.81, 0.72, 0.63]})
        return result.model_copy(update={"timing": timing})

    monkeypatch.setattr(synthetic_result, "result_of", result_of)
    launcher.quality = lambda point: (
        0.75 - 0.2 * (point.name.startswith("native-w2")) + 0.001 * point.seed
    )
    decision = decided(request_).advice.decision
    assert (
        decision.choice.strategy,
        decision.choice.workers,
        decision.provisional,
    ) == ("horovod", 2, ())
    assert rows_run(launcher)["native", 2, "trained"] == 2


def test_an_interrupted_study_goes_on_where_it_was(request_, launcher):
    whole = decided(request_).advice.decision
    names = [point.name for point in launcher.points]
    launcher.points.clear()
    again = Request(
        request_.study, request_.text, request_.base, request_.target.with_name("again")
    )
    launcher.interrupt = names[-2]
    with pytest.raises(Interrupted):
        decided(again)
    launcher.interrupt = None
    decision = decided(again).advice.decision
    assert decision.choice == whole.choice
    assert sorted({point.name for point in launcher.points}) == sorted(names)
    done = len(launcher.points)
    decided(again)
    assert len(launcher.points) == done


def test_a_row_whose_cores_other_programs_used_is_timed_again(request_, launcher):
    launcher.disturb = {"native-w2-s0-timing", "horovod-w2-s0-timing"}
    launcher.wall = lambda point: (
        100 if point.workers == 1 else 200 if point.name in launcher.disturb else 60
    )
    decision = decided(request_, Limits(36000)).advice.decision
    assert decision.choice.workers == 2
    assert decision.price.seconds.value == pytest.approx(60)


def test_on_a_machine_that_stays_busy_disturbed_times_count_in_the_end(
    request_, launcher
):
    rows = [
        (strategy, workers) for strategy in ("native", "horovod") for workers in (1, 2)
    ]
    launcher.disturb = {
        f"{name}-w{n}-s{seed}-timing" for name, n in rows for seed in range(26)
    }
    assert decided(request_, Limits(36000)).advice.decision.choice.workers == 2
    counts = rows_run(launcher)
    assert [counts[strategy, workers, "timed"] for strategy, workers in rows] == [
        MOST_DISTURBED
    ] * 4


def test_disturbed_runs_are_repeated_on_request_and_not_before_every_batch(
    request_, launcher
):
    launcher.disturb = {
        f"native-w{n}-s{seed}-timing" for n in (1, 2) for seed in (0, 1)
    }
    decided(request_, Limits(36000), until="timed")
    timed = {point.name for point in launcher.points}
    launcher.points.clear()
    decided(request_, Limits(36000), options=Options(repeat=True))
    runs = Counter(point.name for point in launcher.points)
    assert "native-w2-s0" in runs
    assert timed.intersection(runs) == launcher.disturb
    assert set(runs.values()) == {1}


def test_rows_that_always_share_their_cores_with_another_study_have_no_times(
    request_, launcher, listener
):
    """The report compares no such times, so the study neither decides by them nor trains for them."""
    launcher.share = {
        f"{name}-w2-s{seed}-timing"
        for name in ("native", "horovod")
        for seed in range(26)
    }
    result = decided(request_, Limits(36000), listener=listener)
    counts = rows_run(launcher)
    assert counts["native", 2, "timed"] == MOST_DISTURBED
    assert {kind for *_, kind in counts} == {"timed"}
    assert "another study used the cores of native on 2 workers" in listener.notes[-1]
    assert listener.notes[-1].startswith("Not decided")
    assert result.advice.decision.choice is None


def test_a_row_whose_runs_fail_is_given_up(request_, launcher):
    launcher.fail = {
        f"{row}-s{seed}{kind}"
        for row in ("native-w2", "horovod-w2")
        for seed in range(9)
        for kind in ("", "-timing")
    }
    result = decided(request_)
    assert result.advice.decision.choice.workers == 1
    assert max(rows_run(launcher).values()) <= 3


def test_a_budget_and_a_number_of_seeds_end_a_study_undecided(
    request_, launcher, listener
):
    launcher.quality = lambda point: (
        0.75 + 0.05 * (-1) ** point.seed - 0.015 * (point.workers == 2)
    )
    decided(request_, Limits(seeds=4), listener=listener)
    assert rows_run(launcher)["native", 2, "trained"] <= 4
    launcher.points.clear()
    other = Request(
        request_.study, request_.text, request_.base, request_.target.with_name("other")
    )
    decided(other, Limits(720), listener=listener)
    spent = sum(
        point.workers * launcher.wall(point) * (0.99 if point.timing else 1)
        for point in launcher.points
    )
    assert spent <= 720
    assert listener.notes[-1].startswith("Not decided")


def test_times_that_stay_too_uncertain_are_taken_again_and_decide_nothing(
    request_, launcher, listener
):
    launcher.wall = lambda point: (
        100
        if point.workers == 1
        else (480 if point.seed % 2 else 30) * (1 + (point.strategy == "horovod"))
    )
    decision = decided(request_, Limits(36000), listener=listener).advice.decision
    assert decision.kind == "uncertain"
    assert rows_run(launcher)["native", 2, "timed"] == MOST_BLOCKS
    assert (
        listener.notes[-1].startswith("Not decided")
        and "native on 2 workers" in listener.notes[-1]
    )


def test_a_dry_run_names_the_next_runs_and_writes_nothing(request_, launcher):
    texts = list(dry_run_until(request_, Limits()))
    assert {text.strip() for text in texts} >= {
        "native-w1-s0-timing",
        "horovod-w2-s0-timing",
    }
    assert not request_.target.exists()
    launcher.interrupt = "native-w1-s0"
    with pytest.raises(Interrupted):
        decided(request_)
    before = StudyFolder.open(request_.target).points()
    expected = list(dry_run_until(request_, Limits(7200)))[-1]
    assert "saves" in expected and "at most 2.00 worker-hours" in expected
    assert StudyFolder.open(request_.target).points() == before


def test_virtual_workers_have_no_times_to_decide_by(request_, launcher):
    file = request_.base / "study.toml"
    file.write_text(TEXT.replace('"horovod"', '"virtual"'))
    with pytest.raises(UserError, match="virtual"):
        decided(request_of(file))
    assert launcher.points == []


def test_the_grid_can_be_run_afterwards(request_, launcher):
    from scalestudy.app.run_study import run_study

    decided(request_)
    done = {point.name for point in launcher.points}
    launcher.points.clear()
    result = run_study(request_, report=False)
    assert not {point.name for point in launcher.points} & done
    assert {status.name for status in result.overview.points} >= done
    assert all(row.runs - row.timings >= 3 for row in result.findings.rows)


def test_rows_whose_library_is_not_installed_are_left_out(
    request_, launcher, monkeypatch
):
    monkeypatch.setattr(
        "scalestudy.launch.local.refuse_missing_software", refuse_missing_software
    )
    monkeypatch.setattr(installation, "library_file", lambda: None)
    assert decided(request_).advice.decision.choice.strategy == "native"
    assert {point.strategy for point in launcher.points} == {"native"}


def test_until_timed_nothing_is_trained_and_times_of_the_plan_are_answered(
    request_, launcher, listener
):
    result = run_until(request_, Limits(), "timed", report=False, listener=listener)
    assert all(point.timing for point in launcher.points)
    assert listener.notes[-1].startswith("Timed: ")
    decision = result.advice.decision
    assert decision.choice.workers == 2  # by speed alone
    assert "quality-unknown" in decision.provisional


def test_between_timing_and_training_the_fastest_row_is_named(request_, launcher):
    result = run_until(request_, Limits(), "timed", report=False)
    assert result.advice.headline.startswith("By speed alone")
    assert result.advice.decision.kind == "ask"


def test_trainings_of_the_reference_that_always_fail_end_the_study_and_count_as_spent(
    request_, launcher, listener
):
    launcher.fail = {
        f"{strategy}-w1-s{seed}"
        for strategy in ("native", "horovod")
        for seed in range(40)
    }
    decided(request_, listener=listener)
    counts = rows_run(launcher)
    assert counts["native", 1, "trained"] <= 3
    assert listener.notes[-1].startswith("Not decided")


def test_a_candidate_that_fails_after_its_first_success_is_given_up(
    request_, launcher, listener
):
    launcher.quality = lambda point: (
        0.75 + 0.004 * (-1) ** point.seed - 0.012 * (point.workers == 2)
    )
    launcher.fail = {f"native-w2-s{seed}" for seed in range(1, 40)}
    decided(request_, Limits(1e6), listener=listener)
    assert rows_run(launcher)["native", 2, "trained"] <= 4
    assert listener.notes[-1].startswith("Not decided")


def test_failed_trainings_are_part_of_the_budget(request_, launcher):
    launcher.fail = {f"native-w2-s{seed}" for seed in range(40)}
    rows = RowPoints.of(plan_study(request_))
    decided(request_)
    plan = plan_study(request_)
    known = rows.known(plan, study_status(plan.existing))
    trained = [point for point in launcher.points if not point.timing]
    failed = [point for point in trained if point.name in launcher.fail]
    assert failed
    of_trainings = sum(point.workers * launcher.wall(point) for point in trained)
    assert known.spent >= of_trainings


def test_a_training_that_cannot_be_paid_leaves_a_study_undecided(
    request_, launcher, listener
):
    """Timing all rows twice costs some 1080 worker-seconds here, and nothing is left to train."""
    launcher.wall = lambda point: 100.0
    decided(request_, Limits(700), listener=listener)
    assert not [point for point in launcher.points if not point.timing]
    assert listener.notes[-1].startswith("Not decided")


def test_the_efficiency_of_the_plan_is_that_of_policy_and_report(request_, launcher):
    file = request_.base / "strict.toml"
    file.write_text(TEXT + "[plan]\nefficiency = 0.95\n")
    result = decided(request_of(file))
    assert result.advice.decision.choice.workers == 1
    assert result.advice.decision.target == 0.95
    plan = plan_study(request_of(file))
    known = RowPoints.of(plan).known(plan, study_status(plan.existing))
    assert known.target == 0.95


def test_what_was_timed_and_what_was_trained_are_counted_apart(request_, launcher):
    rows = {(row.strategy, row.workers): row for row in decided(request_).findings.rows}
    chosen, other = rows["native", 2], rows["horovod", 2]
    assert (chosen.trainings, chosen.timings, chosen.quality_of) == (3, 2, None)
    assert (other.trainings, other.timings, other.quality_of) == (0, 2, chosen.key)
    lines = csv.DictReader(StringIO(to_csv([*rows.values()])))
    records = {(line["strategy"], line["workers"]): line for line in lines}
    assert records["horovod", "2"]["quality_of"] == "native on 2 workers"
    assert (
        records["horovod", "2"]["trainings"],
        records["horovod", "2"]["timing_runs"],
    ) == ("0", "2")


def test_a_proposal_of_a_decided_study_says_what_was_run(request_, launcher):
    subject = subject_of(decided(request_).findings, RequestOptions())
    request = request_of_panel(subject, find_panel("csc"))
    steps = {name: (value, origin) for name, value, origin in request.steps}
    assert (
        steps["Hours of one"][1]
        == "mean of 3 trainings and 2 timing runs, for 2 epochs"
    )
    assert steps["Seeds of each"] == ("1", "`--seeds`, default")


@pytest.mark.engine
def test_a_real_study_is_timed_and_trained(tmp_path, monkeypatch):
    """One worker only: its training is the choice, and takes about the time computed from its timing run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(
        run, "BUSY", 1.1
    )  # what other programs do meanwhile repeats no run
    file = tmp_path / "study.toml"
    file.write_text(
        f'task = "cnn"\n[data]\nsource = "{few_digits(tmp_path, 320)}"\n[train]\nepochs = 24\n'
        '[launch]\ndevice = "cpu"\ncpus_per_worker = 1\n[sweep]\nstrategy = ["single"]\nworkers = 1\n'
    )
    result = decided(request_of(file))
    timed, trained = sorted(
        result.overview.points, key=lambda status: not status.point.timing
    )
    timing = timed.result.timing
    assert (timing.training_epochs, timing.training_evaluations) == (24, 24)
    assert (
        0
        < timing.steps + timing.warm_up_steps
        <= timing.training_updates
        == trained.result.updates
    )
    assert timing.losses[0] == pytest.approx(2.3, abs=0.3)
    assert timed.result.quality is None and not timed.run.model.exists()
    assert trained.run.model.exists()
    computed = next(
        run.result for run in result.findings.runs if run.result.name == timed.name
    )
    assert computed.samples_processed == trained.result.samples_processed
    assert computed.training_seconds > timed.result.training_seconds
    assert result.advice.decision.choice.workers == 1


def test_runs_of_other_models_in_one_row_end_it(request_, launcher, monkeypatch):
    made = synthetic_result.result_of

    def of_other_models(point, *measured):
        return made(point, *measured).model_copy(update={"parameters": 10 + point.seed})

    monkeypatch.setattr("synthetic_result.result_of", of_other_models)
    with pytest.raises(UserError) as caught:
        decided(request_)
    assert (
        "different models" in caught.value.received
        and "scalestudy report" in caught.value.action
    )
