"""Other ways to start the workers of a job."""

import json
import re
import shutil
import sys

import pytest

from guide_scripts import write_from_guide
from paths import SUPPORT
from scalestudy.engines.tensorflow.installation import library_file as horovod_built
from studies import log, result, results_of, write_site, write_study

HERE = SUPPORT


def stand_in(name: str) -> list[str]:
    """Return the command that a site profile puts before the worker's."""
    return [sys.executable, str(HERE / name)]


@pytest.mark.skipif(
    shutil.which("mpirun") is None, reason="mpirun is not installed (`make test-tools`)"
)
def test_mpirun_inside_an_allocation(cluster):
    folder = cluster.folder("mpirun")
    write_site(folder, tasks_per_node=1, launcher="mpirun")
    study = write_study(cluster, folder, strategy=["native", "horovod"], workers=[2])
    cluster.scalestudy("run", study, "--no-report")
    for point in ("native-w2-s0", "horovod-w2-s0"):
        assert "mpirun -n 2" in (results_of(study) / "jobs" / f"{point}.sh").read_text()
        assert result(study, point)["workers"] == 2


@pytest.mark.skipif(not horovod_built(), reason="Horovod is not built here")
def test_fourteen_nodes_without_accounting_train_as_one(big_cluster):
    folder = big_cluster.folder("fourteen")
    write_site(folder, tasks_per_node=1)
    study = write_study(
        big_cluster, folder, epochs=1, batch_size=16, strategy=["horovod"], workers=[14]
    )
    big_cluster.scalestudy("run", study, "--no-report")
    point = "horovod-w14-s0"
    told = re.findall(r"rank (\d+) of 14 on (\w+):", log(study, point))
    assert dict(told) == {
        str(rank): node for rank, node in enumerate(big_cluster.nodes)
    }
    found = result(study, point)
    assert found["samples_processed"] == found["training_samples"]
    assert len(found["cpu_percent"]) == 14


@pytest.mark.skipif(not horovod_built(), reason="Horovod is not built here")
def test_a_keras_script_is_started_and_measured_under_srun(cluster):
    folder = cluster.folder("script")
    script = write_from_guide(folder, "train_keras.py")
    launch = (sys.executable, "-m", "scalestudy", "launch", "--device", "cpu", script)
    cluster.run("srun", "-N2", "-n2", "--mpi=none", *launch, cwd=folder)
    (run,) = (folder / "studies" / "train_keras" / "points").glob("horovod-w2-s0/run-1")
    found = json.loads((run / "result.json").read_text())
    assert (found["workers"], found["communication"], len(found["hosts"])) == (
        2,
        "gloo",
        2,
    )
    assert found["training_samples"] == 800 and found["quality"] > 0.8
    assert not list((folder / "studies").glob(".launch-*"))
