"""Keras scripts as users write them: started, measured by one line, and found out if they do not share."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from guide_scripts import write_from_guide
from scalestudy.analysis.findings import read_study
from scalestudy.store.study_folder import StudyFolder

pytestmark = pytest.mark.engine
SCRIPTS = Path(__file__).parents[2] / "features" / "launch" / "examples"
with_horovod = pytest.mark.skipif(
    importlib.util.find_spec("horovod") is None, reason="no Horovod"
)
with_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="no PyTorch"
)


def launch(folder, *arguments):
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "scalestudy",
            "launch",
            "--device",
            "cpu",
            *map(str, arguments),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def results(folder):
    """Return the finished runs of a study by number of workers."""
    study = StudyFolder.open(folder)
    runs = [study.runs(point.name)[-1] for point in study.points()]
    return {run.result().workers: run for run in runs if run.result()}


@with_horovod
def test_the_guides_script_of_keras_and_horovod_is_measured_and_runs_alone_unmeasured(
    tmp_path,
):
    script = write_from_guide(tmp_path, "train_keras.py")
    done = launch(tmp_path, "-n", "1,2", script)
    assert done.returncode == 0, done.stdout + done.stderr
    study = tmp_path / "studies" / "train_keras"
    found = results(study)
    assert set(found) == {1, 2}
    for workers, run in found.items():
        result = run.result()
        assert [epoch.samples for epoch in run.epochs()] == [800] * 6
        assert [epoch.steps for epoch in run.epochs()] == [50 // workers] * 6
        assert (result.strategy, result.engine, result.seed) == (
            "horovod",
            "tensorflow",
            0,
        )
        assert (result.per_worker_batch, result.global_batch) == (16, 16 * workers)
        assert result.communication == ("gloo" if workers == 2 else None)
        assert result.parameters == 20 * 32 + 32 + 32 * 2 + 2
        assert result.evaluated_samples == 200
        assert result.quality == run.epochs()[-1].validation["val_accuracy"] > 0.8
        assert 0 < result.training_seconds < result.wall_seconds
    rows = {row.key.workers: row for row in read_study(StudyFolder.open(study)).rows}
    speeds = [found[workers].result().throughput for workers in (1, 2)]
    assert rows[2].speed.steady.value == pytest.approx(speeds[1] / speeds[0])
    plain = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert plain.returncode == 0, plain.stderr
    assert "scalestudy launch" in plain.stderr
    assert len(list(study.glob("points/*/run-*"))) == 2


@with_torch
def test_the_guides_script_of_ddp_is_measured(tmp_path):
    done = launch(tmp_path, "-n", 2, write_from_guide(tmp_path, "train_ddp.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    run = results(tmp_path / "studies" / "train_ddp")[2]
    assert [epoch.samples for epoch in run.epochs()] == [800] * 6
    assert run.result().evaluated_samples == 200
    assert run.result().quality > 0.8


def test_mirrored_has_its_workers_in_one_process_and_one_left_out_of_its_scope_is_found_out(
    tmp_path,
):
    done = launch(tmp_path, "-n", 2, SCRIPTS / "keras_mirrored.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "logical CPU device" in " ".join(done.stderr.split())
    run = results(tmp_path / "studies" / "keras_mirrored")[2]
    assert [(epoch.samples, epoch.steps) for epoch in run.epochs()] == [(400, 14)] * 3
    result = run.result()
    assert (result.strategy, result.per_worker_batch, result.global_batch) == (
        "mirrored",
        15,
        30,
    )
    assert len(result.peak_memory_bytes) == 1
    done = launch(tmp_path, "-n", 2, SCRIPTS / "keras_mirrored.py", "alone")
    assert done.returncode == 1
    assert "MirroredStrategy()" in done.stderr


@with_horovod
@pytest.mark.parametrize(
    ("how", "seen", "line"),
    [
        ("same", "the same mean loss on all 2", "dataset.shard"),
        ("apart", "each trains on its own", "hvd.init()"),
    ],
)
def test_keras_processes_that_do_not_share_the_work_are_found_out(
    tmp_path, how, seen, line
):
    done = launch(tmp_path, "-n", 2, SCRIPTS / "keras_unshared.py", how)
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert seen in said and line in said
    assert results(tmp_path / "studies" / "keras_unshared") == {}


@with_horovod
def test_workers_that_all_read_everything_in_another_order_are_found_out_beside_one(
    tmp_path,
):
    done = launch(tmp_path, "-n", "2,1", SCRIPTS / "keras_unshared.py", "shuffled")
    assert done.returncode == 1
    assert "400 with 2: each worker reads everything" in " ".join(done.stderr.split())
    assert set(results(tmp_path / "studies" / "keras_unshared")) == {1}
    done = launch(
        tmp_path, "-n", 2, "--weak-scaling", SCRIPTS / "keras_unshared.py", "shuffled"
    )
    assert done.returncode == 0, done.stderr
    assert set(results(tmp_path / "studies" / "keras_unshared")) == {1, 2}


@with_torch
@pytest.mark.parametrize(
    ("how", "seen", "line"),
    [
        ("same", "the same mean loss on all 2", "DistributedSampler"),
        ("apart", "each trains on its own: 200 samples", "DistributedDataParallel"),
    ],
)
def test_pytorch_processes_that_do_not_share_the_work_are_found_out(
    tmp_path, how, seen, line
):
    done = launch(tmp_path, "-n", 2, SCRIPTS / "ddp_unshared.py", how)
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert seen in said and line in said
    (run,) = tmp_path.glob("studies/ddp_unshared/points/*/run-1")
    assert seen in json.loads((run / "failure.json").read_text())["reason"]


MULTIWORKER = """
import json, os, sys
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
names = ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "RANK")
seen = {name: os.environ[name] for name in names}
seen |= {"replicas": strategy.num_replicas_in_sync, "proxy": os.environ.get("grpc_proxy")}
with open(os.path.join(sys.argv[1], os.environ["SLURM_PROCID"]), "w") as file:
    json.dump(seen, file)
"""


@pytest.mark.new_python  # as users start scripts
def test_multiworker_processes_meet_by_tf_config_and_without_proxies(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("grpc_proxy", "http://127.0.0.1:9")
    (tmp_path / "train.py").write_text(MULTIWORKER)
    done = launch(tmp_path, "-n", 2, "train.py", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in ("0", "1"):
        seen = json.loads((tmp_path / rank).read_text())
        assert seen == {
            "replicas": 2,
            "proxy": None,
            "SLURM_NTASKS": "2",
        } | dict.fromkeys(("SLURM_PROCID", "SLURM_LOCALID", "RANK"), rank)
    assert "Nothing was measured" in done.stderr
