"""Which model is used: a run's, that of the best run of a study, or a file."""

import json
import os
import zipfile
from pathlib import Path

import pytest

from scalestudy.features.predict.find_model import find_model
from scalestudy.study.expand import expand
from scalestudy.study.model_record import EMBEDDED, BestRecord, ModelRecord
from scalestudy.study.parse import parse_study
from scalestudy.study.record_file import file_checksum
from scalestudy.study.store import StudyFolder
from scalestudy.util.errors import UserError
from synthetic_result import result_of

TEXT = 'task = "cnn"\n[sweep]\nstrategy = ["single"]\nworkers = [1]\nseed = [0, 1, 2]\n'
RECORD = ModelRecord(
    task="cnn", kind="classes", input_shape=(8, 8, 1), dtype="uint8", scale=1 / 255, class_names=["a", "b"]
)


@pytest.fixture
def study(tmp_path) -> StudyFolder:
    """Three points; the first two are done, and the second is the best."""
    read = parse_study(TEXT, Path("study.toml"))
    folder = StudyFolder.create_or_open(tmp_path / "results", read, expand(read, gpus=0, cores=8), TEXT)
    for point, quality in zip(folder.points()[:2], (0.6, 0.9), strict=True):
        run = folder.new_run(point)
        run.write_model_record(RECORD)
        run.model.write_bytes(b"model")
        run.write_result(result_of(point, quality).model_copy(update={"better": "higher"}))
    return folder


def run_of(study, number):
    return study.runs(study.points()[number].name)[-1]


def test_of_a_study_it_is_the_best_runs(study):
    found = find_model(study.path)
    assert found.path == run_of(study, 1).model
    assert found.record == RECORD
    assert "The best of 2 runs is single-w1-s1" in found.notes[0]


def test_lower_may_be_better(study):
    for number, quality in ((0, 0.1), (1, 0.9)):
        run = run_of(study, number)
        run.write_result(run.result().model_copy(update={"better": "lower", "quality": quality}))
    assert find_model(study.path).path == run_of(study, 0).model


def test_a_point_a_run_and_their_folders_name_the_same(study):
    run = run_of(study, 0)
    name = study.points()[0].name
    for found in (find_model(study.path, point=name), find_model(run.path), find_model(run.path.parent)):
        assert found.path == run.model
        assert found.run == run


def test_a_file_of_a_run_has_the_runs_record(study):
    assert find_model(run_of(study, 0).model).record == RECORD


def test_the_best_epoch_is_taken_on_request_and_told_of_otherwise(study):
    run = run_of(study, 0)
    with pytest.raises(UserError, match=r"without best\.keras"):
        find_model(run.path, weights="best")
    run.best.write_bytes(b"best")
    run.write_best_record(BestRecord(epoch=1, metric="accuracy", value=0.7))
    found = find_model(run.path, weights="best")
    assert found.path == run.best
    assert found.record.weights == "best"
    assert "epoch 1 (accuracy 0.7)" in found.label
    assert "Epoch 1 was better (accuracy 0.7)" in find_model(run.path).notes[0]


def test_of_a_run_that_is_not_done_the_best_epoch_can_be_had(study):
    run = study.new_run(study.points()[2])
    run.write_model_record(RECORD)
    run.best.write_bytes(b"best")
    run.write_best_record(BestRecord(epoch=1, metric="accuracy", value=0.7))
    with pytest.raises(UserError, match=r"not done yet.*--weights best"):
        find_model(run.path)
    assert find_model(run.path, weights="best").path == run.best


def test_a_run_whose_model_could_not_be_saved_says_why(study):
    run = run_of(study, 0)
    run.model.unlink()
    run.write_result(run.result().model_copy(update={"model_missing": "OSError: disk full"}))
    with pytest.raises(UserError, match="without a model: OSError: disk full"):
        find_model(run.path)


def test_an_exported_model_has_its_record_inside_or_beside_it(tmp_path):
    with zipfile.ZipFile(tmp_path / "inside.keras", "w") as archive:
        archive.writestr(EMBEDDED, RECORD.model_dump_json())
    assert find_model(tmp_path / "inside.keras").record == RECORD
    (tmp_path / "beside.keras").write_bytes(b"no archive")
    (tmp_path / "beside.keras.json").write_text(RECORD.model_dump_json())
    assert find_model(tmp_path / "beside.keras").record == RECORD


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "does not exist"), ("empty", "none of these"), ("m.onnx", "none of these"),
        ("alone.keras", "scalestudy.json inside or alone.keras.json"),
        ("torn.keras", "without scalestudy.json inside"),
    ],
)  # fmt: skip
def test_what_is_no_model_is_refused(tmp_path, name, message):
    (tmp_path / "empty").mkdir()
    for file in ("m.onnx", "m.h5", "alone.keras"):
        (tmp_path / file).touch()
    (tmp_path / "torn.keras").write_bytes(b"x")
    (tmp_path / "torn.keras.json").write_text(json.dumps({"kind": "classes"}))
    with pytest.raises(UserError, match=message):
        find_model(tmp_path / name)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"weights": "first"}, "--weights last or best"), ({"point": "other"}, "single-w1-s")],
)
def test_wrong_options_are_refused(study, options, message):
    with pytest.raises(UserError, match=message):
        find_model(study.path, **options)


def test_a_study_without_a_finished_run_is_refused(study):
    for number in (0, 1):
        run_of(study, number).model.unlink()
    with pytest.raises(UserError, match="a study with a finished run"):
        find_model(study.path)


def test_a_study_file_that_was_not_run_says_so(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text('task = "cnn"\n[sweep]\nworkers = [1]\n')
    with pytest.raises(UserError, match=r"a study that has been run.*scalestudy run"):
        find_model(file)


def test_a_task_file_that_was_moved_with_the_study_is_found_unless_it_has_changed(study, tmp_path):
    run, task = run_of(study, 0), tmp_path / "task.py"
    task.write_text("loss = 'mse'\n")
    gone = str(tmp_path / "gone" / "task.py")
    run.write_model_record(RECORD.model_copy(update={"task": gone, "task_checksum": file_checksum(task)}))
    assert find_model(run.path).record.task == str(task)
    task.write_text("loss = 'mae'\n")
    assert find_model(run.path).record.task == gone


def test_a_task_file_that_has_changed_or_is_anothers_is_warned_of(study, tmp_path, monkeypatch):
    run, task = run_of(study, 0), tmp_path / "task.py"
    task.write_text("loss = 'mse'\n")
    trained = RECORD.model_copy(update={"task": str(task), "task_checksum": file_checksum(task)})
    run.write_model_record(trained)
    assert find_model(run.path).notes == ()
    task.write_text("import os\n")
    (changed,) = find_model(run.path).notes
    run.write_model_record(trained.model_copy(update={"task_checksum": ""}))  # checksum not known
    assert find_model(run.path).notes == ()
    stat, stranger = Path.stat, 12345

    def of_stranger(path, **how):
        status = stat(path, **how)
        return os.stat_result([*status[:4], stranger, *status[5:10]]) if path == task else status

    monkeypatch.setattr(Path, "stat", of_stranger)
    (foreign,) = find_model(run.path).notes
    assert str(task) in changed and str(task) in foreign and str(stranger) in foreign
