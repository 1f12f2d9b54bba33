"""A point diagnosed: real twins of two workers, and what is refused before any is started."""

import json
from pathlib import Path

import pytest

from few_digits import few_digits
from scalestudy.analysis.read import read_study
from scalestudy.conduct.listener import Listener
from scalestudy.errors import UserError
from scalestudy.features.diagnose.plan import plan
from scalestudy.features.diagnose.records import diagnoses
from scalestudy.features.diagnose.remedies import remedies
from scalestudy.features.diagnose.run import diagnose
from scalestudy.features.diagnose.twin import Ablation
from scalestudy.study.store import StudyFolder

# A model that costs nothing, and a loader that does: no load of the machine turns that around.
TASK = """
import keras
train = {"epochs": 2, "batch_size": 32, "optimizer": "sgd", "learning_rate": 0.1, "schedule": "constant"}
loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
def model(data):
    dense = keras.layers.Dense(data.classes, activation="softmax")
    return keras.Sequential([keras.Input(data.input_shape), keras.layers.Flatten(), dense])
"""
TEXT = """
task = "slow_loader.py"
[data]
source = "{source}"
image_size = [64, 64]
[train]
batch = "global"
steps_per_call = 1
augment = "elastic(4), rotate(15), noise(0.1), contrast(0.2)"
[launch]
device = "cpu"
{launch}
[sweep]
strategy = ["mirrored"]
workers = [1, 2]
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("SLURM_JOB_ID", "PBS_JOBID"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "slow_loader.py").write_text(TASK)
    path = tmp_path / "study.toml"
    path.write_text(TEXT.format(source=few_digits(tmp_path, 200), launch=""))
    return path


@pytest.mark.engine
def test_a_slow_loader_is_named_first_and_the_studys_folder_keeps_it(file, monkeypatch):
    monkeypatch.setattr("scalestudy.machine.cores.granted", lambda: [0, 1])
    planned = plan(file, None, Listener())
    assert planned.point.name == "mirrored-w2-s0"
    kept = diagnose(planned, Listener(), rounds=1, seconds=0.2, trace=True)
    found = kept.diagnosis
    assert sum(part.share.value for part in found.parts) == pytest.approx(1 - found.efficiency.value)
    product = 1.0
    for factor in found.factors:
        product *= factor.value.value
    assert product == pytest.approx(found.efficiency.value)
    assert [rank.rank for rank in found.ranks] == [0, 1]
    assert found.input.value > 0.2
    assert remedies(found)[0].part == "input"
    folder = StudyFolder.open(planned.target)
    assert diagnoses(folder.path) == [found]
    assert read_study(folder).diagnosis == kept
    assert not kept.changed
    assert not any(folder.runs(point.name) for point in folder.points())
    inside = folder.path / "diagnosis" / "mirrored-w2-s0"
    names = {each["name"] for each in json.loads((inside / "trace.json").read_text())["traceEvents"]}
    assert {"framework", "whole", "without exchange", "together", "step", "input", "profiled"} <= names
    assert list((inside / "twins" / "profile").rglob("*.xplane.pb"))


def test_a_dry_run_says_what_would_be_measured_and_writes_nothing(file):
    planned = plan(file, "mirrored-w2-s0", Listener(), dry_run=True)
    lines = planned.lines(3, 2.0)
    assert lines[0].startswith("mirrored-w2-s0: mirrored, global batch 32")
    assert "3 rounds" in lines[1]
    assert "about 42 s" in lines[2]
    assert not planned.target.exists()


def test_a_folder_without_a_run_is_told_to_run_first(file):
    folder = StudyFolder.create_or_open(file.parent / "out", *_study_of(file), file.read_text())
    with pytest.raises(UserError, match="a run that reads what mirrored-w2-s0 reads"):
        plan(folder.path, None, Listener())


def test_a_queues_point_is_diagnosed_inside_a_job_only(file, monkeypatch):
    file.write_text(TEXT.format(source="digits", launch='on = "slurm"'))
    spaced = file.rename(file.with_name("my study.toml"))
    with pytest.raises(UserError, match=r"scalestudy submit '.*my study\.toml'"):
        plan(spaced, None, Listener())
    file = spaced
    study, points = _study_of(file)
    points = [point.on(launch=point.launch.model_copy(update={"on": "slurm"})) for point in points]
    folder = StudyFolder.create_or_open(file.parent / "out", study, points, file.read_text())
    monkeypatch.setattr("scalestudy.conduct.survey.study_status", lambda folder, **_: _nothing(folder))
    with pytest.raises(UserError, match="inside that job"):
        plan(folder.path, None, Listener())
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setattr("scalestudy.machine.devices.gpus", lambda: 0)
    monkeypatch.setattr("scalestudy.machine.cores.granted", lambda: [0])
    with pytest.raises(UserError, match="a node that holds all 2 workers"):
        plan(folder.path, None, Listener())


def test_a_twin_says_what_its_processes_measure(tmp_path):
    twin = Ablation(blocks=("alone", "together"), seconds=0.5, workers=2, worker=1, beside=("worker-1",))
    assert Ablation.model_validate_json(twin.model_dump_json()) == twin


def _study_of(file):
    from scalestudy.conduct.task_data import with_task_data
    from scalestudy.launch.local.launcher import points_here
    from scalestudy.study.parse import load_study

    study, _ = with_task_data(load_study(file), Listener())
    return study, points_here(study)


def _nothing(folder):
    from scalestudy.launch.base import Overview, PointStatus

    return Overview([PointStatus(point, "missing") for point in folder.points()])
