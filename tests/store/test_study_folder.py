import errno
import json
import multiprocessing
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.store import study_folder as store
from scalestudy.store.records import JobRecord
from scalestudy.store.state import read_deciding_run, state_of_runs
from scalestudy.store.study_folder import RunFolder, StudyFolder
from scalestudy.util.errors import UserError


def states(folder: StudyFolder) -> dict[str, str]:
    return {
        point.name: state_of_runs(folder.runs(point.name)) for point in folder.points()
    }


def wanting(folder: StudyFolder) -> list[str]:
    return [
        name for name, state in states(folder).items() if state in ("failed", "missing")
    ]


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def test_a_new_folder_holds_the_study_its_points_and_its_text(
    make, tmp_path: Path
) -> None:
    folder = make(path=tmp_path / "deep" / "results")
    assert files(folder.path) == {"study.json", "study.toml"}
    assert files(tmp_path / "deep") == {
        "results",
        "results/study.json",
        "results/study.toml",
    }
    assert json.loads((folder.path / "study.json").read_text())["schema_version"] == 1
    again = StudyFolder.open(folder.path)
    assert again.study == folder.study
    assert again.points() == folder.points()
    assert again.name == "study"


def test_a_folder_of_other_things_or_in_another_study_and_a_file_are_refused_and_left_alone(
    make, tmp_path
):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "thesis.tex").touch()
    study = make(path=tmp_path / "study").path
    (tmp_path / "file").touch()
    before = files(tmp_path)
    for path, words in (
        (tmp_path / "results", "holds other files"),
        (study / "points" / "mine", "outside the records of a study"),
        (tmp_path / "file", "which is a file"),
    ):
        with pytest.raises(UserError, match=words):
            make(path=path)
    assert files(tmp_path) == before


def test_nothing_is_left_when_writing_fails(
    make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "write_atomically", full)
    with pytest.raises(UserError, match="No space left on device"):
        make()
    assert files(tmp_path) == set()


def test_of_two_that_make_the_folder_at_once_the_second_opens_it(
    make, monkeypatch
) -> None:
    create, made = store._create, []

    def second(path: Path, record, text: str) -> None:
        monkeypatch.setattr(store, "_create", create)
        made.append(make())
        create(path, record, text)

    monkeypatch.setattr(store, "_create", second)
    folder = make()
    assert folder.order == made[0].order and files(folder.path) == {
        "study.json",
        "study.toml",
    }


def test_another_study_is_refused_naming_every_key_that_differs(make) -> None:
    before = make()
    stored = (before.path / "study.json").read_bytes()
    with pytest.raises(UserError) as caught:
        make(
            'task = "cnn"\n[train]\nepochs = 10\nxla = true\n[data]\nimage_size = [8, 8]\n[sweep]\nseed = 0'
        )
    message = str(caught.value)
    assert "train.epochs is 8 in the folder and 10 in the study file" in message
    assert "train.xla is false in the folder and true in the study file" in message
    assert (
        "data.image_size is not set in the folder and [8, 8] in the study file"
        in message
    )
    assert (before.path / "study.json").read_bytes() == stored


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('task = "unet"\n[sweep]\nseed = 5', 'task is "cnn" in the folder and "unet"'),
        (
            'task = "cnn"\n[sweep]\nbatch_size = [8, 16]',
            r"train\.batch_size is swept in the study file only",
        ),
    ],
)
def test_another_task_or_axis_is_another_study_even_where_no_point_is_the_same(
    make, text, words
) -> None:
    make()
    with pytest.raises(UserError, match=words):
        make(text)


def test_another_machine_or_cache_and_a_default_said_aloud_are_the_same_study(
    make,
) -> None:
    make(cores=8)
    make(
        'task = "cnn"\n[train]\nepochs = 8\n[data]\nsource = "digits"\n[sweep]\nseed = 0\n'
    )
    make('task = "cnn"\n[launch]\nprogress_timeout = 60\n[sweep]\nseed = 0')
    assert (
        make('task = "cnn"\n[data]\ncache = "/x"\n[sweep]\nseed = 0', cores=1)
        .points()[1]
        .oversubscribed
    )


