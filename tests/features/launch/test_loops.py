"""Scripts: how they are recognised, started and recorded."""

import importlib.util
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from scalestudy.analysis.findings import read_study
from scalestudy.cli.options import worker_counts
from scalestudy.cluster.placement import Placement
from scalestudy.config.settings import ResolvedLaunch
from scalestudy.features.launch import script_process
from scalestudy.features.launch.join import (
    FOLDER,
    Start,
    is_helper,
    main_file,
    torchrun_variables,
)
from scalestudy.features.launch.measured_study import folder_path
from scalestudy.features.launch.recording import EpochCounts, Left, Recording
from scalestudy.features.launch.script_runs import (
    _with_ended,
    commands,
    run_script,
    script_of,
    sweep_of,
)
from scalestudy.features.launch.script_text import script_here, script_text
from scalestudy.features.launch.script_workers import Workers
from scalestudy.measure.clock import PhaseClock
from scalestudy.plugins.engines import engine_of_script
from scalestudy.store.records import Failure
from scalestudy.store.run_folder import RunFolder, write_point
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import RunError, UserError

with_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"
)


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
def test_a_script_is_of_the_engine_whose_modules_it_imports(
    file, text, backend, engine
):
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


def test_each_process_has_torchruns_variables():
    place = Placement(
        3,
        4,
        1,
        2,
        1,
        ("localhost", "localhost", "b.invalid", "b.invalid"),
        "slurm",
        20_000,
    )
    found = torchrun_variables(place, {"OMP_NUM_THREADS": "7"})
    expected = {
        "RANK": "3",
        "WORLD_SIZE": "4",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
    }
    expected |= {
        "GROUP_RANK": "1",
        "GROUP_WORLD_SIZE": "2",
        "ROLE_RANK": "3",
        "ROLE_WORLD_SIZE": "4",
    }
    expected |= {"MASTER_PORT": "20000", "MASTER_ADDR": "127.0.0.1"}
    expected |= {"TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0"}
    expected |= {"TORCHELASTIC_USE_AGENT_STORE": "False"}
    assert {name: found.get(name) for name in expected} == expected
    assert "OMP_NUM_THREADS" not in found
    here = Placement(1, 2, 1, 2, 0, ("a.invalid", "a.invalid"), "slurm", 20_000)
    assert torchrun_variables(here, {})["MASTER_ADDR"] == "127.0.0.1"
    assert torchrun_variables(place, {"TORCHELASTIC_RUN_ID": "none"}) == {}
    with pytest.raises(UserError, match="MASTER_PORT"):
        torchrun_variables(Placement(0, 1, 0, 1, 0, ("a",), "alone"), {})


@with_torch
def test_it_is_started_with_the_runs_gpus_and_nothing_of_its_framework_is_decided(
    file, tmp_path
):
    script = script_of(file, (), workers=2, launch={"device": "cpu"}, seed=5)
    first, second = commands(script, RunFolder(tmp_path), 20_000, [0, 1], {"A": "1"})
    assert first.environment["SCALESTUDY_SCRIPT_SEED"] == "5"
    assert first.environment["CUDA_VISIBLE_DEVICES"] == "-1"  # device cpu
    assert not {"KERAS_BACKEND", "CUBLAS_WORKSPACE_CONFIG"} & first.environment.keys()
    assert second.environment["LOCAL_RANK"] == "1"
    on_gpus = replace(
        script, point=script.point.on(launch=ResolvedLaunch(device="auto"))
    )
    instances = {"CUDA_VISIBLE_DEVICES": "MIG-a,MIG-b"}
    for command in commands(on_gpus, RunFolder(tmp_path), 20_000, [0, 1], instances):
        assert (
            command.environment["CUDA_VISIBLE_DEVICES"] == "MIG-a,MIG-b"
        )  # each uses cuda:LOCAL_RANK


@with_torch
def test_a_sweep_is_every_number_of_workers_under_every_seed_one_seed_after_another(
    file,
):
    given = {"launch": {"device": "cpu"}}
    found = [script.point for script in sweep_of(file, (), [1, 2], range(2), **given)]
    assert [point.seed for point in found] == [0, 0, 1, 1]
    assert {(point.workers, point.seed) for point in found} == {
        (1, 0),
        (2, 0),
        (1, 1),
        (2, 1),
    }
    assert [point.place for point in found] == [0, 1, 2, 3]


