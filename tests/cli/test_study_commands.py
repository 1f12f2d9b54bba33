"""`scalestudy init`, `status`, `logs` and `cancel`."""

import json
import threading
import time
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from scalestudy.cli.points_table import points_table
from scalestudy.config.expand import expand
from scalestudy.config.parse import load_study
from scalestudy.launch.job_view import JobView
from scalestudy.launch.launcher import PointStatus
from scalestudy.launch.study_status import study_status
from scalestudy.launch.waiting import Waiting
from scalestudy.report.point_lines import PointLine, line_of
from scalestudy.store.records import Failure, JobRecord, Progress, Sign
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder

FAILED = Failure(rank=0, exit_code=1, reason="rank 0 gave up")
EPOCH_3 = Progress(
    phase="training",
    epoch=3,
    epochs=8,
    step=1,
    steps=2,
    throughput=123.4,
    seconds_left=65,
    updated=0,
)


def test_init_writes_a_study_that_can_be_read(call, tmp_path: Path) -> None:
    file = tmp_path / "new" / "study.toml"
    code, text, _ = call("init", file, "--task", "cnn")
    assert code == 0 and f"scalestudy run {file}" in text
    assert load_study(file).task == "cnn"


def test_init_refuses_an_unknown_task_and_writes_nothing(call, tmp_path: Path) -> None:
    for task in ("cnnn", "missing.py"):
        code, _, errors = call("init", tmp_path / "study.toml", "--task", task)
        assert code == 2
        assert "study.toml" not in errors  # which does not exist
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "swept"),
    [("", ()), ("engine = 'torch'\n", ("ddp",)), ("import torch\n", ("ddp",))],
)
def test_init_takes_a_task_file_beside_the_study_with_its_engine(
    call, tmp_path: Path, text, swept
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "mine.py").write_text(text)
    assert call("init", tmp_path / "deep" / "study.toml", "--task", "mine.py")[0] == 0
    study = load_study(tmp_path / "deep" / "study.toml")
    assert study.task == str((tmp_path / "deep" / "mine.py").resolve())
    assert set(swept) <= set(study.sweep.strategy)


def test_status_shows_the_state_of_every_point_from_the_files_alone(
    call, folder
) -> None:
    running, failed = folder.points()
    folder.new_run(failed).write_failure(FAILED)
    folder.new_run(running).write_progress(EPOCH_3)
    code, text, _ = call("status", folder.path)
    assert code == 0
    assert "2 points: 1 failed, 1 running" in text
    for part in (
        "native-w1-s0",
        "running 3/8",
        "123",
        "1:05 min",
        "native-w2-s0",
        "rank 0 gave up",
    ):
        assert part in text


def _write_again(run: RunFolder, **changed: str) -> None:
    result = run.result().model_copy(update=changed)
    run.write_checksums(result)
    run.write_result(result)


def test_what_is_special_of_a_finished_run_is_shown(
    call, study, folder, launcher
) -> None:
    assert call("run", study, "--no-report")[0] == 0
    (first,), (second,) = (folder.runs(point.name) for point in folder.points())
    missing = "OSError: [Errno 28] No space left on device"
    _write_again(first, model_missing=missing)
    _write_again(second, oversubscribed="cores shared with another study")
    code, text, _ = call("status", folder.path)
    assert code == 0
    assert "2 points: 2 done" in text and text.count("done (disturbed)") == 1
    assert f"{folder.points()[0].name}: its model is missing: {missing}" in text
    assert "(disturbed)" in line_of(study_status(folder).points[1]).line("[2/2]")
    _, text, _ = call("status", folder.path, "--format", "json")
    results = {point["name"]: point["result"] for point in json.loads(text)["points"]}
    assert [result["model_missing"] for result in results.values()] == [missing, None]


