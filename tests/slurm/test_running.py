"""A running job, watched and ended from outside."""

import json

import pytest

from studies import SLOW_TASK, job_of, newest_run, results_of, shared_task, write_site, write_study

POINT = "native-w1-s0"


@pytest.fixture(scope="module")
def study(cluster):
    """A run that has begun to train and continues for minutes."""
    folder = cluster.folder("running")
    write_site(folder)
    task = shared_task(cluster, "slow-words", f'{SLOW_TASK}\nprint("from the task", flush=True)\n')
    study = write_study(cluster, folder, task=task, epochs=500)
    cluster.scalestudy("submit", study)
    cluster.wait_for((newest_run(study, POINT) / "epochs.jsonl").exists, "the first epoch")
    return study


def test_status_tells_how_far_it_is(cluster, study):
    out = _status(cluster, study)
    assert "running" in out
    assert "/500" in out
    assert "node" in out


def test_status_answers_from_files_while_slurm_does_not(cluster, study):
    cluster.stop_controller()
    try:
        out = cluster.wait_for(lambda: _if_silent(_status(cluster, study)), "a question without an answer")
    finally:
        cluster.start_controller()
    assert "running" in out


def test_logs_shows_what_it_has_written(cluster, study):
    assert "[0] from the task" in cluster.scalestudy("logs", results_of(study), "--rank", 0).stdout


def test_what_slurm_is_told_to_cancel_is_shown_as_cancelled(cluster, study):
    cluster.run("scancel", job_of(study, POINT))
    out = cluster.wait_for(
        lambda: _if_over(_status(cluster, study)),
        "the end of the job",
    )
    assert "cancelled" in out
    failure = json.loads((newest_run(study, POINT) / "failure.json").read_text())
    assert failure["job_state"] == "CANCELLED"


def _status(cluster, study):
    """Return what `status` prints; it must answer within a time limit, whatever Slurm does."""
    return " ".join(cluster.scalestudy("status", results_of(study), timeout=180).stdout.split())


def _if_over(shown):
    return shown if "1 cancelled" in shown else ""


def _if_silent(shown):
    return shown if "does not answer" in shown else ""
