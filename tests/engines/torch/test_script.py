"""PyTorch scripts as users write them: started as by torchrun, measured, and failing; their store."""

import datetime
import importlib.util
import json
import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

from scalestudy.analysis.findings import read_study
from scalestudy.cluster.placement import Placement
from scalestudy.cluster.private_files import MEETING
from scalestudy.store.study_folder import StudyFolder

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"
    ),
]
MEET = """
import sys
import numpy as np
from scalestudy.cluster.placement import Placement
from scalestudy.engines import rendezvous
from scalestudy.engines.torch.group import join_ddp

rank, port, address = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rendezvous.outward_addresses = lambda: [address]
rendezvous.addresses_of = lambda host: [host] if host == address else []
place = Placement(rank, 2, 0, 1, rank, ("first.invalid", "second.invalid"), "slurm", port)
group, _ = join_ddp(place, workers=2, device="cpu", communication="auto")
print(int(group.host_sum(np.array([rank + 1]))[0]))
group.close()
"""


def test_two_hosts_without_names_sum(tmp_path):
    address = "127.0.0.1"
    with socket.create_server((address, 0)) as probe:
        port = probe.getsockname()[1]
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", MEET, str(rank), str(port), address],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, MEETING: str(tmp_path)},
        )
        for rank in range(2)
    ]
    for rank in ranks:
        output, errors = rank.communicate(timeout=300)
        assert output.split() == ["3"], errors


class Evil:
    """Unpickled, it makes a folder."""

    def __init__(self, folder) -> None:
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


@pytest.fixture
def store(monkeypatch):
    """A store, and rank 1 of two processes that exchange values through it."""
    import torch

    from scalestudy.engines.torch.script import StoreGroup

    limit = datetime.timedelta(seconds=60)
    made = torch.distributed.TCPStore(
        "127.0.0.1", 0, None, True, limit, wait_for_workers=False
    )
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    return made, StoreGroup(
        Placement(1, 2, 1, 2, 0, ("localhost",) * 2, "test", made.port)
    )


def test_what_a_stranger_writes_into_the_store_runs_no_code(store, tmp_path):
    served, group = store
    served.set("scalestudy/1", pickle.dumps(Evil(str(tmp_path / "made"))))
    with pytest.raises(ValueError, match="decode"):
        group.share_object(None)
    served.set("scalestudy/2/0", pickle.dumps(Evil(str(tmp_path / "made"))))
    with pytest.raises(ValueError, match=r"size|shape"):
        group.host_sum(np.zeros(1))
    assert not (tmp_path / "made").exists()


def test_numbers_and_lists_are_shared_and_arrays_summed_through_the_store(store):
    served, group = store
    served.set("scalestudy/1", json.dumps({"loss": [0.5, float("nan")], "at": [0, 1]}))
    shared = group.share_object(None)
    assert (
        shared["loss"][0] == 0.5
        and np.isnan(shared["loss"][1])
        and shared["at"] == [0, 1]
    )
    served.set("scalestudy/2/0", np.full((2, 1), 3.0).tobytes())
    assert group.host_sum(np.ones((2, 1))).tolist() == [[4.0], [4.0]]


SCRIPTS = Path(__file__).parents[2] / "features" / "launch" / "examples"


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
    """Return result and epochs of each point's newest run, by number of workers."""
    study = StudyFolder.open(folder)
    runs = [study.runs(point.name)[-1] for point in study.points()]
    return {
        run.result().workers: (run.result(), run.epochs())
        for run in runs
        if run.result()
    }


