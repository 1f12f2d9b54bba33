"""Real training in which a rank hangs."""

import os
import signal
import socket
from importlib.util import find_spec
from pathlib import Path

import pytest

from data_settings import data_of
from local_run import run_point
from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.data.preparation import prepare
from scalestudy.data.split import ensure_split
from scalestudy.engines.tensorflow.installation import library_file as horovod_built
from scalestudy.store.study_folder import StudyFolder

pytestmark = pytest.mark.engine

TEXT = """
task = "{task}"
[data]
source = "digits"
[train]
epochs = 2000
[launch]
progress_timeout = {within}
[sweep]
strategy = "{strategy}"
workers = 2
seed = 0
"""


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return how a run ends, and its folder; Gloo has its own default timeout."""
    monkeypatch.setenv("HOROVOD_GLOO_TIMEOUT_SECONDS", "30")

    def run(strategy: str, watch, task: str = "cnn", within: int = 600):
        text = TEXT.format(strategy=strategy, task=task, within=within)
        study = parse_study(text, tmp_path / "study.toml")
        (point,) = expand(study, gpus=0, cores=8)
        prepared = prepare(data_of("digits", cache=tmp_path.parent / "prepared"))
        point = point.with_files(
            str(prepared.path), str(ensure_split(prepared, 0.2, 0).path)
        )
        folder = StudyFolder.create_or_open(tmp_path / "results", study, [point], text)
        failure = run_point(folder, point, watch)
        (run,) = folder.runs(point.name)
        return failure, run

    return run


@pytest.mark.parametrize(
    "strategy", ["multiworker", *(["horovod"] if horovod_built() else [])]
)
def test_a_rank_that_is_stopped_in_training_is_named_whoever_notices_first(
    ended, strategy
):
    """TensorFlow gives up after ten seconds, Horovod's Gloo after thirty; both blame rank 0."""
    stopped: list[int] = []

    def stop_rank_1(run, progress):
        if run.epochs() and not stopped:
            stopped.append(next(sign.pid for sign in run.signs() if sign.rank == 1))
            os.kill(stopped[0], signal.SIGSTOP)

    failure, run = ended(strategy, stop_rank_1)
    assert failure.rank == 1
    assert "rank 1 on " in failure.reason
    assert "its process is stopped, or its node is gone" in failure.reason
    assert run.result() is None


STILL = """
import os, time
from pathlib import Path
from torch import nn
from scalestudy.tasks.torch_cnn import cnn_module, loss, metrics

kind = "classes"
engine = "torch"
data = "digits"


class Still(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        while os.environ.get("RANK") == "1" and Path("{mark}").exists():
            time.sleep(0.1)
        return self.inner(x)


def model(data):
    return Still(cnn_module(data.input_shape, data.classes))
"""


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("does", ["stopped", "still"])
def test_a_rank_of_ddp_is_named_though_the_other_waits_for_it_in_gloo(
    ended, tmp_path, does
):
    mark = tmp_path / "stand-still"
    task = tmp_path / "own.py"
    task.write_text(STILL.format(mark=mark))
    stopped: list[int] = []

    def disturb_rank_1(run, progress):
        # Ranks write their signs about once a second: that of rank 1 may be older than the first record of an epoch.
        trains = [sign for sign in run.signs() if sign.rank == 1 and sign.epoch >= 1]
        if run.epochs() and trains and not stopped:
            stopped.append(trains[0].pid)
            if does == "stopped":
                os.kill(stopped[0], signal.SIGSTOP)
            mark.touch()

    failure, run = ended("ddp", disturb_rank_1, task=str(task), within=20)
    assert failure.rank == 1
    assert f"rank 1 on {socket.gethostname()} fell silent in epoch " in failure.reason
    assert run.result() is None