def test_status_shows_how_old_the_last_sign_is_and_estimates_nothing_while_nothing_moves(
    call, folder
) -> None:
    run, now = folder.new_run(folder.points()[0]), time.time()
    run.write_progress(EPOCH_3.model_copy(update={"restarts": 2, "updated": now}))
    sign = Sign(
        rank=0,
        host="here",
        pid=1,
        phase="step",
        epoch=3,
        step=1,
        marks=9,
        moved=now,
        due=120,
        written=now,
    )
    run.write_sign(sign)
    moving = call("status", folder.path)[1]
    for part in ("last sign", " now", "123", "1:05 min", "running 3/8, restart 2"):
        assert part in moving
    run.write_sign(sign.model_copy(update={"rank": 1, "moved": now - 101}))
    still = call("status", folder.path)[1]
    assert (
        "1:40 min ago" in still
        and "no progress of rank 1 on here for 1:40 min" in still
    )
    assert "123" not in still and "1:05 min" not in still


def text_of(rows: list[PointLine], height: int) -> str:
    console = Console(file=StringIO(), width=140)
    console.print(points_table(rows, height))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_a_long_table_shows_the_part_that_runs() -> None:
    rows = [
        PointLine(f"p{i}-", "done" if i < 50 else "running" if i == 50 else "missing")
        for i in range(100)
    ]
    text = text_of(rows, 9)
    assert "p50-" in text and "p0-" not in text and "p99-" not in text
    assert "100 points: 50 done, 1 running, 49 missing" in text


def test_every_reason_is_shown_where_there_is_room_and_else_how_many_are_not() -> None:
    rows = [PointLine(f"p{i}-", "failed", reason=f"reason {i}.") for i in range(8)]
    assert all(f"p{i}-: reason {i}." in text_of(rows, 16) for i in range(8))
    text = text_of(rows, 9)
    assert (
        text.count("reason ") == 3
        and "5 more reasons" in text
        and "--state failed" in text
    )


@pytest.fixture
def many(study: Path) -> StudyFolder:
    """The folder of a study of 1,000 points, two of which failed for the same reason."""
    seeds = ", ".join(map(str, range(500)))
    text = f'task = "cnn"\n[train]\nbatch_size = 1\n[sweep]\nworkers = [1, 2]\nseed = [{seeds}]\n'
    study.write_text(text)
    loaded = load_study(study)
    points = expand(loaded, gpus=0, cores=8)
    folder = StudyFolder.create_or_open(
        study.parent / "studies" / "study", loaded, points, text
    )
    for point in points[:2]:
        folder.new_run(point).write_failure(
            Failure(rank=0, exit_code=1, reason="out of memory")
        )
    return folder


def test_a_thousand_points_are_not_a_thousand_lines_and_as_json_are_for_programs(
    call, many
) -> None:
    code, text, _ = call("status", many.path)
    assert code == 0 and len(text.splitlines()) < 12
    assert "native, 1 worker " in text and "native, 2 workers " in text
    assert "2 points, native-w1-s0 first: out of memory" in text
    assert "1000 points: 2 failed, 998 missing" in text
    code, text, _ = call("status", many.path, "--format", "json", "--state", "failed")
    record = json.loads(text)
    assert code == 0 and record["schema"] == 1
    assert [item["reason"] for item in record["points"]] == ["out of memory"] * 2
    assert record["states"] == {"failed": 2}


@pytest.mark.slow
def test_what_is_asked_for_is_shown_point_by_point_and_what_there_is_not_is_refused(
    call, many
) -> None:
    _, text, _ = call("status", many.path, "--state", "failed")
    assert "native-w1-s1" in text and "2 points: 2 failed" in text
    _, text, _ = call("status", many.path, "--point", "native-w2-s49*")
    assert "native-w2-s499" in text and "11 points: 11 missing" in text
    assert len(call("status", many.path, "--all")[1].splitlines()) > 1000
    for option, value in (("--state", "lost"), ("--point", "horovod*")):
        code, _, errors = call("status", many.path, option, value)
        assert code == 2 and value in errors


