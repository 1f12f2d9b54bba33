"""Why runs failed, as `run`, `status` and the report state it, and the effect on the other points."""

import importlib.util
import json
import os
import shutil
import signal
from pathlib import Path

import psutil
import pytest

from command_line import plan, scalestudy, start, wait_for, workers_of, write
from scalestudy.engines.tensorflow.installation import library_file as horovod_built

pytestmark = pytest.mark.engine

SEVERAL = ["multiworker", *(["horovod"] if horovod_built() else [])]
TORCH = ["ddp"] if importlib.util.find_spec("torch") else []


def in_one_line(output: str) -> str:
    return " ".join(output.split())


def failures(folder: Path) -> dict[str, str]:
    """Return the recorded reasons by point."""
    return {
        file.parts[-3]: json.loads(file.read_text())["reason"]
        for file in folder.glob("points/*/run-*/failure.json")
    }


def test_run_status_and_report_say_the_same_of_a_rank_that_ended_first(tmp_path):
    file = write(tmp_path, ["multiworker"], (2,), seeds=(0, 1, 2))
    plan(
        tmp_path,
        {
            "multiworker-w2-s0": {"rank": 1, "python": "import sys\nsys.exit(0)"},
            "multiworker-w2-s1": {
                "rank": 1,
                "python": "import os\nos.kill(os.getpid(), 9)",
            },
            "multiworker-w2-s2": {
                "rank": 1,
                "python": "def build():\n    raise KeyError('[/mask]')\nbuild()",
            },
        },
    )
    code, output = scalestudy(
        "run", file, "--no-report", cwd=tmp_path, module="stand_in"
    )
    assert code == 1
    folder = tmp_path / "studies" / "study"
    said = failures(folder)
    assert said == {
        "multiworker-w2-s0": "rank 1 ended with exit code 0: "
        "the task's file ended the program by sys.exit(0) (task.py, line 2)",
        "multiworker-w2-s1": "rank 1 was ended by SIGKILL, but not by the kernel for lack of memory: "
        "a person or a program sent it",
        "multiworker-w2-s2": "rank 1 ended with exit code 1: KeyError: '[/mask]' (task.py, line 2, in build)",
    }
    _, status = scalestudy("status", folder, "--format", "json", cwd=tmp_path)
    assert {
        item["name"]: item["reason"] for item in json.loads(status)["points"]
    } == said
    _, report = scalestudy("report", folder, "--format", "json", cwd=tmp_path)
    for name, reason in said.items():
        assert f"{name} failed: {reason}" in in_one_line(output)
        assert reason in report
    assert not workers_of(folder)


@pytest.mark.parametrize("what", ["the run", "the study"])
def test_what_is_removed_while_it_trains_keeps_no_other_point_from_running(
    tmp_path, what
):
    file = write(
        tmp_path, ["multiworker"], (1, 2)
    )  # a text by which two workers come first
    plan(tmp_path, {"multiworker-w2-s0": {"seconds": 300}})
    process = start("run", file, cwd=tmp_path, module="stand_in")
    folder = tmp_path / "studies" / "study"
    run = folder / "points" / "multiworker-w2-s0" / "run-1"
    wait_for((run / "progress.json").exists, "a start", process)
    shutil.rmtree({"the run": run, "the study": folder}[what], ignore_errors=True)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 1
    assert "Traceback" not in output
    assert (
        f"multiworker-w2-s0 failed: its folder was removed while it ran: {run}"
        in output.replace("\n", " ")
    )
    assert not workers_of(folder)
    done = list(folder.glob("points/multiworker-w1-s0/run-1/result.json"))
    if what == "the study":
        assert (
            "which was removed while the study ran" in in_one_line(output) and not done
        )
    else:
        assert done


def test_a_disk_that_a_run_has_filled_is_named_in_its_folder_and_raises_nothing(
    tmp_path, small_disk
):
    file = write(tmp_path, ["single"], (1,), seeds=(0, 1))
    plan(small_disk, {"single-w1-s0": {"python": FILL}})
    out = small_disk / "studies" / "study"
    code, output = scalestudy(
        "run", file, "--out", out, cwd=tmp_path, module="stand_in"
    )
    assert code == 1
    assert "Traceback" not in output
    reason = failures(out)["single-w1-s0"]
    assert (
        "No space left on device" in reason
        and f"{out}/points/single-w1-s0/run-1" in reason
    )
    assert f"single-w1-s0 failed: {reason}" in in_one_line(output)
    assert not workers_of(out)


FILL = """
with open(run.path / "filler", "wb", buffering=0) as file:
    while True:
        file.write(b"0" * 512)
"""

ENDS = """
import os
import sys
import keras
from pathlib import Path

data = "digits"
point = Path.cwd().parent.name  # in a worker, the folder of its run
loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]


def model(data):
    if point == "horovod-w2-s0" and os.environ["RANK"] == "1":
        sys.exit("no data here")
    if point == "ddp-w2-s0" and os.environ["RANK"] == "1":
        raise ValueError("no data here")
    return keras.Sequential([keras.Input(data.input_shape), keras.layers.Flatten(),
                             keras.layers.Dense(data.classes, activation="softmax")])


class Ends(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if point == "multiworker-w2-s0":
            sys.exit(0)
        if point == "mirrored-w2-s0":
            import ctypes
            ctypes.string_at(0)


def callbacks():
    return [Ends()]
"""


def test_a_tasks_file_that_ends_a_real_run_is_named_under_every_strategy(tmp_path):
    (tmp_path / "ends.py").write_text(ENDS)
    file = write(tmp_path, [*SEVERAL, *TORCH, "mirrored"], (2,), task="ends.py")
    code, output = scalestudy("run", file, "--no-report", cwd=tmp_path)
    assert code == 1, output
    expected = {
        "multiworker-w2-s0": "rank 0 ended with exit code 0: the task's file ended the program "
        "by sys.exit(0) (ends.py, line 25, in on_epoch_end)",
        "mirrored-w2-s0": "rank 0 was ended by SIGSEGV (ends.py, line 28, in on_epoch_end)",
    }
    if TORCH:
        expected["ddp-w2-s0"] = (
            "rank 1 ended with exit code 1: ValueError: no data here (ends.py, line 17, in model)"
        )
    if horovod_built():
        expected["horovod-w2-s0"] = (
            "rank 1 ended with exit code 1: the task's file ended the program by sys.exit('no data here') "
            "(ends.py, line 15, in model)"
        )
    assert failures(tmp_path / "studies" / "study") == expected
    assert not workers_of(tmp_path / "studies" / "study")


@pytest.mark.parametrize("strategy", [*SEVERAL, *TORCH])
def test_a_rank_that_is_killed_while_the_others_wait_for_it_is_named(
    tmp_path, strategy
):
    process = start(
        "run",
        write(tmp_path, [strategy], (2,), epochs=500),
        "--no-report",
        cwd=tmp_path,
    )
    folder = tmp_path / "studies" / "study"
    run = folder / "points" / f"{strategy}-w2-s0" / "run-1"
    wait_for((run / "epochs.jsonl").exists, "epochs", process)
    os.kill(pid_of(run, 1), signal.SIGKILL)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 1
    assert (
        "rank 1 was ended by SIGKILL, but not by the kernel for lack of memory"
        in in_one_line(output)
    )
    assert not workers_of(folder)


def pid_of(run: Path, rank: int) -> int:
    pid: int = json.loads((run / "ranks" / f"{rank}.json").read_text())["pid"]
    assert psutil.pid_exists(pid)
    return pid
