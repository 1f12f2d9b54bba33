"""The whole way through the command line, with real workers."""

import json
import os
import signal
from pathlib import Path

import pytest

from command_line import plan, scalestudy, start, wait_for, workers_of, write
from scalestudy.engines.tensorflow.installation import library_file as horovod_built

pytestmark = pytest.mark.engine

ROOT = Path(__file__).parents[1]


def results(folder: Path) -> dict[str, dict]:
    return {
        file.parts[-3]: json.loads(file.read_text())
        for file in folder.glob("points/*/run-*/result.json")
    }


PLANTED = {
    name: f"planted-{name.lower()}"
    for name in (
        "TF_TOKEN",
        "TF_TOKEN_app_terraform_io",
        "TF_VAR_password",
        "HOROVOD_SECRET_KEY",
        "NCCL_AUTH_TOKEN",
        "XLA_TOKEN",
        "KERAS_API_KEY",
        "CUDA_LICENSE",
        "OMP_SECRET",
        "SLURM_JWT",
        "WANDB_API_KEY",
    )
}
"""Variables of a user that must not affect a study."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[Path, str]:
    """A study over all strategies, run once."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in PLANTED.items():
            patch.setenv(name, value)
        return run_all(tmp_path_factory)


def run_all(tmp_path_factory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("study")
    strategies = [
        "single",
        "mirrored",
        "multiworker",
        "virtual",
        *(["horovod"] if horovod_built() else []),
    ]
    code, output = scalestudy("run", write(folder, strategies, (1, 2)), cwd=folder)
    assert code == 0, output
    return folder / "studies" / "study", output


def test_every_point_is_run_and_names_its_quality(finished):
    outcome = results(finished[0])
    assert len(outcome) == (9 if horovod_built() else 7)
    assert all(
        result["metric"] == "accuracy" and result["quality"] > 0.5
        for result in outcome.values()
    )


def test_one_worker_is_one_worker_under_every_strategy(finished):
    outcome = [
        result for result in results(finished[0]).values() if result["workers"] == 1
    ]
    assert len({result["weights_digest"] for result in outcome}) == 1


def test_two_workers_are_two_workers_under_every_strategy(finished):
    outcome = [
        result for result in results(finished[0]).values() if result["workers"] == 2
    ]
    assert (
        max(result["quality"] for result in outcome)
        - min(result["quality"] for result in outcome)
        < 0.01
    )
    assert {result["global_batch"] for result in outcome} == {128}
    assert {result["samples_processed"] for result in outcome} == {
        2 * result["training_samples"] for result in outcome
    }


def test_each_rank_leaves_its_log_and_its_environment(finished):
    for result in results(finished[0]).values():
        processes = (
            result["workers"]
            if result["implementation"] in ("multiworker", "horovod")
            else 1
        )
        run = finished[0] / "points" / result["name"] / "run-1"
        ranks = [
            json.loads(line) for line in (run / "ranks.jsonl").read_text().splitlines()
        ]
        assert [rank["rank"] for rank in ranks] == list(range(processes))
        assert all(
            (run / "logs" / f"rank-{rank}.log").exists() for rank in range(processes)
        )
        assert len(result["peak_memory_bytes"]) == len(result["processes"]) == processes
        assert all(item["cpu_seconds"] > 0 for item in result["processes"])
        assert [node["rank"] for node in result["nodes"]] == [0] and result[
            "usage_of"
        ] == "run"


def test_every_strategy_counts_the_same_operations_for_a_sample(finished):
    outcome = list(results(finished[0]).values())
    (flops,) = {result["flops_per_sample"] for result in outcome}
    assert flops > 2 * outcome[0]["parameters"]


def test_no_secret_of_the_user_or_the_run_is_written_or_printed(finished):
    files = [file for file in finished[0].rglob("*") if file.is_file()]
    assert (
        any(b"HOROVOD_CYCLE_TIME" in file.read_bytes() for file in files)
        or not horovod_built()
    )
    for text in (b"planted-", b"SCALESTUDY_SECRET", b"HOROVOD_GLOO_RENDEZVOUS_ADDR"):
        assert not [file for file in files if text in file.read_bytes()], text
        assert text not in finished[1].encode()
    assert not [file for file in files if file.name == ".secret"]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_each_worker_has_a_core_of_its_own(finished):
    run = finished[0] / "points" / "multiworker-w2-s0" / "run-1"
    cpus = [
        json.loads(line)["cpus"]
        for line in (run / "ranks.jsonl").read_text().splitlines()
    ]
    assert [len(cores) for cores in cpus] == [1, 1]
    assert cpus[0] != cpus[1]


def test_phases_add_up_to_the_wall_time(finished):
    for result in results(finished[0]).values():
        assert sum(result["phases"].values()) == pytest.approx(
            result["wall_seconds"], rel=0.02
        )
        assert (
            result["training_seconds"]
            <= result["phases"]["steps"] + result["phases"]["input"] + 0.01
        )


def test_the_frameworks_chatter_stays_off_the_screen(finished):
    assert "oneDNN" not in finished[1]
    assert "WARNING" not in finished[1]


def test_the_report_is_written_and_named(finished):
    report = finished[0] / "report"
    assert str(report / "report.html") in finished[1].replace("\n", "")
    assert {"report.html", "table.csv", "table.json", "speedup.png", "speedup.svg"} <= {
        p.name for p in report.iterdir()
    }
    rows = json.loads((report / "table.json").read_text())["rows"]
    assert {row["strategy"] for row in rows} >= {
        "single",
        "mirrored",
        "multiworker",
        "virtual",
    }


def test_a_finished_study_runs_nothing_again(finished):
    before = {
        file: file.stat().st_mtime_ns
        for file in finished[0].glob("points/*/*/result.json")
    }
    code, _ = scalestudy("run", "study.toml", "--no-report", cwd=finished[0].parents[1])
    assert code == 0
    assert {
        file: file.stat().st_mtime_ns
        for file in finished[0].glob("points/*/*/result.json")
    } == before


def test_another_study_is_refused_in_the_same_folder(finished, tmp_path):
    other = write(tmp_path, epochs=3)
    code, output = scalestudy("run", other, "--out", finished[0], cwd=tmp_path)
    assert code == 2
    assert "epochs" in output
    assert len(results(finished[0])) in (7, 9)


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
)
def test_a_study_killed_at_any_moment_leaves_no_worker_and_is_completed_later(
    tmp_path, number
):
    file = write(
        tmp_path, ["multiworker"], (1, 2), epochs=8
    )  # a text by which one worker comes first
    plan(tmp_path, {"multiworker-w2-s0": {"seconds": 300}})
    process = start("run", file, "--no-report", cwd=tmp_path, module="stand_in")
    folder = tmp_path / "studies" / "study"
    wait_for(
        (folder / "points/multiworker-w2-s0/run-1/progress.json").exists,
        "a start",
        process,
    )
    (done,) = folder.glob("points/multiworker-w1-s0/*/result.json")
    when = done.stat().st_mtime_ns
    wait_for(
        lambda: len(workers_of(folder)) == 2 * 2,
        "both workers, each below what sees its end",
        process,
    )
    process.send_signal(number)
    process.communicate(timeout=600)
    assert process.returncode == (
        128 + number if number != signal.SIGKILL else -signal.SIGKILL
    )
    wait_for(lambda: not workers_of(folder), "the workers to end")
    run = folder / "points/multiworker-w2-s0/run-1"
    assert (run / "checkpoint.npz").exists() == (number != signal.SIGKILL)
    if number != signal.SIGKILL:
        assert (
            json.loads((run / "failure.json").read_text())["signal"]
            == signal.Signals(number).name
        )
    plan(tmp_path, {})
    code, output = scalestudy(
        "run", file, "--no-report", cwd=tmp_path, module="stand_in"
    )
    assert code == 0, output
    assert set(results(folder)) == {"multiworker-w1-s0", "multiworker-w2-s0"}
    assert list(folder.glob("points/multiworker-w1-s0/*/result.json")) == [done]
    assert done.stat().st_mtime_ns == when