@pytest.mark.parametrize(
    ("start", "shown"), [("", False), ("2030-01-01T12:00:00", True)]
)
def test_a_queued_job_is_expected_when_its_queue_says(folder, start, shown) -> None:
    job = JobRecord(job="7", submitted=1.0, site="here", script="x.sh")
    view = JobView(job="7", state="PENDING", reason="Priority", start=start)
    line = line_of(
        PointStatus(
            folder.points()[0],
            "queued",
            job=job,
            view=view,
            waiting=Waiting("will start", "words", "next {jobs}"),
        )
    )
    assert ("expected" in line.job) == shown and "words" in line.job


def run_with_logs(folder: StudyFolder, number: int = 0, **logs: str) -> RunFolder:
    run = folder.new_run(folder.points()[number])
    (run.path / "logs").mkdir()
    for name, text in logs.items():
        (run.path / "logs" / f"{name.replace('_', '-')}.log").write_text(text)
    return run


def logged(call, folder: StudyFolder, *options: str) -> list[str]:
    """The lines of `scalestudy logs` after the first, which names their folder."""
    code, text, _ = call("logs", folder.path, *options)
    assert code == 0
    first, *lines = text.splitlines()
    assert first.endswith("/logs")
    return lines


def test_each_line_has_its_rank_before_it_or_is_of_one_rank_or_the_job(
    call, folder: StudyFolder
) -> None:
    run = run_with_logs(
        folder, rank_0="one\ntwo\n", rank_10="ten\n", rank_2="[b]\n", job="srun says\n"
    )
    assert call("logs", folder.path)[1].splitlines()[0] == str(run.path / "logs")
    assert logged(call, folder) == ["[0] one", "[0] two", "[2] [b]", "[10] ten"]
    assert logged(call, folder, "--rank", "2") == ["[2] [b]"]
    assert logged(call, folder, "--job") == ["srun says"]


def test_as_long_as_no_rank_has_said_anything_the_jobs_log_is_shown(
    call, folder: StudyFolder
) -> None:
    run = run_with_logs(folder, job="srun: error: no such partition\n")
    shown = ["[job] srun: error: no such partition"]
    assert logged(call, folder) == shown
    run.log(0).touch()
    assert logged(call, folder) == shown
    run.log(0).write_text("zero\n")
    assert logged(call, folder) == ["[0] zero"]


def test_the_last_lines_are_shown_and_only_whole_ones(
    call, folder: StudyFolder
) -> None:
    run_with_logs(
        folder, rank_0="".join(f"line {number}\n" for number in range(50)) + "half"
    )
    assert logged(call, folder) == [f"[0] line {number}" for number in range(30, 50)]


def test_the_newest_run_of_the_point_that_is_named_or_else_runs_is_shown(
    call, folder: StudyFolder
) -> None:
    run_with_logs(folder, 0, rank_0="first attempt\n")
    run_with_logs(folder, 0, rank_0="second attempt\n")
    run_with_logs(folder, 1, rank_0="over\n").write_failure(FAILED)
    assert logged(call, folder, "--point", "native-w2-s0") == ["[0] over"]
    assert (
        logged(call, folder)
        == logged(call, folder, "--point", "native-w1-s0")
        == ["[0] second attempt"]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--point", "native-w3-s0"], "native-w1-s0"),
        (["--point", "native-w2-s0"], "none yet"),
        (["--rank", "7"], "a log of rank 7"),
        (["--job"], "a job.log"),
    ],
)
def test_a_log_that_there_is_not_is_refused(
    call, folder: StudyFolder, arguments, message: str
) -> None:
    run_with_logs(folder, rank_0="zero\n")
    code, _, errors = call("logs", folder.path, *arguments)
    assert code == 2 and message in errors


def test_following_goes_on_until_the_run_has_ended(call, folder: StudyFolder) -> None:
    run = run_with_logs(folder, rank_0="before\nhal")

    def work() -> None:
        with open(run.log(0), "a") as log:
            log.write("f\nlast\n")
        run.write_failure(FAILED)

    worker = threading.Thread(target=work)
    worker.start()
    assert logged(call, folder, "--follow") == ["[0] before", "[0] half", "[0] last"]
    worker.join()