def test_a_script_that_would_not_be_measured_is_named_and_seeds_that_do_not_differ_stop_it(
    file, monkeypatch
):
    from scalestudy.features.launch import script_runs

    def notes(seeds=(0,)):
        said = []
        scripts = sweep_of(file, (), [1], seeds, launch={"device": "cpu"})
        script_runs.run_sweep(scripts, said.append)
        return " ".join(said)

    monkeypatch.setattr(script_runs, "run_script", lambda script, on_note: None)
    assert "nothing will be measured" in notes()
    file.write_text("import torch, network")
    (file.parent / "network.py").write_text("import scalestudy")
    assert "nothing will be measured" not in notes()

    def same(script, on_note):
        measured(1, 1.0, script.point.seed)

    monkeypatch.setattr(script_runs, "run_script", same)
    with pytest.raises(RunError, match="ddp-w1-s0 and ddp-w1-s1"):
        notes(seeds=(0, 1, 2))
    assert sorted(path.name for path in Path("studies/train/points").iterdir()) == [
        "ddp-w1-s0",
        "ddp-w1-s1",
    ]


def test_processes_that_nothing_joins_are_said_before_they_start_and_after_an_unmeasured_run(
    file, monkeypatch
):
    from scalestudy.features.launch import script_runs

    def notes(workers):
        said = []
        script_runs.run_sweep(
            sweep_of(file, (), workers, [0], launch={"device": "cpu"}), said.append
        )
        return [note for note in said if "init_process_group" in note]

    monkeypatch.setattr(script_runs, "run_script", lambda script, on_note: None)
    assert notes([1]) == []
    (note,) = notes([1, 2])
    assert "its 2 processes" in note and "no scaling" in note
    monkeypatch.undo()
    monkeypatch.chdir(file.parent)
    file.write_text("pass  # no framework\nif 0: import torch")
    assert len(notes([2])) == 2
    file.write_text(
        "if 0:\n    import torch\n    torch.distributed.init_process_group()"
    )
    assert notes([2]) == []


def test_a_job_is_told_once_that_nothing_joins_its_processes(file, monkeypatch, capsys):
    from scalestudy.features.launch import script_runs

    monkeypatch.setattr(os, "execve", lambda *given: None)
    for rank in (0, 1):
        place = Placement(rank, 2, rank, 2, 0, ("localhost",) * 2, "slurm", 20_000)
        script_runs.run_rank(file, (), place, device="cpu", seed=0, out=None)
    assert capsys.readouterr().err.count("its 2 processes") == 1


def test_numbers_of_workers():
    assert worker_counts("1, 2,4,2") == [1, 2, 4]
    for wrong in ("", "0", "1,", "two", "1e3"):
        with pytest.raises(UserError, match="-n"):
            worker_counts(wrong)


def recording(workers, seed=0):
    places = Placement(
        0, workers, 0, workers, 0, ("localhost",) * workers, "torchrun", 20_000
    )
    return Recording.begin(Start(places, "cpu", workers=workers), seed, 2, PhaseClock())


def left(digest="", **values):
    return Left("here", values, 1000, 50.0, digest, 10, "gloo")


def measured(workers, seconds, seed=0, last=2):
    """A run of two epochs; each worker takes a step of 8 samples, and rank 0 another step of `last`."""
    run = recording(workers, seed)
    run.sense("val_accuracy", None)
    for _ in range(2):
        quality = {"val_accuracy": (3.0, 4.0)}
        by_rank = [
            EpochCounts(8, 1, 8, seconds * (rank + 1), 0.0, 0.0, 4.0, quality)
            for rank in range(workers)
        ]
        by_rank[0].samples, by_rank[0].steps = 8 + last, 2
        run.epoch(by_rank)
    run.result(
        [
            left("same", val_accuracy=(1.0, 2.0)) if rank else left("same")
            for rank in range(workers)
        ]
    )
    return run.run


def test_samples_are_summed_over_workers_and_the_slowest_tells_the_time(file):
    result = measured(2, 0.5).result()
    assert result.throughput == 18 / 1.0  # of the second epoch
    assert (result.samples_processed, result.training_samples, result.updates) == (
        36,
        18,
        4,
    )
    assert (result.per_worker_batch, result.global_batch) == (8, 16)
    assert (result.training_seconds, result.steady_epochs) == (2.0, 1)
    assert (result.metric, result.better, result.bounded) == (
        "val_accuracy",
        "higher",
        True,
    )
    assert (result.quality, result.best_quality, result.best_epoch) == (0.5, 0.75, 1)
    assert result.by_script
    assert (result.parameters, result.communication, result.cpu_percent) == (
        10,
        "gloo",
        [50.0, 50.0],
    )


