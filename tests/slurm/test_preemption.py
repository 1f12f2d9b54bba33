"""Jobs that must leave their nodes: preempted with or without time to leave, and cancelled."""

import json
import sys

from paths import SUPPORT
from studies import job_of, log, newest_run, results_of, write_site, write_study

STAND_IN = SUPPORT / "stand_in.py"
PLAN = '{"*": {"seconds": 600, "resumed": {"seconds": 0}}}'
"""Works until it is asked to stop, and is done at once after a resume."""


def submitted(cluster, name, **keys):
    """A submitted study whose workers srun starts."""
    folder = cluster.folder(name)
    write_site(folder, wrapper=[sys.executable, str(STAND_IN)], **keys)
    study = write_study(cluster, folder, strategy=["multiworker"])
    results_of(study).parent.mkdir()
    results_of(study).with_name("plan.json").write_text(PLAN)
    cluster.scalestudy("submit", study)
    return study


def test_a_preempted_job_goes_on_from_its_checkpoint_and_a_cancelled_one_does_not(
    cluster,
):
    point = "multiworker-w1-s0"
    names = ("preempted", "graced", "cancelled")
    partitions = {"graced": "graced"}
    studies = {
        each: submitted(cluster, each, partition=partitions.get(each, "debug"))
        for each in names
    }
    jobs = {name: job_of(study, point) for name, study in studies.items()}
    for study in studies.values():
        cluster.wait_for((newest_run(study, point) / "progress.json").exists, "a start")
    urgent = []
    for name in ("preempted", "graced"):
        node = cluster.run("squeue", "-h", "-j", jobs[name], "-o", "%N").stdout.strip()
        urgent.append(
            cluster.sbatch("-p", "urgent", "-w", node, "--exclusive", script="true")
        )
    cluster.run("scancel", jobs["cancelled"])
    for job in urgent:
        cluster.wait_for(
            lambda job=job: cluster.states(job) == ["COMPLETED"], "the urgent job"
        )
    for name in ("preempted", "graced"):
        # Slurm delays a requeued job by some seconds.
        cluster.run("scontrol", "update", f"JobId={jobs[name]}", "StartTime=now")
        done = newest_run(studies[name], point) / "result.json"
        cluster.wait_for(done.exists, f"the {name} one to be done")
        assert log(studies[name], point).count(f"Z job {jobs[name]} on ") == 2
    assert "asked to stop (SIGTERM)" in log(studies["preempted"], point)
    assert "queued again (1 of 10)" in log(studies["graced"], point)
    cluster.wait_for(
        lambda: cluster.states(jobs["cancelled"]) == ["CANCELLED"],
        "the cancelled one's end",
    )
    assert (newest_run(studies["cancelled"], point) / "checkpoint.npz").exists()
    results = results_of(studies["cancelled"])
    cluster.wait_for(
        lambda: "1 cancelled" in cluster.scalestudy("status", results).stdout,
        "its state",
    )
    failure = json.loads(
        (newest_run(studies["cancelled"], point) / "failure.json").read_text()
    )
    assert failure["job_state"] == "CANCELLED"
