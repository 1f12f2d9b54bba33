"""Which point is diagnosed, how long that takes, and what is refused before anything is started."""

from dataclasses import replace

import pytest

from made import run
from made_diagnosis import point
from scalestudy.analysis.findings import analyse
from scalestudy.app.listener import Listener
from scalestudy.features.diagnose.plan import TURNS, WARM, DiagnosisPlan, choose_point, named_point, plan
from scalestudy.launch.base import Overview, PointStatus
from scalestudy.study.store import StudyFolder
from scalestudy.util.errors import UserError


def points(*counts, seeds=(0,)):
    return [
        point(workers=count, seed=seed, name=f"horovod-w{count}-s{seed}")
        for count in counts
        for seed in seeds
    ]


def findings(throughputs):
    """What a study has measured, by workers."""
    runs = [
        run("horovod", workers, seed, throughput=speed + 0.1 * seed, samples=200_000)
        for workers, speed in throughputs.items()
        for seed in (0, 1)
    ]
    return analyse("made", runs)


def test_the_next_larger_count_than_is_advised_says_what_more_would_cost():
    measured = findings({1: 100.0, 2: 195.0, 4: 380.0, 8: 400.0, 16: 410.0})
    assert measured.advice.choice.workers == 4
    found, why = choose_point(points(1, 2, 4, 8, 16, seeds=(0, 1)), measured)
    assert (found.workers, found.seed) == (8, 0)
    assert why == "the next larger count than is advised (horovod on 4 workers)"


def test_beyond_the_advised_count_the_largest_measured_one_is_taken():
    found, why = choose_point(points(1, 2, 4), findings({1: 100.0, 2: 195.0, 4: 380.0}))
    assert found.workers == 4
    assert why == "the largest that the study has measured"


def test_without_runs_the_largest_point_is_taken():
    found, why = choose_point(points(1, 2, 4), None)
    assert found.workers == 4
    assert why == "the largest of the study"


def test_points_whose_times_say_nothing_are_not_chosen():
    crowded = point(workers=8, name="crowded").on(oversubscribed="8 workers on 2 cores")
    found, _ = choose_point([*points(1, 2), crowded], None)
    assert found.workers == 2
    with pytest.raises(UserError, match="several workers"):
        choose_point([*points(1), crowded], None)


def test_a_named_point_is_taken_and_an_unknown_one_told_which_there_are():
    assert named_point(points(1, 2), "horovod-w2-s0").workers == 2
    with pytest.raises(UserError, match="horovod-w2-s0"):
        named_point(points(1, 2), "horovod-w3-s0")


def test_one_worker_loses_nothing_and_virtual_workers_no_time():
    with pytest.raises(UserError, match="efficiency is 1"):
        named_point(points(1, 2), "horovod-w1-s0")
    virtual = point(name="virtual-w2-s0", strategy="virtual").on(implementation="virtual")
    with pytest.raises(UserError, match="one after another"):
        named_point([virtual], "virtual-w2-s0")


def study_of(file):
    from scalestudy.app.task_data import with_task_data
    from scalestudy.launch.local.launcher import points_here
    from scalestudy.study.parse import load_study

    study, _ = with_task_data(load_study(file), Listener())
    return study, points_here(study)


def test_without_runs_only_the_least_duration_is_known_and_a_dry_run_writes_nothing(write_study):
    planned = plan(write_study(), "mirrored-w2-s0", Listener(), dry_run=True)
    assert (planned.point.workers, planned.why) == (2, "")
    assert planned.expected_seconds(3, 2.0) is None
    assert "at least 42 s" in planned.duration(3, 2.0)
    assert not planned.target.exists()


def test_with_runs_the_duration_follows_from_their_phases_and_throughput(tmp_path):
    measured = findings({2: 640.0})
    key = measured.rows[0].key
    # 64 samples at 640 a second: a step of 0.1 s, twice as long for one worker.
    phases = {"start-up": 1.0, "framework": 4.0, "join": 1.0, "build": 1.0, "compile": 2.0, "training": 50.0}
    measured = replace(measured, phases={key: phases})
    planned = DiagnosisPlan(tmp_path, point(), measured)
    starts = 2 * (6.0 + 2 * 3.0)
    of_two = 5 * TURNS * (1.0 + WARM * 0.1)
    of_one = 2 * TURNS * (1.0 + WARM * 0.2)
    assert planned.expected_seconds(4, 3.0) == pytest.approx(4 * (starts + of_two + of_one), rel=1e-3)


def test_a_folder_without_a_run_is_told_to_run_first(write_study):
    file = write_study()
    folder = StudyFolder.create_or_open(file.parent / "out", *study_of(file), file.read_text())
    with pytest.raises(UserError, match="a run that reads what mirrored-w2-s0 reads"):
        plan(folder.path, None, Listener())


def test_a_queues_point_is_diagnosed_inside_a_job_only(write_study, monkeypatch):
    file = write_study('on = "slurm"', "my study.toml")
    with pytest.raises(UserError, match=r"scalestudy submit '.*my study\.toml'"):
        plan(file, None, Listener())
    study, points = study_of(file)
    points = [point.on(launch=point.launch.model_copy(update={"on": "slurm"})) for point in points]
    folder = StudyFolder.create_or_open(file.parent / "out", study, points, file.read_text())
    missing = Overview([PointStatus(point, "missing") for point in folder.points()])
    monkeypatch.setattr("scalestudy.app.survey.study_status", lambda folder, **_: missing)
    with pytest.raises(UserError, match="inside that job"):
        plan(folder.path, None, Listener())
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setattr("scalestudy.hardware.devices.gpus", lambda: 0)
    monkeypatch.setattr("scalestudy.hardware.cores.granted", lambda: [0])
    with pytest.raises(UserError, match="a node that holds all 2 workers"):
        plan(folder.path, None, Listener())