def test_an_epoch_has_the_mean_loss_and_the_quality_of_all_workers(file):
    run = recording(2)
    run.epoch(
        [
            EpochCounts(6, 1, 6, 1.0, 3.0, 0.0, 12.0, {"accuracy": (1.0, 4.0)}),
            EpochCounts(2, 1, 2, 1.0, 3.0, 0.0, 0.0, {"accuracy": (3.0, 4.0)}),
        ]
    )
    (epoch,) = run.run.epochs()
    assert (epoch.loss, epoch.validation) == (1.5, {"accuracy": 0.5})
    assert (epoch.evaluation_seconds, epoch.learning_rate, epoch.input_seconds) == (
        2.0,
        None,
        None,
    )
    run.epoch([EpochCounts(6, 1, 6, 1.0), EpochCounts(2, 1, 2, 1.0, loss=1.0)])
    assert run.run.epochs()[-1].loss is None
    run.epoch([EpochCounts(), EpochCounts()])  # interrupted before its first step
    run.epoch([EpochCounts(6, 1, 6, 1.0, loss=3.0), EpochCounts()])  # unequal shares
    assert [epoch.loss for epoch in run.run.epochs()[2:]] == [0.5]


def test_a_run_keeps_what_its_launcher_knew_of_it(file, monkeypatch):
    (script,) = sweep_of(file, (), [2], [0], launch={"device": "cpu"})
    planned = script.point.on(oversubscribed="2 workers on 1 core")
    planned = planned.model_copy(update={"place": 3})
    write_point(file.parent / "point.json", planned)
    monkeypatch.setenv(FOLDER, str(file.parent))
    run = measured(2, 0.5)
    for record in (run.result(), run.point()):
        assert record.oversubscribed == "2 workers on 1 core"
    assert (run.result().place, run.point().place) == (3, 3)
    assert StudyFolder.open("studies/train").points()[0].oversubscribed


@pytest.mark.parametrize(
    ("steps", "digests", "named"),
    [
        ((2, 2), ("a", "a"), []),
        ((2, 3), ("", ""), ["DistributedSampler"]),
        ((2, 2), ("a", "b"), ["DistributedDataParallel"]),
    ],
)
def test_the_first_epoch_shows_workers_that_train_on_their_own(
    file, capsys, steps, digests, named
):
    run = recording(2)
    run.epoch(
        [
            EpochCounts(6, s, 6, 1.0, digest=digest)
            for s, digest in zip(steps, digests, strict=True)
        ]
    )
    notes = capsys.readouterr().err
    assert [
        word
        for word in ("DistributedSampler", "DistributedDataParallel")
        if word in notes
    ] == named
    run.epoch([EpochCounts(6, s, 6, 1.0) for s in steps])
    assert capsys.readouterr().err == ""


def test_workers_that_part_and_a_script_without_a_step_give_no_result(file):
    run = recording(2)
    with pytest.raises(RunError, match=r"workers\.count"):
        run.result([left(), left()])
    run.epoch([EpochCounts(6, 1, 6, 1.0), EpochCounts(2, 1, 2, 1.0)])
    with pytest.raises(RunError, match="2 different sets"):
        run.result([left("a"), left("b")])
    assert run.run.result() is None


@pytest.mark.slow
def test_runs_make_a_study_that_reports_advice_and_comparisons_read(file, call):
    for workers, seconds, last in (
        (1, 1.0, 10),
        (2, 0.3, 2),
    ):  # 18 samples an epoch either way
        for seed in range(2):
            measured(workers, seconds, seed, last)
    folder = StudyFolder.open("studies/train")
    assert folder.study.sweep.workers == (1, 2)
    assert [point.train.batch_size for point in folder.points()] == [8] * 4
    rows = {row.key.workers: row for row in read_study(folder).rows}
    assert rows[2].runs == 2 and rows[2].strategy == "ddp"
    for command in ("report", "advise", "status"):
        code, out, err = call(command, "studies/train")
        assert code == 0 and "ddp" in out, out + err
    file.write_text("import torch, os\n")
    measured(1, 1.0)
    for words in (
        ("compare", "studies/train", "studies/train-2"),
        ("status", "--verify", "studies/train"),
    ):
        code, out, err = call(*words)
        assert code == 0, out + err


