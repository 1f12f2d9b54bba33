"""The live view of synthetic studies as they change."""

import os
import time
from io import StringIO

import pytest
from rich.console import Console

from scalestudy.cli.points_table import overview_table
from scalestudy.config.expand import expand
from scalestudy.config.parse import load_study
from scalestudy.features import live_status
from scalestudy.features.live_status import last_line, picture
from scalestudy.launch.study_status import study_status
from scalestudy.report.live_page import LivePage
from scalestudy.store.records import Progress
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder
from synthetic_result import result_of

TEXT = 'task = "cnn"\n[train]\nbatch_size = 32\n[sweep]\nworkers = [1, 2]\nseed = 0\n'


@pytest.fixture
def folder(write_study) -> StudyFolder:
    """The folder of a study of two points, without runs."""
    study = write_study(TEXT)
    loaded = load_study(study)
    points = expand(loaded, gpus=0, cores=8)
    return StudyFolder.create_or_open(
        study.parent / "studies" / "study", loaded, points, TEXT
    )


def progress(**changes: object) -> Progress:
    done = {
        "phase": "training",
        "epoch": 3,
        "epochs": 4,
        "step": 1,
        "steps": 2,
        "quality": 0.8125,
    }
    return Progress(
        **{
            **done,
            "throughput": 1234.0,
            "seconds_left": 90.0,
            "updated": time.time(),
            **changes,
        }
    )


def shown(folder: StudyFolder, width: int = 120, height: int = 30) -> str:
    console = Console(file=StringIO(), width=width, height=height, force_terminal=False)
    console.print(picture(folder, study_status(folder), overview_table, height))
    return console.file.getvalue()  # type: ignore[attr-defined]


def start(folder: StudyFolder, place: int = 0) -> RunFolder:
    run = folder.new_run(folder.points()[place])
    run.write_progress(progress())
    return run


def test_a_run_under_way_shows_its_epoch_rate_quality_utilisation_and_time_left(folder):
    run = start(folder)
    run.write_progress(progress(cpu_percent=96.0, gpu_percent=41.0))
    run.log(0).write_text("first\nepoch 1 \x1b[31mdone\n")
    text = shown(folder)
    for part in ("3/4", "1,234", "0.8125", "1:30 min", "CPU 96 %, GPU 41 %", "done"):
        assert part in text
    assert "\x1b" not in text


def test_the_end_and_the_cost_are_told_with_their_range(folder):
    first, _ = folder.points()
    run = folder.new_run(first)
    run.write_result(result_of(first).model_copy(update={"wall_seconds": 3600.0}))
    text = shown(folder)
    assert (
        "not run yet: 42:26 min (30:00 min … 1:00:00 h) · 1 of about 2.41 worker-hours"
        in text
    )


def test_hundreds_of_points_fit_the_terminal_with_what_runs_among_them(folder):
    point = folder.points()[0]
    many = [
        point.model_copy(
            update={"name": f"native-w1-s{seed}-batch_size=64", "seed": seed}
        )
        for seed in range(300)
    ]
    wide = StudyFolder.create_or_open(
        folder.path.parent / "many", folder.study, many, ""
    )
    wide.new_run(many[150]).write_progress(progress())
    text = shown(wide, 100, 24)
    assert len(text.splitlines()) <= 24 and "3/4" in text


def test_a_pipe_in_place_of_a_log_is_passed_over(folder):
    run = start(folder)
    os.mkfifo(run.log(0))
    assert last_line(run) == ""


def test_in_a_terminal_it_follows_and_ends_with_the_study(folder, monkeypatch):
    run = start(folder)
    run.log(0).write_text("a word of rank 0\n")
    monkeypatch.setattr(
        live_status.time,
        "sleep",
        lambda seconds: run.write_result(result_of(run.point())),
    )
    console = Console(
        file=StringIO(), width=100, height=30, force_terminal=True, no_color=True
    )
    live_status.show(folder.path, console, overview_table, LivePage(folder.path))
    text = console.file.getvalue()
    assert (
        text.index("1 running")
        < text.index("[0] a word of rank 0")
        < text.index("1 done, 1 missing")
    )


def test_at_80_by_24_names_stay_whole_the_rest_is_counted_and_noise_of_tensorflow_is_passed_over(
    folder,
):
    point = folder.points()[0]
    many = [
        point.model_copy(
            update={"name": f"multiworker-w16-s{seed}-batch_size=64", "seed": seed}
        )
        for seed in range(30)
    ]
    long = StudyFolder.create_or_open(
        folder.path.parent / "long", folder.study, many, ""
    )
    for place in range(12):
        run = start(long, place)
        run.log(0).write_text(
            "epoch 3 of 4\n2026-11-28 22:01:02.123456: I tensorflow/core/util/port.cc:153] oneDNN is on.\n"
            "To enable the following instructions: AVX2 FMA, rebuild TensorFlow.\n"
        )
    text = shown(long, 80, 24)
    lines = text.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    assert "multiworker-w16-s0-batch_size=64" in text and "running 3/4" in text
    assert "more points." in text and "30 points: 12 running, 18 missing" in text
    assert "epoch 3 of 4" in text and "oneDNN" not in text and "To enable" not in text
