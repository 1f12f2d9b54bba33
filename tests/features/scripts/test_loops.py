"""Scripts with their own training loop: how they are recognised, started and recorded."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from scalestudy.analysis.read import read_study
from scalestudy.cli.launch import worker_counts
from scalestudy.cluster.placement import Placement
from scalestudy.features.scripts.detect import is_helper, main_file
from scalestudy.features.scripts.join import Start, strategy_of
from scalestudy.features.scripts.launch import commands, script_of, start_lines, sweep_of
from scalestudy.features.scripts.measured_study import folder_path, script_here, script_text
from scalestudy.features.scripts.recording import Left, Recording, Tally
from scalestudy.features.scripts.torchrun import torchrun_variables
from scalestudy.measure.clock import PhaseClock
from scalestudy.study.engines import engine_of_script, engine_traits
from scalestudy.study.run_folder import RunFolder
from scalestudy.study.settings import ResolvedLaunch
from scalestudy.study.store import StudyFolder
from scalestudy.util.errors import RunError, UserError

with_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A script that appears to be the one of this process."""
    script = tmp_path / "train.py"
    script.write_text("import torch\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(script), raising=False)
    monkeypatch.setattr(sys, "argv", [str(script)])
    return script


@pytest.mark.parametrize(
    ("text", "backend", "engine"),
    [
        ("import torch.nn as nn", "", "torch"),
        ("def main():\n    from accelerate import Accelerator", "", "torch"),
        ("import lightning as L", "", "torch"),
        ("import keras\nimport torch", "", "tensorflow"),
        ("import keras\nimport torch", "torch", "torch"),
        ("import tensorflow as tf", "torch", "tensorflow"),
        ("from .torch import x", "", "tensorflow"),
        ("import numpy", "", "tensorflow"),
        ("import torch\nthis is no Python", "", "tensorflow"),
    ],
)
def test_a_script_is_of_the_engine_whose_modules_it_imports(file, text, backend, engine):
    file.write_text(text)
    assert engine_of_script(file, {"KERAS_BACKEND": backend}).name == engine


def test_a_process_that_loads_data_knows_the_script_and_that_it_is_no_worker():
    main, spawned = ModuleType("__main__"), ModuleType("__mp_main__")
    main.__file__, spawned.__file__ = "launcher.py", "train.py"
    assert main_file({"__main__": main, "__mp_main__": main}) == Path("launcher.py")
    assert main_file({"__main__": main, "__mp_main__": spawned}) == Path("train.py")
    assert main_file({"__main__": ModuleType("__main__")}) is None
    assert is_helper({"__main__": main, "__mp_main__": spawned})
    assert not is_helper({"__main__": main, "__mp_main__": main})


def test_its_strategy_is_that_of_processes_and_no_other():
    torch = engine_traits("torch")
    assert strategy_of("native", torch).name == strategy_of("ddp").name == "ddp"
    with pytest.raises(UserError, match="torch-virtual"):
        strategy_of("torch-virtual", torch)


def test_each_process_has_torchruns_variables():
    place = Placement(3, 4, 1, 2, 1, ("localhost", "localhost", "b.invalid", "b.invalid"), "slurm", 20_000)
    found = torchrun_variables(place, {"OMP_NUM_THREADS": "7"})
    expected = {
        "RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "1",
        "GROUP_WORLD_SIZE": "2", "ROLE_RANK": "3", "ROLE_WORLD_SIZE": "4", "MASTER_PORT": "20000",
        "MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_USE_AGENT_STORE": "False",
        "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0",
    }  # fmt: skip
    assert {name: found.get(name) for name in expected} == expected
    assert "OMP_NUM_THREADS" not in found
    here = Placement(1, 2, 1, 2, 0, ("a.invalid", "a.invalid"), "slurm", 20_000)
    assert torchrun_variables(here, {})["MASTER_ADDR"] == "127.0.0.1"
    assert torchrun_variables(place, {"TORCHELASTIC_RUN_ID": "none"}) == {}
    with pytest.raises(UserError, match="MASTER_PORT"):
        torchrun_variables(Placement(0, 1, 0, 1, 0, ("a",), "alone"), {})


@with_torch
def test_it_is_started_with_the_runs_gpus_and_nothing_of_its_framework_is_decided(file, tmp_path):
    script = script_of(file, (), strategy="native", workers=2, launch={"device": "cpu"}, seed=5)
    first, second = commands(script, RunFolder(tmp_path), 20_000, [0, 1], {"A": "1"})
    assert first.environment["SCALESTUDY_SCRIPT_STRATEGY"] == "ddp"
    assert first.environment["SCALESTUDY_SCRIPT_SEED"] == "5"
    assert first.environment["CUDA_VISIBLE_DEVICES"] == "-1"  # device cpu
    assert not {"KERAS_BACKEND", "CUBLAS_WORKSPACE_CONFIG"} & first.environment.keys()
    assert second.environment["LOCAL_RANK"] == "1"
    on_gpus = replace(script, point=script.point.on(launch=ResolvedLaunch(device="auto")))
    instances = {"CUDA_VISIBLE_DEVICES": "MIG-a,MIG-b"}
    for command in commands(on_gpus, RunFolder(tmp_path), 20_000, [0, 1], instances):
        assert command.environment["CUDA_VISIBLE_DEVICES"] == "MIG-a,MIG-b"  # each uses cuda:LOCAL_RANK
        assert command.environment["NCCL_MULTI_RANK_GPU_ENABLE"] == "1"
    *_, srun = start_lines(script)
    assert srun.endswith(f"srun --kill-on-bad-exit=1 --ntasks=2 --cpus-per-task=1 scalestudy launch {file}")


@with_torch
def test_a_sweep_is_every_number_of_workers_under_every_seed_one_seed_after_another(file):
    given = {"strategy": "native", "launch": {"device": "cpu"}}
    found = [script.point for script in sweep_of(file, (), [1, 2], range(2), **given)]
    assert [point.seed for point in found] == [0, 0, 1, 1]
    assert {(point.workers, point.seed) for point in found} == {(1, 0), (2, 0), (1, 1), (2, 1)}
    assert [point.turn.place for point in found] == [0, 1, 2, 3]
    file.write_text("import keras\n")
    with pytest.raises(UserError, match="2 runs"):
        sweep_of(file, (), [1, 2], range(1), **given)


def test_numbers_of_workers():
    assert worker_counts("1, 2,4,2") == [1, 2, 4]
    for wrong in ("", "0", "1,", "two", "1e3"):
        with pytest.raises(UserError, match="-n"):
            worker_counts(wrong)


def recording(workers, seed=0):
    places = Placement(0, workers, 0, workers, 0, ("localhost",) * workers, "torchrun", 20_000)
    return Recording(Start(places, workers, "ddp", "cpu"), seed, 2, PhaseClock())


def left(digest="", **values):
    return Left("here", values, 1000, 50.0, digest, 10, "gloo")


def measured(workers, seconds, seed=0):
    """A run of two epochs; each worker takes a step of 8 samples, and rank 0 another step of 2."""
    run = recording(workers, seed)
    run.sense("val_accuracy", None)
    for _ in range(2):
        quality = {"val_accuracy": (3.0, 4.0)}
        tallies = [Tally(8, 1, 8, seconds * (rank + 1), 0.0, 0.0, 4.0, quality) for rank in range(workers)]
        tallies[0].samples, tallies[0].steps = 10, 2
        run.epoch(tallies)
    run.result([left("same", val_accuracy=(1.0, 2.0)) if rank else left("same") for rank in range(workers)])
    return run.run


def test_samples_are_summed_over_workers_and_the_slowest_tells_the_time(file):
    result = measured(2, 0.5).result()
    assert result.throughput == 18 / 1.0  # of the second epoch
    assert (result.samples_processed, result.training_samples, result.updates) == (36, 18, 4)
    assert (result.per_worker_batch, result.global_batch) == (8, 16)
    assert (result.training_seconds, result.steady_epochs) == (2.0, 1)
    assert (result.metric, result.better, result.bounded) == ("val_accuracy", "higher", True)
    assert (result.quality, result.best_quality, result.best_epoch) == (0.5, 0.75, 1)
    assert result.by_script
    assert (result.parameters, result.communication, result.cpu_percent) == (10, "gloo", [50.0, 50.0])


def test_an_epoch_has_the_mean_loss_and_the_quality_of_all_workers(file):
    run = recording(2)
    run.epoch([
        Tally(6, 1, 6, 1.0, 3.0, 0.0, 12.0, {"accuracy": (1.0, 4.0)}),
        Tally(2, 1, 2, 1.0, 3.0, 0.0, 0.0, {"accuracy": (3.0, 4.0)}),
    ])  # fmt: skip
    (epoch,) = run.run.epochs()
    assert (epoch.loss, epoch.validation) == (1.5, {"accuracy": 0.5})
    assert (epoch.evaluation_seconds, epoch.learning_rate, epoch.input_seconds) == (2.0, None, None)
    run.epoch([Tally(6, 1, 6, 1.0), Tally(2, 1, 2, 1.0, loss=1.0)])
    assert run.run.epochs()[-1].loss is None
    run.epoch([Tally(), Tally()])  # interrupted before its first step
    run.epoch([Tally(6, 1, 6, 1.0, loss=3.0), Tally()])  # unequal shares
    assert [epoch.loss for epoch in run.run.epochs()[2:]] == [0.5]


def test_workers_that_part_and_a_script_without_a_step_give_no_result(file):
    run = recording(2)
    with pytest.raises(RunError, match=r"workers\.count"):
        run.result([left(), left()])
    run.epoch([Tally(6, 1, 6, 1.0), Tally(2, 1, 2, 1.0)])
    with pytest.raises(RunError, match="2 different sets"):
        run.result([left("a"), left("b")])
    assert run.run.result() is None


@pytest.mark.slow
def test_runs_make_a_study_that_reports_advice_and_comparisons_read(file, call):
    for workers, seconds in ((1, 1.0), (2, 0.3)):
        for seed in range(2):
            measured(workers, seconds, seed)
    folder = StudyFolder.open("studies/train")
    assert folder.study.sweep.workers == (1, 2)
    assert [point.train.batch_size for point in folder.points()] == [8] * 4
    rows = {row.key.workers: row for row in read_study(folder).rows}
    assert rows[2].runs == 2 and rows[2].strategy == "ddp"
    for command in (("report", "studies/train"), ("advise", "studies/train"), ("status", "studies/train")):
        code, out, err = call(*command)
        assert code == 0, out + err
        assert "ddp" in out
    file.write_text("import torch  # another version\n")
    measured(1, 1.0)
    code, out, err = call("compare", "studies/train", "studies/train-2")
    assert code == 0, out + err
    code, out, err = call("status", "--verify", "studies/train")
    assert code == 0, out + err


def test_each_version_of_a_script_has_a_folder_of_its_own(file, tmp_path):
    measured(1, 1.0)
    assert str(folder_path(script_here(), None)) == "studies/train"
    assert str(folder_path(script_text(file, ["--lr", "1"]), None)) == "studies/train-2"
    file.write_text("import torch  # another version\n")
    assert str(folder_path(script_here(), None)) == "studies/train-2"
    with pytest.raises(UserError, match="another version"):
        folder_path(script_here(), "studies/train")


def test_arguments_of_a_script_are_swept(file, monkeypatch):
    for rate in ("0.1", "0.2"):
        monkeypatch.setattr(sys, "argv", [str(file), "--lr", rate])
        measured(1, 1.0)
    folder = StudyFolder.open("studies/train")
    assert folder.study.sweep.other == {"script.arguments": ["--lr 0.1", "--lr 0.2"]}
    assert len(read_study(folder).rows) == 2
