"""Ablations on this machine: what each measures, how they fail, and one real diagnosis."""

import sys
from dataclasses import replace

import pytest

from recording_listener import RecordingListener
from scalestudy.analysis.findings import analyse, read_study
from scalestudy.app.follow import Listener
from scalestudy.features.diagnose import rounds
from scalestudy.features.diagnose.ablation_record import ALONE, JOINED, Ablation
from scalestudy.features.diagnose.diagnosed_point import (
    choose_point,
    named_point,
    plan_diagnosis,
)
from scalestudy.features.diagnose.diagnosis_record import diagnoses
from scalestudy.features.diagnose.rounds import TURNS
from scalestudy.features.diagnose.suggestions import suggestions
from scalestudy.launch import worker_processes as workers
from scalestudy.launch.worker_processes import worker_command
from scalestudy.report.formats import sections
from scalestudy.store.record_file import read_record
from scalestudy.util.errors import RunError, UserError
from synthetic import run
from synthetic_diagnosis import point

NOTHING = analyse("made", ())


def points(*counts, seeds=(0,)):
    return [
        point(workers=count, seed=seed, name=f"horovod-w{count}-s{seed}")
        for count in counts
        for seed in seeds
    ]


def findings(throughputs):
    """Findings of a study with these throughputs by number of workers."""
    runs = [
        run("horovod", workers, seed, throughput=speed + 0.1 * seed, samples=200_000)
        for workers, speed in throughputs.items()
        for seed in (0, 1)
    ]
    return analyse("made", runs)


@pytest.mark.parametrize(
    ("counts", "throughputs", "workers", "reason"),
    [
        (
            (1, 2, 4, 8, 16),
            {1: 100.0, 2: 195.0, 4: 380.0, 8: 400.0, 16: 410.0},
            8,
            "the next larger count than is advised (horovod on 4 workers)",
        ),
        (
            (1, 2, 4),
            {1: 100.0, 2: 195.0, 4: 380.0},
            4,
            "the largest that the study has measured",
        ),
        ((1, 2, 4), {}, 4, "the largest of the study"),
    ],
)
def test_the_point_that_says_most_is_chosen(counts, throughputs, workers, reason):
    found, why = choose_point(points(*counts, seeds=(0, 1)), findings(throughputs))
    assert (found.workers, why) == (workers, reason)
    assert found.seed == 0


def test_points_whose_times_say_nothing_are_not_chosen():
    crowded = point(workers=8, name="crowded").on(oversubscribed="8 workers on 2 cores")
    found, _ = choose_point([*points(1, 2), crowded], NOTHING)
    assert found.workers == 2
    with pytest.raises(UserError, match="several workers"):
        choose_point([*points(1), crowded], NOTHING)


def test_a_named_point_is_taken_if_its_workers_compute_at_the_same_time():
    assert named_point(points(1, 2), "horovod-w2-s0").workers == 2
    virtual = point(name="virtual-w2-s0", strategy="virtual").on(
        implementation="virtual"
    )
    for known, name, words in (
        (points(1, 2), "horovod-w3-s0", "horovod-w2-s0"),
        (points(1, 2), "horovod-w1-s0", "several workers"),
        ([virtual], "virtual-w2-s0", "at the same time"),
    ):
        with pytest.raises(UserError, match=words):
            named_point(known, name)


def test_a_point_is_diagnosed_with_the_data_of_a_run_that_reads_the_same(begun_study):
    planned = plan_diagnosis(begun_study(), "mirrored-w2-s0")
    assert (planned.point.workers, planned.why) == (2, "")
    assert planned.point.needed_files().prepared


@pytest.mark.parametrize(
    ("made", "name", "words"),
    [
        ({"run": False}, None, "a run on the data of mirrored-w2-s0"),
        ({"on": "slurm"}, None, "run on this machine"),
        ({}, "mirrored-w1-s0", "a point of several workers"),
    ],
)
def test_what_cannot_be_diagnosed_here_is_refused(begun_study, made, name, words):
    with pytest.raises(UserError, match=words):
        plan_diagnosis(begun_study(**made), name)


