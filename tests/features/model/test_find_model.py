"""Which model is used: a run's, or that of the best run of a study."""

import json
from pathlib import Path

import pytest

from model_records import record
from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.config.task_sources import digests, source_files
from scalestudy.features.model.find_model import find_model
from scalestudy.store.model_record import BestRecord
from scalestudy.store.permission import Permission
from scalestudy.store.record_file import file_checksum
from scalestudy.store.run_folder import write_point
from scalestudy.store.study_folder import StudyFolder
from scalestudy.store.trained_code import add_trained
from scalestudy.util.errors import UserError
from synthetic_result import result_of

ANY_CODE = json.__file__
TEXT = 'task = "cnn"\n[sweep]\nstrategy = ["single"]\nworkers = [1]\nseed = [0, 1, 2]\n'
RECORD = record("classes")


@pytest.fixture
def study(tmp_path) -> StudyFolder:
    """Three points; the first two are done, and the second is the best."""
    read = parse_study(TEXT, Path("study.toml"))
    folder = StudyFolder.create_or_open(
        tmp_path / "results", read, expand(read, gpus=0, cores=8), TEXT
    )
    for point, quality in zip(folder.points()[:2], (0.6, 0.9), strict=True):
        run = folder.new_run(point)
        run.write_model_record(RECORD)
        run.model.write_bytes(b"model")
        run.write_result(
            result_of(point, quality).model_copy(update={"better": "higher"})
        )
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
        run.write_result(
            run.result().model_copy(update={"better": "lower", "quality": quality})
        )
    assert find_model(study.path).path == run_of(study, 0).model


def test_a_point_a_run_and_their_folders_name_the_same(study):
    run = run_of(study, 0)
    name = study.points()[0].name
    for found in (
        find_model(study.path, point=name),
        find_model(run.path),
        find_model(run.path.parent),
    ):
        assert found.path == run.model
        assert found.run == run


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


def test_a_run_without_a_model_says_why_and_that_its_best_epoch_can_be_had(study):
    run = study.new_run(study.points()[2])
    run.write_model_record(RECORD)
    run.best.write_bytes(b"best")
    run.write_best_record(BestRecord(epoch=1, metric="accuracy", value=0.7))
    with pytest.raises(UserError, match=r"not done yet.*--weights best"):
        find_model(run.path)
    assert find_model(run.path, weights="best").path == run.best
    run = run_of(study, 0)
    run.model.unlink()
    run.write_result(
        run.result().model_copy(update={"model_missing": "OSError: disk full"})
    )
    with pytest.raises(UserError, match="without a model: OSError: disk full"):
        find_model(run.path)


@pytest.mark.parametrize(
    ("place", "options"),
    [
        ("nothing", {}),
        ("empty", {}),
        ("empty/m.onnx", {}),
        ("results", {"weights": "first"}),
        ("results", {"point": "other"}),
    ],
)
def test_what_is_no_model_is_refused(study, tmp_path, place, options):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "m.onnx").touch()
    with pytest.raises(UserError):
        find_model(tmp_path / place, **options)


def test_a_study_without_a_finished_run_is_refused(study, tmp_path):
    for number in (0, 1):
        run_of(study, number).model.unlink()
    with pytest.raises(UserError, match="a study with a finished run"):
        find_model(study.path)
    file = tmp_path / "study.toml"
    file.write_text(TEXT)
    with pytest.raises(UserError, match=r"a study that has been run.*scalestudy run"):
        find_model(file)


def trained(task: Path) -> None:
    """Note that this user has trained with a task file."""
    add_trained(str(task), digests(source_files(str(task))))


def test_code_that_this_user_has_not_trained_with_is_not_run_unless_its_file_is_named(
    study, tmp_path
):
    run, task, beside = run_of(study, 0), tmp_path / "task.py", tmp_path / "helper.py"
    task.write_text("import helper\nloss = 'foreign'\n")
    beside.write_text("SIZE = 3\n")
    known = RECORD.model_copy(
        update={"task": str(task), "task_checksum": file_checksum(task)}
    )
    run.write_model_record(known)
    assert find_model(run.path).record.task == ""
    assert find_model(run.path, permission=Permission(task)).record == known
    trained(task)
    assert find_model(run.path).record == known
    beside.write_text("SIZE = 4\n")
    assert find_model(run.path).record.task == "", (
        "the modules that it imports are code, too"
    )


@pytest.mark.parametrize("checksum", ["", file_checksum(Path(ANY_CODE))])
def test_a_record_cannot_name_code_that_runs(study, checksum):
    run = run_of(study, 0)
    run.write_model_record(
        RECORD.model_copy(update={"task": ANY_CODE, "task_checksum": checksum})
    )
    assert find_model(run.path).record.task == ""


def test_a_copy_of_a_known_task_elsewhere_is_unknown(study, tmp_path):
    """Beside a copy may lie modules that its sources do not name."""
    run, task, copy = (
        run_of(study, 0),
        tmp_path / "task.py",
        tmp_path / "elsewhere" / "task.py",
    )
    copy.parent.mkdir()
    for file in (task, copy):
        file.write_text("loss = 'mse'\n")
    trained(task)
    run.write_model_record(RECORD.model_copy(update={"task": str(copy)}))
    assert find_model(run.path).record.task == ""


def test_an_interpreter_is_taken_from_the_user_and_never_from_a_record(study, tmp_path):
    run, python = run_of(study, 0), tmp_path / "env" / "bin" / "python"
    point = run.point()
    launch = point.launch.model_copy(
        update={"environments": {"tensorflow": str(tmp_path / "env")}}
    )
    write_point(run.path / "point.json", point.on(launch=launch))
    found = find_model(run.path)
    assert found.environment is None
    assert (
        "--environment" in found.notes[-1] and str(tmp_path / "env") in found.notes[-1]
    )
    with pytest.raises(UserError, match="--environment"):
        Permission(environment=tmp_path / "env")
    python.parent.mkdir(parents=True)
    python.touch()
    named = find_model(run.path, permission=Permission(environment=tmp_path / "env"))
    assert named.environment == str(tmp_path / "env")


@pytest.mark.parametrize("name", ["point.json", "model.json", "model.keras"])
def test_files_that_are_not_as_their_run_left_them_are_refused(study, name):
    run = run_of(study, 0)
    run.write_checksums(run.result())
    assert find_model(run.path).run == run
    with open(run.path / name, "a") as file:
        file.write(" ")
    with pytest.raises(UserError, match=rf"{name}.*--verify"):
        find_model(run.path)


def test_a_named_task_file_that_has_changed_is_warned_of(study, tmp_path):
    run, task = run_of(study, 0), tmp_path / "task.py"
    task.write_text("loss = 'mse'\n")
    known = RECORD.model_copy(
        update={"task": str(task), "task_checksum": file_checksum(task)}
    )
    run.write_model_record(known)
    assert find_model(run.path, permission=Permission(task)).notes == ()
    task.write_text("import os\n")
    (changed,) = find_model(run.path, permission=Permission(task)).notes
    assert str(task) in changed
    run.write_model_record(
        known.model_copy(update={"task_checksum": ""})
    )  # checksum not known
    assert find_model(run.path, permission=Permission(task)).notes == ()
    with pytest.raises(UserError, match="which is no file"):
        Permission(tmp_path)
