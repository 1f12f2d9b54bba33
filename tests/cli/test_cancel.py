import json
import time

import pytest

from scalestudy.launch.queue.base import new_mark
from scalestudy.launch.status import study_status
from scalestudy.store.records import JobRecord
from scalestudy.store.study_folder import StudyFolder


@pytest.fixture
def queued(folder: StudyFolder) -> StudyFolder:
    for number, point in enumerate(folder.points()):
        record = JobRecord(
            job=f"{7 + number}", submission=f"{number}", submitted=time.time(), site="here", script="x.sh"
        )
        folder.new_run(point).write_job(record)
    return folder


BOTH = "echo '7|RUNNING|node1|2026-01-01T00:00:00|None'; echo '8|PENDING||N/A|Resources'"


def test_all_jobs_are_cancelled_in_one_call_and_named(call, slurm, queued: StudyFolder) -> None:
    asked = slurm(squeue=BOTH)
    code, text, _ = call("cancel", queued.path)
    assert code == 0
    assert "Cancelled native-w1-s0 (running, job 7)" in text
    assert "Cancelled native-w2-s0 (queued, job 8)" in text
    assert [line for line in asked.read_text().splitlines() if line.startswith("scancel")] == [
        "scancel --quiet 7 8"
    ]


@pytest.mark.parametrize("point", ["native-w2-s0", "*-w2-*"])
def test_a_point_alone_can_be_cancelled(call, slurm, queued: StudyFolder, point: str) -> None:
    asked = slurm(squeue=BOTH)
    assert call("cancel", queued.path, "--point", point)[0] == 0
    assert "scancel --quiet 8\n" in asked.read_text()


def test_nothing_is_cancelled_that_is_over(call, slurm, queued: StudyFolder) -> None:
    asked = slurm(squeue="echo '7|FAILED||N/A|None'; echo '8|TIMEOUT||N/A|None'")
    code, text, _ = call("cancel", queued.path)
    assert code == 0 and "Nothing to cancel" in text
    assert "scancel" not in asked.read_text()


def test_a_study_of_this_machine_is_refused(call, folder: StudyFolder) -> None:
    code, _, errors = call("cancel", folder.path)
    assert code == 2 and "Ctrl-C" in errors


def test_a_silent_slurm_cancels_nothing_and_says_so(call, slurm, queued: StudyFolder) -> None:
    slurm(squeue="echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    code, _, errors = call("cancel", queued.path)
    assert code == 1 and "Unable to contact" in errors


def test_the_status_shows_nodes_and_what_jobs_wait_for(call, slurm, queued: StudyFolder) -> None:
    slurm(squeue=BOTH)
    code, text, _ = call("status", queued.path)
    assert code == 0
    assert "job 7 on node1" in text
    assert "job 8: waits for free nodes" in text
    assert "1 running, 1 queued" in text


def test_the_status_writes_down_why_a_job_ended(call, slurm, queued: StudyFolder) -> None:
    slurm(squeue="echo '7|TIMEOUT|node1|N/A|None'; echo '8|NODE_FAIL|node2|N/A|None'")
    text = call("status", queued.path)[1]
    assert "the time limit was reached" in text
    assert "a node failed (node2)" in text
    assert study_status(queued).states == {"native-w1-s0": "failed", "native-w2-s0": "failed"}
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
    assert code == 0
    assert "1 failed, 1 queued" in text


def test_watching_ends_when_nothing_is_left_to_wait_for(call, slurm, queued: StudyFolder) -> None:
    slurm(squeue="echo '7|TIMEOUT|node1|N/A|None'; echo '8|OUT_OF_MEMORY|node2|N/A|None'")
    code, text, _ = call("status", queued.path, "--live")
    assert code == 0
    assert "out of memory on node2" in text


def marked(folder: StudyFolder) -> str:
    """A queue with the jobs of both runs and one job of this folder that belongs to no run."""
    return f"[[ $* == *' -u '* ]] && echo '9|PENDING|s-x|{new_mark(folder.path)}' || {{ {BOTH}; }}"


def test_jobs_that_no_run_knows_of_are_cancelled_with_all_others(call, queued: StudyFolder, slurm) -> None:
    asked = slurm(squeue=marked(queued))
    code, text, _ = call("cancel", queued.path)
    assert code == 0 and "Cancelled job 9: " in text
    assert [line for line in asked.read_text().splitlines() if line.startswith("scancel")] == [
        "scancel --quiet 7 8 9"
    ]


def test_status_names_jobs_that_no_run_knows_of(call, queued: StudyFolder, slurm) -> None:
    slurm(squeue=marked(queued))
    _, text, _ = call("status", queued.path)
    assert "Job 9 (pending, s-x) is of this folder" in " ".join(text.split())
    _, text, _ = call("status", queued.path, "--format", "json")
    assert json.loads(text)["orphans"] == [{"id": "9", "queue": "slurm", "name": "s-x", "state": "PENDING"}]


def test_a_job_whose_id_is_not_known_yet_is_not_cancelled_by_no_id(call, folder: StudyFolder, slurm) -> None:
    run = folder.new_run(folder.points()[0])
    run.write_job(JobRecord(job="", submission="a", submitted=time.time(), site="here", script="x.sh"))
    asked = slurm(squeue="")
    assert "Nothing to cancel" in call("cancel", folder.path)[1]
    assert "scancel" not in asked.read_text()
    assert "job not known yet" in call("status", folder.path)[1]
