import json
import time
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from scalestudy.cli.points_table import PointLine, line_of, points_table
from scalestudy.config.expand import expand
from scalestudy.config.parse import load_study
from scalestudy.launch.base import PointStatus
from scalestudy.launch.queue.base import JobView
from scalestudy.launch.status import study_status
from scalestudy.store.records import Failure, JobRecord, Progress, Sign
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder


def text_of(rows: list[PointLine], height: int = 100, width: int = 140) -> str:
    console = Console(file=StringIO(), width=width)
    console.print(points_table(rows, height))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_status_shows_the_state_of_every_point_from_the_files_alone(call, folder) -> None:
    running, failed = folder.points()
    folder.new_run(failed).write_failure(Failure(rank=1, exit_code=1, reason="rank 1 gave up"))
    run = folder.new_run(running)
    run.write_progress(
        Progress(
            phase="training", epoch=3, epochs=8, step=1, steps=2, throughput=123.4, seconds_left=65, updated=0
        )
    )
    code, text, _ = call("status", folder.path)
    assert code == 0
    assert "2 points: 1 failed, 1 running" in text
    for part in ("native-w1-s0", "running 3/8", "123", "1:05 min", "native-w2-s0", "rank 1 gave up"):
        assert part in text


def _write_again(run: RunFolder, **changed: str) -> None:
    result = run.result().model_copy(update=changed)
    run.write_checksums(result)
    run.write_result(result)


def test_a_run_that_is_done_without_its_model_says_why(call, study, folder, launcher) -> None:
    assert call("run", study, "--no-report")[0] == 0
    (run,) = folder.runs(folder.points()[0].name)
    missing = "OSError: [Errno 28] No space left on device"
    _write_again(run, model_missing=missing)
    code, text, _ = call("status", folder.path)
    assert code == 0
    assert "2 points: 2 done" in text
    assert f"{folder.points()[0].name}: its model is missing: {missing}" in text
    _, text, _ = call("status", folder.path, "--format", "json")
    results = {point["name"]: point["result"] for point in json.loads(text)["points"]}
    assert [result["model_missing"] for result in results.values()] == [missing, None]


def test_a_run_that_shared_its_cores_is_marked_where_it_is_done(call, study, folder, launcher) -> None:
    assert call("run", study, "--no-report")[0] == 0
    (run,) = folder.runs(folder.points()[0].name)
    _write_again(run, oversubscribed="cores shared with another study")
    _, text, _ = call("status", folder.path)
    assert text.count("oversubscribed") == 1
    assert "2 points: 2 done" in text
    (status, _) = study_status(folder).points
    assert "oversubscribed" in line_of(status).line("[1/2]")


def test_status_shows_how_old_the_last_sign_is_and_estimates_nothing_while_nothing_moves(
    call, folder
) -> None:
    point = folder.points()[0]
    run, now = folder.new_run(point), time.time()
    run.write_progress(
        Progress(
            phase="training",
            epoch=3,
            epochs=8,
            step=1,
            steps=2,
            throughput=123.4,
            seconds_left=65,
            restarts=2,
            updated=now,
        )
    )
    sign = Sign(
        rank=0, host="here", pid=1, phase="step", epoch=3, step=1, marks=9, moved=now, due=120, written=now
    )
    run.write_sign(sign)
    moving = call("status", folder.path)[1]
    for part in ("last sign", " now", "123", "1:05 min", "running 3/8, restart 2"):
        assert part in moving
    run.write_sign(sign.model_copy(update={"rank": 1, "moved": now - 101}))
    still = call("status", folder.path)[1]
    assert "1:40 min ago" in still and "no progress of rank 1 on here for 1:40 min" in still
    assert "123" not in still and "1:05 min" not in still


def test_a_long_table_shows_the_part_that_runs() -> None:
    rows = [
        PointLine(f"p{i}-", "done" if i < 50 else "running" if i == 50 else "missing") for i in range(100)
    ]
    text = text_of(rows, 9)
    assert "p50-" in text
    assert "p0-" not in text
    assert "p99-" not in text
    assert "100 points: 50 done, 1 running, 49 missing" in text


def test_every_reason_is_shown_where_there_is_room_and_else_how_many_are_not() -> None:
    rows = [PointLine(f"p{i}-", "failed", reason=f"reason {i}.") for i in range(8)]
    assert all(f"p{i}-: reason {i}." in text_of(rows, 16) for i in range(8))
    text = text_of(rows, 9)
    assert text.count("reason ") == 3 and "5 more reasons" in text and "--state failed" in text


MANY = 'task = "cnn"\n[train]\nbatch_size = 1\n[sweep]\nworkers = [1, 2]\nseed = [{}]\n'


@pytest.fixture
def many(study: Path) -> StudyFolder:
    """The folder of a study of 1,000 points, two of which failed for the same reason."""
    text = MANY.format(", ".join(map(str, range(500))))
    study.write_text(text)
    loaded = load_study(study)
    points = expand(loaded, gpus=0, cores=8)
    folder = StudyFolder.create_or_open(study.parent / "studies" / "study", loaded, points, text)
    for point in points[:2]:
        folder.new_run(point).write_failure(Failure(rank=0, exit_code=1, reason="out of memory"))
    return folder


def test_a_thousand_points_are_not_a_thousand_lines(call, many) -> None:
    code, text, _ = call("status", many.path)
    assert code == 0
    assert len(text.splitlines()) < 12
    assert "native, 1 worker " in text and "native, 2 workers " in text
    assert "2 points, native-w1-s0 first: out of memory" in text
    assert "1000 points: 2 failed, 998 missing" in text


@pytest.mark.slow
def test_what_is_asked_for_is_shown_point_by_point(call, many) -> None:
    _, text, _ = call("status", many.path, "--state", "failed")
    assert "native-w1-s1" in text and "2 points: 2 failed" in text
    _, text, _ = call("status", many.path, "--point", "native-w2-s49*")
    assert "native-w2-s499" in text and "11 points: 11 missing" in text
    _, text, _ = call("status", many.path, "--by", "workers")
    assert "1 worker " in text and "native" not in text.partition("native-w1-s0")[0]
    assert len(call("status", many.path, "--all")[1].splitlines()) > 1000


def test_status_as_json_is_for_programs(call, many) -> None:
    code, text, _ = call("status", many.path, "--format", "json", "--state", "failed")
    record = json.loads(text)
    assert code == 0 and record["schema"] == 1
    assert [item["reason"] for item in record["points"]] == ["out of memory"] * 2
    assert record["states"] == {"failed": 2}


@pytest.mark.slow
def test_what_cannot_be_chosen_is_refused(call, many) -> None:
    for option, value in (("--state", "lost"), ("--point", "horovod*"), ("--by", "colour")):
        code, _, errors = call("status", many.path, option, value)
        assert code == 2 and value in errors


def test_a_held_job_is_not_expected_at_any_time(folder) -> None:
    job = JobRecord(job="7", submitted=1.0, site="here", script="x.sh")
    start = "2030-01-01T12:00:00"
    for reason, shown in (("JobHeldUser", False), ("Priority", True)):
        view = JobView(job="7", state="PENDING", reason=reason, start=start)
        line = line_of(PointStatus(folder.points()[0], "queued", job=job, view=view, waits="words"))
        assert ("expected" in line.job) == shown and "words" in line.job