@pytest.fixture
def queued(folder: StudyFolder) -> StudyFolder:
    for number, point in enumerate(folder.points()):
        record = JobRecord(
            job=f"{7 + number}",
            submission=f"{number}",
            submitted=time.time(),
            site="here",
            script="x.sh",
        )
        folder.new_run(point).write_job(record)
    return folder


BOTH = (
    "echo '7|RUNNING|node1|2026-01-01T00:00:00|None'; echo '8|PENDING||N/A|Resources'"
)


def scancels(asked: Path) -> list[str]:
    return [
        line for line in asked.read_text().splitlines() if line.startswith("scancel")
    ]


def test_all_jobs_are_cancelled_in_one_call_and_named(
    call, slurm, queued: StudyFolder
) -> None:
    asked = slurm(squeue=BOTH)
    code, text, _ = call("cancel", queued.path)
    assert code == 0
    assert "Cancelled native-w1-s0 (running, job 7)" in text
    assert "Cancelled native-w2-s0 (queued, job 8)" in text
    assert scancels(asked) == ["scancel --quiet 7 8"]


@pytest.mark.parametrize("point", ["native-w2-s0", "*-w2-*"])
def test_a_point_alone_can_be_cancelled(
    call, slurm, queued: StudyFolder, point: str
) -> None:
    asked = slurm(squeue=BOTH)
    assert call("cancel", queued.path, "--point", point)[0] == 0
    assert scancels(asked) == ["scancel --quiet 8"]


def test_nothing_is_cancelled_that_is_over_or_whose_id_is_not_known_yet(
    call, slurm, queued
) -> None:
    asked = slurm(squeue="echo '7|FAILED||N/A|None'; echo '8|TIMEOUT||N/A|None'")
    for _ in range(2):
        code, text, _ = call("cancel", queued.path)
        assert code == 0 and "Nothing to cancel" in text
        assert scancels(asked) == []
        run = queued.new_run(queued.points()[0])
        run.write_job(
            JobRecord(
                job="",
                submission="a",
                submitted=time.time(),
                site="here",
                script="x.sh",
            )
        )
    assert "job not known yet" in call("status", queued.path)[1]


def test_a_silent_slurm_cancels_nothing_and_says_so(
    call, slurm, queued: StudyFolder
) -> None:
    slurm(
        squeue="echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1"
    )
    code, _, errors = call("cancel", queued.path)
    assert code == 1 and "Unable to contact" in errors


def test_cancelling_a_study_of_this_machine_is_refused(
    call, folder: StudyFolder
) -> None:
    code, _, errors = call("cancel", folder.path)
    assert code == 2 and "Ctrl-C" in errors


def test_the_status_shows_nodes_and_what_jobs_wait_for(call, slurm, queued) -> None:
    slurm(squeue=BOTH)
    code, text, _ = call("status", queued.path)
    assert code == 0
    assert "job 7 on node1" in text
    assert "job 8: waits for free nodes" in text
    assert "1 running, 1 queued" in text


def test_the_status_writes_down_why_a_job_ended_and_watching_ends_then(
    call, slurm, queued
) -> None:
    slurm(squeue="echo '7|TIMEOUT|node1|N/A|None'; echo '8|NODE_FAIL|node2|N/A|None'")
    code, text, _ = call("status", queued.path, "--live")
    assert code == 0
    assert "the time limit was reached" in text
    assert "a node failed (node2)" in text
    assert study_status(queued).states == {
        "native-w1-s0": "failed",
        "native-w2-s0": "failed",
    }
    failure = queued.runs("native-w1-s0")[0].failure()
    assert failure is not None and failure.job_state == "TIMEOUT"


def test_the_status_of_a_folder_that_is_anothers_is_shown_all_the_same(
    call, slurm, queued: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("scalestudy.store.record_file.write_atomically", refused)
    slurm(squeue="echo '7|TIMEOUT|node1|N/A|None'; echo '8|PENDING||N/A|Priority'")
    code, text, _ = call("status", queued.path)
    assert code == 0 and "1 failed, 1 queued" in text