@pytest.mark.slow
def test_a_study_in_the_background_ignores_ctrl_c_and_hangups_and_stops_on_request(
    tmp_path,
):
    plan(tmp_path, {"multiworker-w2-s0": {"seconds": 300}})
    file = write(tmp_path, ["multiworker"], (2,))
    background = ["env", "--ignore-signal=INT,HUP"]  # as nohup scalestudy run … &
    process = start(
        "run", file, "--no-report", cwd=tmp_path, module="stand_in", before=background
    )
    folder = tmp_path / "studies" / "study"
    run = folder / "points/multiworker-w2-s0/run-1"
    wait_for((run / "progress.json").exists, "a start", process)
    wait_for(
        lambda: len(workers_of(folder)) == 2 * 2,
        "both workers, each below what sees its end",
        process,
    )
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        process.send_signal(number)
    process.communicate(timeout=600)
    assert process.returncode == 128 + signal.SIGTERM
    wait_for(lambda: not workers_of(folder), "the workers to end")
    assert (run / "checkpoint.npz").exists()
    assert json.loads((run / "failure.json").read_text())["signal"] == "SIGTERM"


def test_workers_that_compute_end_with_their_study_too(tmp_path):
    process = start(
        "run",
        write(tmp_path, ["multiworker"], (2,), epochs=500),
        "--no-report",
        cwd=tmp_path,
    )
    folder = tmp_path / "studies" / "study"
    wait_for(
        (folder / "points/multiworker-w2-s0/run-1/epochs.jsonl").exists,
        "epochs",
        process,
    )
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=600)
    assert process.returncode == 130
    assert not workers_of(folder)