def test_each_version_of_a_script_has_a_folder_of_its_own(file, tmp_path):
    measured(1, 1.0)
    assert str(folder_path(script_here(), None)) == "studies/train"
    assert str(folder_path(script_text(file, ["--lr", "1"]), None)) == "studies/train"
    file.write_text("import torch  # the same code\n")
    assert str(folder_path(script_here(), None)) == "studies/train"
    file.write_text("import torch, network\n")
    (file.parent / "network.py").write_text("width = 1\n")
    assert str(folder_path(script_here(), None)) == "studies/train-2"
    version = script_here()
    (file.parent / "network.py").write_text("width = 2\n")
    assert script_here().source != version.source
    with pytest.raises(UserError, match="another version"):
        folder_path(script_here(), "studies/train")


def test_other_arguments_of_a_script_are_other_rows_of_its_study(
    file, monkeypatch, call
):
    monkeypatch.setenv("SCALESTUDY_SCRIPT_OUT", "here")
    for arguments in ([], ["--lr", "0.1"], ["--lr", "0.2"]):
        monkeypatch.setattr(sys, "argv", [str(file), *arguments])
        measured(1, 1.0)
    folder = StudyFolder.open("here")
    assert folder.study.sweep.other == {
        "script.arguments": ["", "--lr 0.1", "--lr 0.2"]
    }
    assert len(read_study(folder).rows) == 3
    code, out, err = call("report", "here")
    assert code == 0 and "--lr 0.2" in out, out + err


def test_a_batch_that_grows_with_the_workers_is_one_row_of_each_number(
    file, tmp_path, monkeypatch
):
    arguments = ("--batch", "{16*workers}")
    swept = sweep_of(file, arguments, [1, 2], [0], launch={"device": "cpu"})
    assert [script.filled()[1] for script in swept] == ["16", "32"]
    assert [script.point.name for script in swept] == [
        "ddp-w1-s0-arguments=--batch%20%27%7B16%2Aworkers%7D%27",
        "ddp-w2-s0-arguments=--batch%20%27%7B16%2Aworkers%7D%27",
    ]
    (command, _) = commands(swept[1], RunFolder(tmp_path), 20_000, [0, 1], {})
    assert command.arguments[-2:] == ["--batch", "32"]
    for name, value in swept[1].variables().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", [str(file), "--batch", "32"])
    assert measured(2, 1.0).point().name == swept[1].point.name


def test_launcher_and_worker_agree_on_the_version_of_a_script_that_changes_its_path(
    file, monkeypatch
):
    (file.parent / "native").mkdir()
    script, models = file.parent / "native" / "training.py", file.parent / "models.py"
    script.write_text("import sys\nsys.path.insert(0, '..')\nimport torch, models\n")
    models.write_text("width = 1\n")
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(script))
    (swept,) = sweep_of(script, (), [1], [0], launch={"device": "cpu"})
    launched = swept.point.data.source
    for name, value in swept.variables().items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(
        str(file.parent)
    )  # as the script has done in the worker
    assert script_here().source == launched
    models.write_text("width = 2\n")
    monkeypatch.delenv("SCALESTUDY_SCRIPT_SOURCE")
    assert script_here().source != launched == swept.point.data.source


def test_a_run_whose_epochs_grow_with_the_workers_is_refused_and_an_earlier_one_withdrawn(
    file, monkeypatch, capsys
):
    def epoch(workers):
        run = recording(workers)
        run.epoch(
            [EpochCounts(100, 10, 10, 1.0, loss=float(rank)) for rank in range(workers)]
        )
        return run

    one = epoch(1)
    one.result([left("same")])
    with pytest.raises(
        RunError, match=r"(?s)200 with 2.*DistributedSampler.*--weak-scaling"
    ):
        epoch(2)
    monkeypatch.setenv("SCALESTUDY_SCRIPT_WEAK", "1")
    two = epoch(2)
    two.result([left("same"), left("same")])
    monkeypatch.delenv("SCALESTUDY_SCRIPT_WEAK")
    capsys.readouterr()
    epoch(1)
    assert "ddp-w2-s0 is withdrawn" in capsys.readouterr().err
    assert two.run.result() is None and "200 with 2" in two.run.failure().reason
    assert one.run.result() is not None


