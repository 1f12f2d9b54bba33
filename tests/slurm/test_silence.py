"""A hanging rank does not hold the nodes of its job."""

import json

import pytest

from scalestudy.engines.tensorflow.installation import library_file as horovod_built
from studies import newest_run, results_of, write_site, write_study

POINT = "horovod-w2-s0"


def status(cluster, study) -> str:
    return " ".join(cluster.scalestudy("status", results_of(study)).stdout.split())


@pytest.mark.skipif(not horovod_built(), reason="Horovod is not built here")
def test_a_stopped_rank_ends_its_job_and_is_named(cluster):
    folder = cluster.folder("silence")
    write_site(folder, tasks_per_node=1)
    study = write_study(cluster, folder, epochs=5000, strategy=["horovod"], workers=[2])
    # The rank may be stopped in any phase; a step may take at least this long.
    study.write_text(
        study.read_text().replace("[launch]", "[launch]\nprogress_timeout = 120.0")
    )
    cluster.scalestudy("submit", study)
    run = newest_run(study, POINT)
    cluster.wait_for((run / "epochs.jsonl").exists, "the first epoch")
    cluster.wait_for((run / "signs" / "1.json").exists, "a sign of rank 1")
    sign = json.loads((run / "signs" / "1.json").read_text())
    # Nodes have their own process namespaces; this process ID is known only there.
    job = json.loads((run / "job.json").read_text())["job"]
    stop = (
        "srun",
        "--jobid",
        job,
        "--overlap",
        "-N1",
        "-n1",
        "-w",
        sign["host"],
        "kill",
        "-STOP",
        sign["pid"],
    )
    cluster.run(*stop)
    cluster.wait_for(lambda: cluster.states(job)[0] == "FAILED", "the job's end")
    cluster.wait_for(lambda: cluster.node_state(sign["host"]) == "idle", "its node")
    cluster.wait_for(lambda: "1 failed" in status(cluster, study), "its state")
    assert f"rank 1 on {sign['host']} fell silent" in status(cluster, study)
    assert json.loads((run / "failure.json").read_text())["rank"] == 1
