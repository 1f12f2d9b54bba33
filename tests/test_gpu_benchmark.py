"""The table of `benchmarks/gpu.py`: ratios within a round, between rows of the same kind."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import bare  # noqa: E402
import gpu_programs  # noqa: E402
import loader  # noqa: E402
from gpu_table import table, ways_table  # noqa: E402
from scalestudy.cluster.placement import Placement  # noqa: E402
from scalestudy.plugins.strategies import traits  # noqa: E402


def row(way: str, strategy: str, workers: int, *rates: float, **phases: float) -> dict:
    named = {"model": "cnn", "way": way, "strategy": strategy, "workers": workers}
    return {**named, "rates": list(rates), "phases": phases}


@pytest.mark.engine
@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"
)
def test_pytorch_is_measured_row_by_row_with_nothing_but_pytorch_numpy_and_this_package(
    tmp_path,
):
    absent = ["tensorflow", "polars", "altair", "vl_convert", "horovod", "torchvision"]
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys\nsys.modules.update(dict.fromkeys({absent}))\n"
    )
    arguments = {
        "engine": "torch",
        "device": "cpu",
        "model": "cnn",
        "rounds": 1,
        "precision": "float32",
    }
    command = ["--small", *(f"--{name}={value}" for name, value in arguments.items())]
    variables = {
        "PYTHONPATH": os.pathsep.join(map(str, [tmp_path, *sys.path])),
        "TORCHDYNAMO_DISABLE": "1",  # compiling takes minutes on a busy machine
    }
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "gpu.py", *command],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    what = "cnn, float32, "
    lines = [
        line.removeprefix(what)
        for line in done.stdout.splitlines()
        if line.startswith(what)
    ]
    rows = dict(line.split(": ", 1) for line in lines)
    ways = ["ours", "plain", "ours, compiled", "plain, compiled", "ours, Keras model"]
    ways += ["ours, DistributedDataParallel of one", "plain, PyTorch's own TF32"]
    assert list(rows) == [
        "device",
        "memory of ours alone",
        *(f"{way}, first three steps" for way in ways),
        *ways,
        "loader",
        "MFU of ours",
        "waits for the device in a step of ours",
        "waits for the device in an evaluation of 4 batches of ours",
        "time of ours by operator",
        "any algorithms",
        "deterministic algorithms",
    ]
    for way in ways:
        assert all(float(number) > 0 for number in re.findall(r"\d+\.\d+", rows[way]))
        assert rows[way].endswith("x plain")
    table = [
        line
        for line in done.stdout.splitlines()
        if line.startswith("| cnn, float32 | ")
    ]
    assert len(table) == 1 and table[0].count(" x)") == 5
    assert "aten::" in rows["time of ours by operator"]
    assert rows["deterministic algorithms"].startswith("the same bits")


def test_rows_end_in_a_table_of_the_ways_with_nothing_for_a_failed_one():
    rows = {
        "ours": "95.0 samples/s, 0.95 x plain",
        "plain": "100.0 samples/s, 1.00 x plain",
    }
    found = {"unet, float32": rows | {"MFU of ours": "0.1 TFLOP/s", "device": "GPU"}}
    assert ways_table(found)[-1] == (
        "| unet, float32 | 95.0 (0.95 x) |  |  | 100.0 (1.00 x) |  | 0.1 TFLOP/s |"
    )


def test_ratios_are_taken_within_a_round_and_against_the_same_devices():
    rows = [
        row("Keras fit", "mirrored", 2, 100.0, 10.0, 50.0),
        row("bare loop", "mirrored", 2, 200.0, 40.0, 80.0),
        row("fused loop", "mirrored", 2, 300.0, 25.0, 75.0),
        row(
            "ours", "mirrored", 2, 150.0, 20.0, 60.0, steps=9.0, input=0.45, other=0.05
        ),
        row("bare loop", "horovod", 2, 60.0, 60.0, 60.0),
        row("ours", "horovod", 2, 30.0, 30.0, 30.0, steps=1.0),
    ]
    lines = table(rows, "gpu", "float32, 3 rounds")
    assert (
        "| cnn | 2 | mirrored | Keras fit | 50.0 [10.0, 100.0] |  |  |  |  |" in lines
    )
    assert (
        "| 60.0 [20.0, 150.0] | 1.50 | 0.75 | 0.80 | steps 95, input 5 |" in lines[-3]
    )
    assert (
        "| cnn | 2 | horovod | ours | 30.0 [30.0, 30.0] | 0.60 | 0.50 |  | steps 100 |"
        in lines
    )
    assert [line.count("|") for line in lines[2:]] == [10] * 8
    assert "| GPUs |" in lines[2] and lines[0].startswith("float32, 3 rounds.")


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_the_bare_loop_of_horovod_is_tuned_as_ours_is_on_that_device(
    monkeypatch, device
):
    from scalestudy.engines.tensorflow import horovod_rendezvous as rendezvous

    asked = []
    monkeypatch.setattr(
        rendezvous, "join", lambda placement, **how: asked.append((placement, how))
    )
    package, horovod = ModuleType("horovod"), ModuleType("horovod.tensorflow")
    horovod.init, package.tensorflow = lambda: None, horovod
    for module in (package, horovod, ModuleType("tensorflow")):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    bare.joined({"strategy": "horovod", "device": device, "workers": 2}, "rank 0 of 2")
    assert asked == [("rank 0 of 2", {"device": device})]


def test_other_programs_load_the_libraries_that_our_workers_load(monkeypatch):
    from scalestudy.hardware.installed import LibraryPath

    begun = []
    monkeypatch.setattr(
        gpu_programs,
        "library_path",
        lambda variables: LibraryPath("/kept", ["/shadow"]),
    )
    monkeypatch.setattr(
        gpu_programs.subprocess, "Popen", lambda command, env, **how: begun.append(env)
    )
    monkeypatch.setattr(gpu_programs, "awaited", lambda processes, logs, what: 1.0)
    point = SimpleNamespace(
        processes=1,
        workers=1,
        launch=SimpleNamespace(cpus_per_worker=1),
        traits=SimpleNamespace(workers_at_once=lambda workers: 1),
    )
    assert gpu_programs.other("bare loop", {"engine": "tensorflow"}, point) == 1.0
    assert [(env["LD_LIBRARY_PATH"], env["RANK"]) for env in begun] == [("/kept", "0")]


def test_the_loader_is_measured_in_host_memory_whatever_gpus_there_are(monkeypatch):
    seen = []
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.setenv(name, "0")
    monkeypatch.setattr(sys, "argv", ["loader.py", "--case", "mnist"])
    monkeypatch.setattr(
        loader, "measure", lambda *case: seen.append(os.environ["CUDA_VISIBLE_DEVICES"])
    )
    loader.main()
    assert seen == ["-1"]


@pytest.mark.parametrize(
    ("strategy", "proxy"), [("multiworker", None), ("horovod", "http://proxy")]
)
def test_bare_ranks_have_the_variables_of_our_workers(monkeypatch, strategy, proxy):
    """gRPC would look for the other ranks at the proxy."""
    monkeypatch.setattr(
        os, "environ", {"http_proxy": "http://proxy", "CUDA_VISIBLE_DEVICES": "0"}
    )
    placement = Placement(1, 2, 1, 2, 0, ("localhost",) * 2, "test", 20_000)
    bare.set_variables({"device": "cpu", "workers": 2}, placement, traits(strategy))
    assert os.environ.get("http_proxy") == proxy
    assert ("TF_CONFIG" in os.environ) == (strategy == "multiworker")
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "-1"
