"""Runs that the cluster interrupts end like uninterrupted runs."""

import pytest

from studies import (
    HELD_TASK,
    SLOW_TASK,
    epochs,
    job_of,
    log,
    newest_run,
    result,
    shared_task,
    write_site,
    write_study,
)

AT_THE_LIMIT = 70
"""More epochs than fit into the minute until a job is asked to stop; each takes a second in its first job."""
ALONE, TOGETHER = "native-w1-s0", "horovod-w2-s0"


@pytest.fixture(scope="module")
def folder(cluster):
    folder = cluster.folder("interrupted")
    (folder / "held.py").write_text(HELD_TASK)
    return folder


@pytest.fixture(scope="module")
def slow(cluster):
    return shared_task(cluster, "slow", SLOW_TASK)


@pytest.fixture(scope="module")
def limited(cluster, folder, slow):
    """A submitted run that takes longer than half its time limit, when a job is asked to stop."""
    write_site(folder, time_limit="00:02:00", directives=["--nodelist=node4"])
    study = write_study(cluster, folder, name="limited", task=slow, epochs=AT_THE_LIMIT)
    cluster.scalestudy("submit", study)
    return study


def test_a_run_that_loses_a_node_goes_on_from_its_checkpoint(cluster, folder, limited):
    write_site(folder, tasks_per_node=1, directives=["--exclude=node4"])
    what = {"task": "held.py", "epochs": 5, "strategy": ["horovod"], "workers": [2]}
    study = write_study(cluster, folder, name="lost", **what)
    for epoch in (2, 4):
        (folder / f"hold-{epoch}").touch()
    cluster.scalestudy("submit", study)
    run = newest_run(study, TOGETHER)
    job = job_of(study, TOGETHER)
    cluster.wait_for((folder / "held-2").exists, "the second epoch")
    # Sites do this before they take nodes away.
    cluster.run("scancel", "--signal=USR1", "--batch", job)
    cluster.wait_for(run.joinpath("stop").exists, "the workers to be asked to stop")
    (folder / "hold-2").unlink()
    cluster.wait_for(
        lambda: "continues in epoch" in log(study, TOGETHER, "rank-0"), "it to go on"
    )
    cluster.wait_for((folder / "held-4").exists, "more epochs")
    assert len(epochs(study, TOGETHER)) >= 3
    node = cluster.run("squeue", "-h", "-j", job, "-o", "%B").stdout.strip()
    cluster.kill_node(node)
    (folder / "hold-4").unlink()
    try:
        cluster.scalestudy("run", study, "--no-report")
    finally:
        cluster.start_node(node)
    assert newest_run(study, TOGETHER) == run
    assert log(study, TOGETHER, "rank-0").count("continues in epoch") == 2
    assert_same_as_uninterrupted(cluster, study, TOGETHER, **what)


def test_a_run_at_its_time_limit_is_queued_again_and_goes_on(cluster, limited, slow):
    cluster.scalestudy("run", limited, "--no-report")
    assert "; queued again" in log(limited, ALONE)
    assert result(limited, ALONE)["restarts"] >= 1
    assert_same_as_uninterrupted(
        cluster, limited, ALONE, task=slow, epochs=AT_THE_LIMIT
    )


def assert_same_as_uninterrupted(cluster, study, point, **what):
    assert [record["epoch"] for record in epochs(study, point)] == list(
        range(1, what["epochs"] + 1)
    )
    local = write_study(
        cluster, study.parent, name=f"{study.stem}-here", on="local", **what
    )
    cluster.run_here(local)
    for key in (
        "weights_digest",
        "quality",
        "validation",
        "updates",
        "samples_processed",
    ):
        assert result(study, point)[key] == result(local, point)[key]
    for ours, theirs in zip(epochs(study, point), epochs(local, point), strict=True):
        assert (ours["loss"], ours["validation"]) == (
            theirs["loss"],
            theirs["validation"],
        )