@pytest.mark.new_python  # as users start scripts
def test_a_script_for_torchrun_runs_as_it_is(tmp_path):
    done = launch(tmp_path, "-n", 2, SCRIPTS / "ddp_plain.py", tmp_path, "--lr", "0.1")
    assert done.returncode == 0, done.stdout + done.stderr
    seen = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    for rank, one in enumerate(seen):
        assert (one["rank"], one["size"], one["local_rank"], one["elastic"]) == (
            rank,
            2,
            rank,
            True,
        )
        assert one["argv"] == [str(tmp_path), "--lr", "0.1"]
        assert one["gradient"] == [[3.0] * 4]  # the mean of 2 and 4
        found = one["variables"]
        assert (found["ROLE_RANK"], found["GROUP_RANK"], found["LOCAL_WORLD_SIZE"]) == (
            str(rank),
            "0",
            "2",
        )
    assert seen[0]["variables"]["MASTER_PORT"] == seen[1]["variables"]["MASTER_PORT"]
    assert not (tmp_path / "studies").exists()
    assert "nothing will be measured" in " ".join(done.stderr.split())
    assert "Nothing was measured" in done.stderr


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """The folder of a loop measured on one worker and on two."""
    folder = tmp_path_factory.mktemp("swept")
    done = launch(folder, "-n", "1,2", SCRIPTS / "ddp_measured.py")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_three_lines_measure_a_loop(swept):
    found = results(swept / "studies" / "ddp_measured")
    assert set(found) == {1, 2}
    for workers, (result, epochs) in found.items():
        assert [epoch.samples for epoch in epochs] == [400] * 3
        assert [epoch.steps for epoch in epochs] == [25 if workers == 1 else 13] * 3
        assert (result.per_worker_batch, result.global_batch) == (16, 16 * workers)
        assert result.parameters == 20 * 32 + 32 + 32 * 2 + 2
        steady = sum(epoch.train_seconds for epoch in epochs[1:])
        assert result.throughput == pytest.approx(800 / steady)
        assert 0 < result.training_seconds < result.wall_seconds
        assert result.communication == ("gloo" if workers == 2 else None)
        assert epochs[2].loss < epochs[0].loss
        assert epochs[2].validation["accuracy"] == result.quality > 0.8
        assert result.weights_digest and len(result.peak_memory_bytes) == workers
    study = StudyFolder.open(swept / "studies" / "ddp_measured")
    rows = {row.key.workers: row for row in read_study(study).rows}
    assert rows[2].speed.steady.value == pytest.approx(
        found[2][0].throughput / found[1][0].throughput
    )


def test_what_is_done_is_not_swept_again(swept):
    done = launch(swept, "-n", "1,2", SCRIPTS / "ddp_measured.py")
    assert done.returncode == 0, done.stderr
    assert len(list(swept.glob("studies/*/points/*/run-*"))) == 2


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        (
            "raise",
            "rank 1 ended with exit code 1: ValueError: sample 17 is broken (ddp_measured.py, line",
        ),
        ("kill", "rank 1 was ended by SIGKILL"),
        ("alone", "2 different sets on 2 workers"),
    ],
)
def test_a_script_that_fails_is_said_to_by_its_true_cause_and_leaves_nothing(
    tmp_path, how, cause
):
    done = launch(tmp_path, "-n", 2, SCRIPTS / "ddp_measured.py", how)
    assert done.returncode == 1
    assert cause in " ".join(done.stderr.split())
    (run,) = tmp_path.glob("studies/ddp_measured/points/*/run-1")
    assert cause in json.loads((run / "failure.json").read_text())["reason"]
    assert (run / "logs" / "rank-1.log").exists()
    assert not (run / "result.json").exists()
    assert not [
        one
        for one in psutil.process_iter(["cmdline"])
        if str(tmp_path) in str(one.info["cmdline"])
    ]


def test_parameters_of_any_shape_and_type_are_compared():
    import torch

    from scalestudy.engines.torch.script import TorchScript

    session = TorchScript(Placement(0, 1, 0, 1, 0, ("localhost",), "alone"), None)
    models = [torch.nn.Linear(2, 2).bfloat16() for _ in range(2)]
    for model in models:
        model.scale = torch.nn.Parameter(torch.tensor(1.5))
    models[1].load_state_dict(models[0].state_dict())
    assert session.digest(models[0]) == session.digest(models[1]) != ""
    with torch.no_grad():
        models[1].scale.add_(1e-6)
    assert session.digest(models[0]) != session.digest(models[1])
    assert session.parameters(models[0]) == 7


def test_torchrun_itself_may_start_a_measured_script_and_its_first_failure_is_kept(
    tmp_path,
):
    torchrun = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
    ]
    done = subprocess.run(
        [*torchrun, SCRIPTS / "ddp_measured.py", "raise"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"},
    )
    assert done.returncode == 1
    (run,) = tmp_path.glob("studies/ddp_measured/points/ddp-w2-*/run-1")
    assert json.loads((run / "failure.json").read_text())["rank"] == 1
    assert len(list(run.glob("ranks/*.json"))) == 2


@pytest.mark.parametrize(
    ("package", "samples", "metric"),
    [  # Accelerate pads last batches
        ("accelerate", 416, "accuracy"),
        ("lightning", 400, "val_accuracy"),
    ],
)
def test_scripts_of_other_packages_are_measured(tmp_path, package, samples, metric):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    done = launch(tmp_path, "-n", 2, SCRIPTS / f"{package}_measured.py", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    ((result, epochs),) = results(tmp_path / "studies" / f"{package}_measured").values()
    assert [epoch.samples for epoch in epochs] == [samples] * 4
    assert (result.workers, result.global_batch, result.metric) == (2, 32, metric)
    assert result.quality == epochs[-1].validation[metric] > 0.8
    assert result.throughput > 0
    assert epochs[-1].loss < epochs[0].loss