def test_a_failed_run_is_named_with_its_last_lines_and_keeps_no_other_from_running(
    tmp_path,
):
    file = write(tmp_path, ["multiworker"], (1, 2))
    plan(tmp_path, {"multiworker-w1-s0": {"raise": "the sky has fallen"}})
    code, output = scalestudy(
        "run", file, "--no-report", cwd=tmp_path, module="stand_in"
    )
    assert code == 1
    assert "rank 0 ended with exit code 1: RuntimeError: the sky has fallen" in output
    assert "the sky has fallen" in output
    folder = tmp_path / "studies" / "study"
    assert set(results(folder)) == {"multiworker-w2-s0"}
    assert not workers_of(folder)


STOPPING = """
import keras
data = "digits"
def model(data):
    return keras.Sequential([keras.Input(data.input_shape), keras.layers.Flatten(),
                             keras.layers.Dense(data.classes, activation="softmax")])
loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
def callbacks():
    return [keras.callbacks.EarlyStopping("val_loss", patience=1, min_delta=9, restore_best_weights=True)]
"""


def test_what_a_callback_decides_on_rank_0_holds_on_every_rank(tmp_path):
    (tmp_path / "stopping.py").write_text(STOPPING)
    strategies = ["multiworker", *(["horovod"] if horovod_built() else [])]
    file = write(tmp_path, strategies, (2,), epochs=9, task="stopping.py")
    code, output = scalestudy("run", file, "--no-report", cwd=tmp_path)
    assert code == 0, output
    outcome = results(tmp_path / "studies" / "study").values()
    assert sorted(result["implementation"] for result in outcome) == sorted(strategies)
    assert all(result["epochs"] < 9 for result in outcome)


def test_more_workers_than_cores_run_and_their_timing_says_nothing_about_speed(
    tmp_path,
):
    count = len(os.sched_getaffinity(0)) + 1
    file = write(tmp_path, ["mirrored"], (1, count))
    code, output = scalestudy("run", file, "--no-report", cwd=tmp_path)
    assert code == 0, output
    _, report = scalestudy("report", "studies/study", "--format", "json", cwd=tmp_path)
    rows = json.loads(report)["rows"]
    over = next(row for row in rows if row["workers"] == count)
    assert over["oversubscribed"]
    assert over["speedup"] is None
    assert over["quality"] > 0.5


def test_two_studies_at_once_do_not_meet(tmp_path):
    folders = [tmp_path / name for name in ("one", "two")]
    processes = []
    for folder in folders:
        folder.mkdir()
        plan(folder, {"*": {"meet": True, "seconds": 3}})
        file = write(folder, ["multiworker"], (2,))
        processes.append(
            start("run", file, "--no-report", cwd=folder, module="stand_in")
        )
    for process in processes:
        output, _ = process.communicate(timeout=900)
        assert process.returncode == 0, output
    spans = [
        [float(time) for time in (folder / "studies" / "spans").read_text().split()[1:]]
        for folder in folders
    ]
    assert max(start for start, _ in spans) < min(end for _, end in spans), (
        "they ran one after the other"
    )


def code_blocks(language: str) -> list[str]:
    parts = (ROOT / "README.md").read_text().split("```")
    return [
        part.partition("\n")[2]
        for part in parts[1::2]
        if part.startswith(language + "\n")
    ]


def test_the_readmes_own_task_runs_as_written(tmp_path):
    task = next(block for block in code_blocks("python") if "def model(" in block)
    (tmp_path / "my_task.py").write_text(task)
    (tmp_path / "study.toml").write_text(
        'task = "my_task.py"\n[train]\nepochs = 2\n[sweep]\nstrategy = ["virtual"]\nworkers = 2\nseed = 0\n'
    )
    code, output = scalestudy("run", "--out", "run", cwd=tmp_path)
    assert code == 0, output
    (result,) = results(tmp_path / "run").values()
    assert result["metric"] == "accuracy"


def test_the_readmes_study_file_is_complete(tmp_path):
    from scalestudy.config.expand import expand
    from scalestudy.config.parse import load_study

    text = next(block for block in code_blocks("toml") if "[sweep]" in block)
    (tmp_path / "study.toml").write_text(text)
    (tmp_path / "my_task.py").write_text(
        next(block for block in code_blocks("python") if "def model(" in block)
    )
    assert expand(load_study(tmp_path / "study.toml"), gpus=0, cores=2)
