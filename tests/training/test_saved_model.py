"""Plain Keras finds in the saved model what a result states about it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from data_settings import data_of
from few_digits import few_digits
from made_points import made_point
from paths import SOURCE, SUPPORT
from scalestudy.data.preparation import prepare
from scalestudy.data.split import ensure_split
from scalestudy.engines.tensorflow.installation import library_file as horovod_built
from scalestudy.launch import reserve
from scalestudy.store.run_folder import RunFolder, write_point
from scalestudy.training import gallery

pytestmark = pytest.mark.engine

TASK = SUPPORT / "averaging_task.py"
PROCESSES = {"mirrored": 1, "multiworker": 2, "horovod": 2}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    prepared = prepare(data_of(few_digits(cache, 300), cache=cache))
    return prepared, ensure_split(prepared, 100 / 300, 0)


def start(
    path: Path, data, implementation: str, port: int
) -> list[subprocess.Popen[str]]:
    """Start the two workers of a run of two epochs in the folder `path`."""
    prepared, split = data
    train = {
        "batch_size": 20,
        "batch": "global",
        "optimizer": "momentum",
        "learning_rate": 0.02,
    }
    point = made_point(
        implementation,
        train | {"evaluate_every": 2},
        task=str(TASK),
        workers=2,
        terms={"implementation": implementation, "launch": {"device": "cpu"}},
        files={"prepared": str(prepared.path), "split": str(split.path)},
    )
    path.mkdir()
    write_point(path / "point.json", point)
    processes, size = [], PROCESSES[implementation]
    for rank in range(size):
        place = {
            "RANK": rank,
            "WORLD_SIZE": size,
            "LOCAL_RANK": rank,
            "LOCAL_WORLD_SIZE": size,
            "MASTER_ADDR": "localhost",
            "MASTER_PORT": port,
            "OMP_NUM_THREADS": 1,
            "PYTHONPATH": SOURCE,
        }
        environment = os.environ | {key: str(value) for key, value in place.items()}
        command = [sys.executable, "-m", "scalestudy.worker", str(path)]
        processes.append(
            subprocess.Popen(
                command,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    return processes


@pytest.fixture(scope="module")
def runs(data, tmp_path_factory) -> dict[str, RunFolder]:
    """A run of each strategy, one after another."""
    folder = tmp_path_factory.mktemp("runs")
    names = [name for name in PROCESSES if name != "horovod" or horovod_built()]
    with reserve.ports(3) as port:
        for name in names:
            for process in start(folder / name, data, name, port):
                output, _ = process.communicate(timeout=900)
                logs = "".join(
                    log.read_text() for log in (folder / name).glob("logs/*")
                )
                assert process.returncode == 0, (
                    f"{name}: {output[-1500:]} {logs[-3000:]}"
                )
    return {name: RunFolder(folder / name) for name in names}


@pytest.mark.parametrize("implementation", PROCESSES)
def test_the_result_is_what_plain_keras_finds_in_the_saved_model(
    framework, runs, data, implementation
):
    import keras

    import averaging_task

    if implementation == "horovod" and not horovod_built():
        pytest.skip("Horovod is not built")
    prepared, split = data
    run = runs[implementation]
    result = run.result()
    model = keras.saving.load_model(
        run.model, compile=False, custom_objects=vars(averaging_task)
    )
    model.compile(loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    inputs = prepared.inputs[split.validation].astype("float32") * prepared.scale
    loss, accuracy = model.evaluate(
        inputs, prepared.targets[split.validation], verbose=0
    )
    assert result.validation["loss"] == pytest.approx(loss, rel=1e-5)
    assert result.validation["accuracy"] == pytest.approx(accuracy, abs=1e-6)
    assert result.quality == result.validation["accuracy"]
    last = run.epochs()[-1].validation["loss"]
    assert abs(last - result.validation["loss"]) > 1e-3 * last, (
        "the callback has changed nothing"
    )
    assert result.model_missing is None
    assert not list(run.path.glob(".half*"))
    best = run.best_record()
    kept = keras.saving.load_model(
        run.best, compile=False, custom_objects=vars(averaging_task)
    )
    kept.compile(loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    _, accuracy = kept.evaluate(inputs, prepared.targets[split.validation], verbose=0)
    assert (
        best.value
        == run.epochs()[-1].validation["accuracy"]
        == pytest.approx(accuracy, abs=1e-6)
    )
    assert run.gallery_record().considered == gallery.SAMPLES
