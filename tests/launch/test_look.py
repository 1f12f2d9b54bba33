"""One look at a study: what is known is not read again, and what a queue alone knew is written down."""

import time
from pathlib import Path

import pytest

from made_result import result_of
from scalestudy.errors import UserError
from scalestudy.launch.base import launcher, queues
from scalestudy.launch.queue.base import JobView
from scalestudy.launch.slurm import SLURM
from scalestudy.launch.status import look
from scalestudy.study.records import STILL_SAVING, Failure, JobRecord, Progress
from scalestudy.study.store import StudyFolder

FAILURE = Failure(rank=0, exit_code=1, reason="it failed")


def test_only_the_points_that_may_have_changed_are_read_again(folder: StudyFolder) -> None:
    first, second = folder.points()[:2]
    before = look(folder)
    folder.new_run(first).write_failure(FAILURE)
    folder.new_run(second).write_failure(FAILURE)
    after = look(folder, known=before, names=[first.name])
    assert after.of(first.name).state == "failed" and after.of(second.name).state == "missing"
    assert look(folder, known=after).of(second.name).state == "failed"


def test_a_run_that_is_at_work_decides_though_a_newer_one_failed(folder: StudyFolder) -> None:
    point = folder.points()[0]
    running = folder.new_run(point)
    folder.new_run(point).write_failure(FAILURE)
    found = look(folder).of(point.name)
    assert (found.state, found.run) == ("running", running)


def test_a_queue_that_is_asked_writes_the_end_down_for_whoever_has_none_to_ask(
    folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = folder.new_run(folder.points()[0])
    run.write_job(JobRecord(job="7", submitted=time.time(), site="here", script="x.sh"))
    (run.path / ".secret").touch()
    view = JobView(job="7", state="NODE_FAIL", nodes="n1")
    monkeypatch.setattr(type(SLURM.queue), "ask", lambda self, jobs, cluster="": {"7": view})
    found = look(folder).of("native-w1-s0")
    assert (found.state, found.reason) == ("failed", "a node failed (n1)")
    assert run.failure() == found.failure
    assert not (run.path / ".secret").exists()


def test_a_job_of_a_launcher_that_is_not_here_is_told_by_its_files(folder: StudyFolder) -> None:
    run = folder.new_run(folder.points()[0])
    run.write_job(JobRecord(queue="elsewhere", job="7", submitted=time.time(), site="here", script="x.sh"))
    assert look(folder).of("native-w1-s0").state == "queued"
    (run.path / "exit").write_text("3\n")
    assert look(folder).of("native-w1-s0").state == "failed"


def test_launchers_are_found_by_name(tmp_path: Path) -> None:
    assert queues() == ["slurm", "pbs"]
    assert not launcher("local").outlives
    with pytest.raises(UserError, match="local, slurm, pbs"):
        launcher("cron")


def test_a_result_is_read_again_until_its_model_is_saved(folder: StudyFolder) -> None:
    point = folder.points()[0]
    run = folder.new_run(point)
    whole = result_of(run.point())
    run.write_result(whole.model_copy(update={"model_missing": STILL_SAVING}))
    before = look(folder)
    assert before.of(point.name).state == "done" and before.of(point.name).result.saving
    run.write_result(whole)
    assert look(folder, known=before).of(point.name).result.model_missing is None


def test_a_job_that_still_saves_its_model_is_running_while_it_gives_signs(folder: StudyFolder) -> None:
    run = folder.new_run(folder.points()[0])
    run.write_job(JobRecord(queue="elsewhere", job="7", submitted=time.time(), site="here", script="x.sh"))
    run.write_result(result_of(run.point()).model_copy(update={"model_missing": STILL_SAVING}))
    progress = Progress(phase="saving", epoch=2, epochs=2, step=1, steps=1, updated=time.time())
    run.write_progress(progress)
    assert look(folder).of("native-w1-s0").state == "running"
    run.write_progress(progress.model_copy(update={"updated": time.time() - 3600}))
    assert look(folder).of("native-w1-s0").state == "done"
