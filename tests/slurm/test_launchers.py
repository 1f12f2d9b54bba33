"""Other ways to start the workers of a job."""

import shutil

import pytest
from studies import log, newest_run, result, write_site, write_study


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="mpirun is not installed (`make test-tools`)")
def test_mpirun_inside_an_allocation(cluster):
    folder = cluster.folder("mpirun")
    write_site(folder, tasks_per_node=1, launcher="mpirun")
    study = write_study(cluster, folder, strategy=["native", "horovod"], workers=[2])
    cluster.scalestudy("run", study)
    for point in ("native-w2-s0", "horovod-w2-s0"):
        assert "mpirun -n 2" in (study.parent / "studies/study/jobs" / f"{point}.sh").read_text()
        assert result(study, point)["workers"] == 2


def test_points_that_are_alike_share_an_array(cluster):
    folder = cluster.folder("arrays")
    write_site(folder)
    study = write_study(cluster, folder, seed=[0, 1, 2])
    out = cluster.scalestudy("submit", study, "--at-most", 2).stdout
    assert out.count("Submitted") == 3 or "_0" in out or "array" in out, out
    cluster.scalestudy("run", study)
    jobs = [(newest_run(study, f"native-w1-s{seed}") / "job.json").read_text() for seed in (0, 1, 2)]
    for seed, text in enumerate(jobs):
        assert f'_{seed}"' in text
        assert "ended with exit code 0" in log(study, f"native-w1-s{seed}")


def test_fourteen_nodes_without_accounting(big_cluster):
    folder = big_cluster.folder("fourteen")
    write_site(folder, tasks_per_node=1)
    study = write_study(big_cluster, folder, epochs=1, batch_size=16, strategy=["horovod"], workers=[14])
    big_cluster.scalestudy("run", study, timeout=600)
    seen = {
        line.split(" on ")[1].split(":")[0]
        for line in log(study, "horovod-w14-s0").splitlines()
        if ": rank" in line
    }
    assert seen == set(big_cluster.nodes)
    assert (
        result(study, "horovod-w14-s0")["samples_processed"]
        == result(study, "horovod-w14-s0")["training_samples"]
    )