@pytest.fixture
def commands(monkeypatch):
    """Record the worker commands; the processes exit with code 3 instead."""
    seen = []

    def command(*arguments):
        made = worker_command(*arguments)
        seen.append(made)
        return replace(made, arguments=[sys.executable, "-c", "raise SystemExit(3)"])

    for module in (rounds, workers):
        monkeypatch.setattr(module, "worker_command", command)
    monkeypatch.setattr("scalestudy.hardware.devices.gpus", lambda: 0)
    return seen


def test_an_ablation_that_fails_is_named_with_its_log(commands, tmp_path):
    with pytest.raises(
        RunError, match=r"of joined: .*exit code 3.*round-1/joined/logs/rank-"
    ):
        rounds.measure_rounds(point(), tmp_path, Listener(), rounds=2, seconds=0.9)
    assert len(commands) == 2
    ablation = read_record(
        tmp_path / "round-1" / "joined" / "ablation.json", Ablation
    ).record
    assert ablation.blocks == JOINED * TURNS
    assert ablation.seconds * TURNS == pytest.approx(0.9)
    assert ablation.worker is None


def test_workers_apart_have_the_ranks_cores_and_only_the_first_measures_alone(
    commands, tmp_path, monkeypatch
):
    monkeypatch.setattr(rounds, "_join", lambda place, folder, ablation: ())
    with pytest.raises(RunError, match="worker-"):
        rounds.measure_rounds(point(), tmp_path, Listener(), rounds=1, seconds=0.3)
    first, second = (
        read_record(tmp_path / "round-1" / name / "ablation.json", Ablation).record
        for name in ("worker-0", "worker-1")
    )
    assert first.blocks == (*ALONE, "together") * TURNS
    assert second.blocks == ("together",) * TURNS
    assert first.peers == second.peers == ("worker-0", "worker-1")
    assert [each.environment["WORLD_SIZE"] for each in commands] == ["1", "1"]
    assert all(each.environment["RANK"] == "0" for each in commands)
    assert len(commands[0].cpus) == len(commands[1].cpus) == 1


def test_each_ablation_is_progress_and_each_round_but_the_last_says_how_long_the_others_take(
    commands, tmp_path, monkeypatch
):
    for name in ("_join", "_apart"):
        monkeypatch.setattr(rounds, name, lambda place, folder, ablation: ())
    listener = RecordingListener()
    assert (
        len(rounds.measure_rounds(point(), tmp_path, listener, rounds=3, seconds=0.3))
        == 3
    )
    assert listener.amounts == [1, 2, 3, 4, 5, 6]
    assert listener.total == 6
    assert len(listener.notes) == 2


@pytest.mark.engine
def test_a_slow_loader_is_measured_and_the_studys_report_shows_it(
    begun_study, monkeypatch
):
    monkeypatch.setattr("scalestudy.hardware.cores.granted", lambda: [0, 1])
    folder = begun_study("slow_loader.py")
    planned = plan_diagnosis(folder, None)
    assert planned.point.name == "mirrored-w2-s0"
    found = rounds.diagnose(
        planned, listener := RecordingListener(), rounds=1, seconds=0.2
    )
    assert sum(part.share.value for part in found.parts) == pytest.approx(
        1 - found.efficiency.value
    )
    assert [rank.rank for rank in found.ranks] == [0, 1]
    assert found.input.value > 0.2
    assert suggestions(found) == []
    assert max(listener.amounts) == listener.total == 2
    assert diagnoses(folder.path) == [found]
    (section,) = [
        section
        for section in sections(read_study(folder))
        if section.name == "diagnosis"
    ]
    assert "changed since" not in section.blocks[0].text
    assert not folder.runs("mirrored-w2-s0")


def test_a_study_file_that_was_not_run_is_told_to_run_first(
    call, begun_study, tmp_path
):
    begun_study(run=False)
    code, _, err = call(
        "diagnose", tmp_path / "study.toml", "--point", "mirrored-w2-s0"
    )
    assert code == 2
    assert "first: scalestudy run" in err
