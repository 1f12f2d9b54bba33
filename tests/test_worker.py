"""The worker checks that its launcher, NVML and the engine have the same GPUs."""

import os
import subprocess
import sys
from contextlib import nullcontext
from importlib import metadata
from pathlib import Path
from unittest.mock import Mock

import pytest

from fake_nvml import GPU_IS_LOST, cards, written
from scalestudy import worker
from scalestudy.config.point import Point
from scalestudy.config.settings import ResolvedTrain
from scalestudy.config.task_sources import digests, source_files
from scalestudy.measure.clock import PhaseClock
from scalestudy.store.run_folder import write_point
from scalestudy.util import modules
from scalestudy.util.errors import RunError

pytestmark = pytest.mark.new_python  # the command that every launcher starts

SOURCE = Path(__file__).parents[1] / "src"


def worked(
    path,
    gpus,
    device="gpu",
    driver="580.1",
    code=1,
    task="cnn",
    sources=None,
    **variables,
):
    """Run a worker of one GPU that must fail, on a machine with these GPUs; return its output and logs."""
    folder = path / "run-1"
    folder.mkdir()
    point = Point.model_validate(
        {
            "name": "single-w1-s0",
            "study": "test",
            "task": task,
            "strategy": "single",
            "workers": 1,
            "seed": 0,
            "sources": sources or {},
            "data": {"source": "digits"},
            "train": {
                "epochs": 1,
                "batch_size": 8,
                "optimizer": "sgd",
                "learning_rate": 0.1,
                "schedule": "linear",
            },
            "terms": {"implementation": "single", "launch": {"device": device}},
            "files": {"prepared": str(path), "split": str(path / "split.json")},
        }
    )
    write_point(folder / "point.json", point)
    shown = {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": ""} | variables
    kept = {key: value for key, value in os.environ.items() if key not in shown}
    paths = [
        written(path / "nvml", gpus, driver=driver),
        str(SOURCE),
        os.environ.get("PYTHONPATH", ""),
    ]
    variables = {"PYTHONPATH": os.pathsep.join(paths), **variables}
    done = subprocess.run(
        [sys.executable, "-m", modules.WORKER, str(folder)],
        env=kept | variables,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    logs = "".join(log.read_text() for log in folder.glob("logs/*.log"))
    assert not (folder / "result.json").exists() and done.returncode == code
    return done.stdout + done.stderr + logs


@pytest.mark.parametrize(
    ("device", "promise"),
    [("gpu", {}), ("auto", {"SCALESTUDY_GPUS": "2"})],
    ids=["asked for", "promised"],
)
def test_where_there_is_no_gpu_a_run_ends_before_its_framework_is_imported(
    tmp_path, device, promise
):
    text = worked(tmp_path, [], device, driver=None, **promise)
    assert (
        "to compute on. Received none: " in text
        and "NVML Shared Library Not Found" in text
    )
    assert "tensorflow" not in text.lower()


OUT_OF_MEMORY = (
    "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 139.81 GiB of which"
    " 3.06 GiB is free. Including non-PyTorch memory, this process has 136.74 GiB memory in use. Of the"
    " allocated memory 135.10 GiB is allocated by PyTorch, and 0.50 GiB is reserved. If reserved but"
    " unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
)


@pytest.mark.parametrize(
    ("train", "first"),
    [
        (
            {"batch_size": 64, "accumulate": 2},
            "Set batch_size = 32 and accumulate = 4 under [train]",
        ),
        ({"batch_size": 64, "batch": "global"}, "Set accumulate = 2 under [train]"),
        ({"batch_size": 1}, 'Or set precision = "mixed_bfloat16"'),
    ],
)
def test_a_device_without_enough_memory_names_what_was_used_and_settings_that_need_less(
    tmp_path, monkeypatch, train, first
):
    def run(part):
        raise RuntimeError(OUT_OF_MEMORY)

    settings = {
        "epochs": 1,
        "optimizer": "sgd",
        "learning_rate": 0.1,
        "schedule": "linear",
        **train,
    }
    point = Mock(train=ResolvedTrain.model_validate(settings))
    watchdog = Mock()
    monkeypatch.setattr(worker, "take_part", lambda *given: ("gpu", ["GPU"]))
    for name, stand_in in {
        "scalestudy.training.rank_run.run_synchronous": run,
        "scalestudy.config.task_sources.refuse_edited": Mock(),
        "scalestudy.measure.watchdog.Watchdog": Mock(return_value=watchdog),
        "scalestudy.cluster.private_files.meeting_in": lambda *given: nullcontext(),
        "scalestudy.cluster.private_files.secret_set": lambda *given: nullcontext(),
    }.items():
        monkeypatch.setattr(name, stand_in)
    folder = Mock(path=tmp_path, point=Mock(return_value=point))
    with pytest.raises(RunError) as caught:
        worker.train_rank(folder, Mock(), PhaseClock())
    assert caught.value.received.endswith("136.74 GiB memory in use")
    assert "139.81 GiB" in caught.value.received
    assert caught.value.action.startswith(first)
    assert "mixed_bfloat16" in caught.value.action
    watchdog.failed.assert_called_once_with()


def test_a_reserved_gpu_that_was_lost_is_named(tmp_path):
    one, two = cards(2)
    two.fails = {"*": GPU_IS_LOST}
    assert "no GPU-b1" in worked(tmp_path, [one, two], SCALESTUDY_GPUS="GPU-a0,GPU-b1")


def test_a_task_file_that_was_edited_after_its_run_was_submitted_is_not_trained(
    tmp_path,
):
    task = tmp_path / "own.py"
    task.write_text("import tensorflow\nact = 'gelu'\n")
    sources = digests(source_files(str(task)))
    task.write_text("import tensorflow\nact = 'relu'\n")
    text = worked(tmp_path, [], "cpu", code=2, task=str(task), sources=sources)
    assert f"edited ones: {task}" in text
    assert "tensorflow" not in text.lower()


@pytest.mark.engine
def test_a_gpu_that_nvml_shows_and_the_real_tensorflow_does_not_ends_the_run(tmp_path):
    text = worked(tmp_path, cards(1))
    assert "Expected the engine to list 1 GPU: GPU-a0. Received none: " in text
    names = {item.name.replace("_", "-") for item in metadata.distributions()}
    assert (
        "tensorflow-cpu" not in names
        or "is built without CUDA. Install '.[gpu]'" in text
    )