def made_at(folder: Path) -> StudyFolder:
    """The results, in `studies/s`, of a study of a task file beside its own."""
    text = (
        'task = "own.py"\n[data]\nsource = "images"\n[sweep]\nworkers = 1\nseed = 0\n'
    )
    study = parse_study(text, folder / "study.toml")
    return StudyFolder.create_or_open(
        folder / "studies" / "s", study, expand(study, gpus=0, cores=1), text
    )


def test_a_study_that_was_moved_with_its_files_is_the_same_study(
    tmp_path: Path,
) -> None:
    (tmp_path / "old" / "images").mkdir(parents=True)
    (tmp_path / "old" / "own.py").write_text('train = {"epochs": 3}\n')
    made_at(tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    folder = made_at(tmp_path / "new")
    assert (
        folder.study.task
        == StudyFolder.open(folder.path).study.task
        == str(tmp_path / "new" / "own.py")
    )
    assert len(folder.points()) == 1


def test_a_task_file_that_was_copied_and_changed_is_another_study(
    tmp_path: Path,
) -> None:
    for place in ("old", "new"):
        (tmp_path / place / "images").mkdir(parents=True)
        (tmp_path / place / "own.py").write_text('train = {"epochs": 3}\n')
    results = made_at(tmp_path / "old").path
    results.parent.rename(tmp_path / "new" / "studies")
    (tmp_path / "old" / "images").rmdir()
    assert made_at(tmp_path / "new")
    (tmp_path / "new").rename(tmp_path / "newer")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "own.py").write_text('train = {"epochs": 3}  # and more\n')
    with pytest.raises(UserError, match="task is"):
        made_at(tmp_path / "newer")


def test_longer_lists_extend_the_study(make, records) -> None:
    folder = make()
    folder.new_run(folder.points()[0]).write_result(records.result())
    text = 'task = "cnn"\n[sweep]\nstrategy = ["native", "virtual"]\nworkers = [1, 2, 4]\nseed = [0, 1]\n'
    longer = make(text)
    assert len(longer.points()) == 12
    assert len(wanting(longer)) == 11
    assert len(StudyFolder.open(folder.path).points()) == 12
    assert (folder.path / "study.toml").read_text() == text


def test_shorter_lists_keep_what_is_finished_and_drop_the_rest(make, records) -> None:
    folder = make()
    folder.new_run(folder.points()[0]).write_result(records.result())
    shorter = make('task = "cnn"\n[sweep]\nworkers = 8\nseed = 0')
    assert states(shorter) == {"native-w8-s0": "missing", "native-w1-s0": "done"}


def test_opening_what_is_no_study_says_what_it_is_and_names_those_nearby(
    make, tmp_path: Path
) -> None:
    (tmp_path / "study.toml").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    for name, words in (
        ("study.toml", r"study\.toml, which is a file.*studies/NAME beside"),
        ("none", "does not exist"),
        ("loop", "a broken link"),
    ):
        with pytest.raises(UserError, match=words):
            StudyFolder.open(tmp_path / name)
    make(path=tmp_path / "studies" / "first")
    with pytest.raises(UserError, match="studies/first"):
        StudyFolder.open(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", '{"schema_version": 99}'])
def test_a_study_of_another_version_or_a_damaged_one_is_refused(
    make, text: str
) -> None:
    folder = make()
    (folder.path / "study.json").write_text(text)
    with pytest.raises(UserError, match=r"study\.json"):
        StudyFolder.open(folder.path)
    with pytest.raises(UserError, match=r"study\.json"):
        make()


def test_runs_are_numbered_and_hold_their_point_and_owner_from_the_start(make) -> None:
    folder = make()
    point = folder.points()[0]
    runs = [folder.new_run(point) for _ in range(11)]
    assert [run.number for run in folder.runs(point.name)] == list(range(1, 12))
    assert folder.runs(point.name) == runs
    assert runs[0].point() == point
    assert files(runs[0].path) == {"point.json", "launcher.json"}
    assert {path.name for path in runs[0].path.parent.iterdir()} == {
        f"run-{k}" for k in range(1, 12)
    }


def test_launchers_at_the_same_time_take_different_numbers(make) -> None:
    folder = make()
    point = folder.points()[0]
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _: folder.new_run(point).number, range(40)))
    assert sorted(taken) == list(range(1, 41))