def test_a_quality_of_fewer_samples_with_more_workers_is_said(file, capsys):
    for workers, rows in ((1, 224), (2, 8)):
        run = recording(workers)
        run.sense("accuracy", None)
        counts = EpochCounts(
            100 // workers, 10, 10, 1.0, qualities={"accuracy": (rows / 2, rows)}
        )
        run.epoch([counts] * workers)
        run.result([left("same")] * workers)
        assert run.run.result().evaluated_samples == rows * workers
    assert (
        "accuracy is of 16 samples, and of 224 in ddp-w1-s0" in capsys.readouterr().err
    )


def test_workers_that_never_joined_are_refused_after_the_first_epoch(file):
    run = recording(2)
    with pytest.raises(
        RunError, match=r"each trains on its own.*\n?.*DistributedDataParallel"
    ):
        run.epoch(
            [
                EpochCounts(6, 1, 6, 1.0, joined=1, digest="a"),
                EpochCounts(6, 1, 6, 1.0, joined=1, digest="a"),
            ]
        )
    assert run.run.epochs() == []


@with_torch
def test_a_negative_number_of_samples_is_refused_where_it_is_counted(file):
    workers = Workers(Start(Placement(0, 1, 0, 1, 0, ("localhost",), "test"), "cpu"))
    for epoch in workers.epochs(2):
        workers.count(8)
        if epoch == 1:
            for samples in (-10, -1):
                with pytest.raises(UserError, match=r"workers\.count"):
                    workers.count(samples)
    workers.finish()
    (run,) = read_study(StudyFolder.open("studies/train")).runs
    assert run.result.samples_processed == 16


def test_a_process_that_has_ended_its_script_leaves_others_that_hang(
    tmp_path, monkeypatch
):
    (tmp_path / "train.py").write_text("")
    monkeypatch.setattr(script_process, "LEAVE_AFTER", 0.1)
    monkeypatch.setenv("SCALESTUDY_SCRIPT_STRATEGY", "ddp")
    monkeypatch.setattr(sys, "argv", sys.argv)
    place = Placement(1, 2, 1, 2, 0, ("localhost",) * 2, "torchrun", 20_000)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert script_process._run(tmp_path, str(tmp_path / "train.py"), [], place) == 0
    assert script_process.done_file(tmp_path, 1).exists()


def test_a_rank_that_fails_by_itself_is_to_blame_whichever_has_ended_before(tmp_path):
    failure = Failure(
        rank=0, exit_code=1, reason="rank 0 ended with exit code 1: ValueError: own"
    )
    named = _with_ended(RunFolder(tmp_path), failure, [1])
    assert (
        named.rank == 0
        and named.reason == f"{failure.reason}; rank 1 had ended the script before"
    )


@pytest.mark.slow
@with_torch
def test_a_rank_that_leaves_early_is_named_not_the_one_that_waits_for_it(
    file, monkeypatch
):
    file.write_text(
        "import os, torch.distributed as together\n"
        "together.init_process_group('gloo')\n"
        "if os.environ['RANK'] == '1':\n"
        "    print('nothing left for me', flush=True)\n"
        "    raise SystemExit(0)\n"
        "together.barrier()\n"
    )
    # As after LEAVE_AFTER seconds: its sockets close, and the other one's sum fails.
    monkeypatch.setattr(
        "scalestudy.features.launch.script_process.__name__", "leaves_at_once"
    )
    file.with_name("leaves_at_once.py").write_text(
        "import os, sys\nfrom scalestudy.features.launch import script_process\n"
        "script_process.LEAVE_AFTER = 0.0\n"
        "code = script_process.main(sys.argv[1:])\nsys.stderr.flush()\nos._exit(code)\n"
    )
    monkeypatch.setenv(
        "PYTHONPATH",
        os.pathsep.join([str(file.parent), os.environ.get("PYTHONPATH", "")]),
    )
    script = script_of(file, (), workers=2, launch={"device": "cpu"})
    with pytest.raises(RunError) as caught:
        run_script(script, print)
    assert caught.value.received.startswith(
        "rank 1 ended the script early, with exit code 0"
    )
    assert "rank 0 ended with exit code 1" in caught.value.received
    assert "| nothing left for me" in caught.value.received
