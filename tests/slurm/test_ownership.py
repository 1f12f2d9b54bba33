"""A run folder belongs to one job, also after removals, lost answers and submissions by hand."""

import shutil
import stat

import pytest

from cluster_study import ClusterStudy
from scalestudy.store.study_folder import StudyFolder


@pytest.fixture(scope="module")
def prepared(cluster):
    cluster.scalestudy("data", "prepare", "digits", "--cache", cluster.root / "cache")
    return cluster


def test_a_study_that_was_removed_and_submitted_again_meets_none_of_its_old_jobs(
    prepared,
):
    here = ClusterStudy(prepared, "removed")
    here.plan(all={"hold": True})
    here.site(account="research", directives=["--nodelist=node1"])
    here("submit")
    here.wait_for_work("native-w1-s0")
    running, waiting = here.job("native-w1-s0"), here.job("native-w1-s1")
    here.cluster.wait_for(
        lambda: here.cluster.states(waiting) == ["PENDING"], "one of each"
    )
    here.cluster.run("scontrol", "hold", waiting)
    while here.results.exists():  # the worker still writes into it
        shutil.rmtree(here.results, ignore_errors=True)
    here.site(
        account="research", directives=["--exclude=node1"]
    )  # the old task waits for this node
    here("submit")
    new = {here.job(point) for point in ("native-w1-s0", "native-w1-s1")}
    here.cluster.wait_for(
        lambda: here.cluster.states(running) == ["FAILED"], "the old worker to leave"
    )
    here.cluster.wait_for(
        lambda: set(here.states().values()) == {"running"}, "both new jobs to run"
    )
    here.cluster.run("scontrol", "release", waiting)  # into a folder of another job
    here.cluster.wait_for(
        lambda: here.cluster.states(waiting) == ["FAILED"], "the old job to leave"
    )
    run = StudyFolder.open(here.results).runs("native-w1-s1")[0]
    assert (
        "leaves: this folder belongs to another job"
        in (run.path / "logs" / "job.log").read_text()
    )
    assert set(here.states().values()) == {"running"}
    assert {here.job(point) for point in ("native-w1-s0", "native-w1-s1")} == new
    assert not (run.path / "exit").exists()
    assert here("cancel").count("Cancelled native") == 2
    for job in new:
        here.cluster.wait_for(
            lambda job=job: set(here.cluster.states(job)) == {"CANCELLED"},
            "the end of it",
        )
    assert "Nothing to cancel" in here("cancel")


def test_a_job_whose_answer_was_lost_is_found_and_not_submitted_twice(
    prepared, monkeypatch
):
    here = ClusterStudy(prepared, "lost")
    here.plan(all={"hold": True})
    programs = here.path / "programs"
    programs.mkdir()
    # Slurm accepts the job, but neither sbatch nor the next squeue returns an answer.
    bodies = {
        "sbatch": f'{shutil.which("sbatch")} "$@" >>{here.path}/taken',
        "squeue": "",
    }
    for name, body in bodies.items():
        file = programs / name
        file.write_text(
            f"#!/bin/bash\n{body}\necho 'error: Socket timed out on send/recv' >&2\nexit 1\n"
        )
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
    environment = here.cluster.env
    here.cluster.env = environment | {"PATH": f"{programs}:{environment['PATH']}"}
    try:
        code, text = here.code("submit")
        assert code == 1 and "Socket timed out" in text
    finally:
        here.cluster.env = environment
    (job,) = (here.path / "taken").read_text().split()
    here.cluster.wait_for(
        lambda: set(here.states().values()) == {"running", "missing"}, "it at work"
    )
    assert job in {
        here.job(name) for name, state in here.states().items() if state == "running"
    }
    here("submit")
    assert "Nothing was submitted" in here("submit")
    assert here("cancel").count("Cancelled native") == 2
    here.wait("cancelled")