def test_a_run_is_running_while_its_owner_lives(make) -> None:
    folder = make()
    folder.new_run(folder.points()[0])
    assert states(folder) == {"native-w1-s0": "running", "native-w2-s0": "missing"}
    assert wanting(folder) == ["native-w2-s0"]


def test_a_run_whose_owner_was_killed_is_interrupted(make, records) -> None:
    folder = make()
    process = multiprocessing.get_context("fork").Process(
        target=lambda: folder.new_run(folder.points()[0])
    )
    process.start()
    process.join()
    run = folder.runs("native-w1-s0")[0]
    run.write_progress(records.progress())
    assert states(folder)["native-w1-s0"] == "failed"
    assert len(wanting(folder)) == 2


def test_one_finished_run_makes_a_point_done_whatever_came_before_or_after(
    make, records
) -> None:
    folder = make()
    point = folder.points()[0]
    folder.new_run(point).write_failure(records.failure())
    done = folder.new_run(point)
    done.write_result(records.result())
    done.append_epoch(records.epoch())
    folder.new_run(point).write_failure(records.failure())
    assert states(folder)[point.name] == "done"
    assert read_deciding_run(folder.runs(point.name)).run == done
    assert (done.result(), done.epochs()) == (records.result(), [records.epoch()])


def test_a_second_run_of_a_folder_is_refused_naming_the_first(make) -> None:
    folder = make()
    with folder.lock():
        with (
            pytest.raises(UserError, match=f"process {os.getpid()}"),
            StudyFolder.open(folder.path).lock(),
        ):
            pass
        with pytest.raises(UserError, match="no other run"):
            make('task = "cnn"\n[sweep]\nworkers = [1, 2, 4]\nseed = 0')
    with folder.lock():
        pass


def given_to_slurm(folder: StudyFolder, point: str = "native-w1-s0") -> RunFolder:
    run = folder.new_run(next(item for item in folder.points() if item.name == point))
    run.write_job(
        JobRecord(job="12_3", submitted=time.time(), site="here", script="jobs/x.sh")
    )
    return run


def test_a_job_is_queued_whoever_submitted_it_and_running_while_its_progress_is_fresh(
    make, records
) -> None:
    folder = make()
    run = given_to_slurm(folder)
    assert states(folder) == {"native-w1-s0": "queued", "native-w2-s0": "missing"}
    assert wanting(folder) == ["native-w2-s0"]
    assert run.job() == JobRecord.model_validate(run.job().model_dump())
    for age, state in ((0, "running"), (600, "queued")):
        run.write_progress(records.progress(updated=time.time() - age))
        assert states(folder)["native-w1-s0"] == state


@pytest.mark.parametrize(
    ("code", "checkpoint", "expected"),
    [
        ("0", True, "queued"),
        ("0", False, "failed"),
        ("3", True, "failed"),
        ("", False, "queued"),
    ],
)
def test_the_exit_code_of_a_job_ends_it_unless_it_stopped_to_go_on(
    make, code: str, checkpoint: bool, expected: str
) -> None:
    folder = make()
    run = given_to_slurm(folder)
    (run.path / "exit").write_text(code + "\n")
    if checkpoint:
        run.checkpoint.touch()
    assert states(folder)["native-w1-s0"] == expected


def test_a_queued_point_stays_in_the_study_though_it_is_no_longer_asked_for(
    make,
) -> None:
    folder = make()
    given_to_slurm(folder, "native-w2-s0")
    smaller = make('task = "cnn"\n[sweep]\nworkers = 1\nseed = 0\n')
    assert [point.name for point in smaller.points()] == [
        "native-w1-s0",
        "native-w2-s0",
    ]


def test_a_file_system_without_locks_is_no_obstacle(
    make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with make().lock():
        pass


def test_a_study_json_of_a_newer_version_is_not_told_as_corrupt(make):
    file = make().path / "study.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema_version": 999}))
    with pytest.raises(UserError) as refused:
        StudyFolder.open(file.parent)
    assert (
        "schema 999" in refused.value.received and "backup" not in refused.value.action
    )
