import os
from pathlib import Path

import pytest

from scalestudy.engines.tensorflow import horovod_build
from scalestudy.launch.environments import refuse_missing_software
from scalestudy.launch.status import study_status
from scalestudy.store.records import Disturbance
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.units import duration
from synthetic_result import result_of

BLOCKS = (
    'task = "cnn"\n[train]\nbatch_size = 32\n'
    '[sweep]\nstrategy = ["native", "horovod"]\nworkers = [1, 2]\nseed = [0, 1]\n'
)


def listing(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.slow
def test_a_study_runs_and_is_reported(call, study: Path, launcher) -> None:
    code, text, _ = call("run", study, "--order", "rows")
    assert code == 0
    assert launcher.ran == ["native-w1-s0", "native-w2-s0"]
    assert "[1/2] native-w1-s0 done" in text
    assert "[2/2] native-w2-s0 done" in text
    html = study.parent / "studies" / "study" / "report" / "report.html"
    assert html.exists()
    assert text.splitlines()[-1] == f"Page: {html}"


def test_run_again_repeats_no_finished_run(call, study: Path, launcher) -> None:
    launcher.fail = {"native-w2-s0"}
    code, _, errors = call("run", study, "--no-report")
    assert code == 1
    for part in (
        "native-w2-s0 failed: rank 1 ended with exit code 3",
        "last words",
        "logs",
        "scalestudy run",
    ):
        assert part in errors
    launcher.fail, launcher.ran = set(), []
    code, text, _ = call("run", study, "--no-report")
    assert code == 0
    assert launcher.ran == ["native-w2-s0"]
    assert "1 of 2 points are already done" in text
    launcher.ran = []
    assert call("run", study, "--no-report")[0] == 0
    assert launcher.ran == []


def test_runs_are_taken_in_the_blocks_that_a_dry_run_shows(call, study: Path, launcher) -> None:
    study.write_text(BLOCKS)
    _, text, _ = call("run", study, "--dry-run")
    blocks = [line.partition(": ")[2].split(", ") for line in text.splitlines() if line.startswith("  seed ")]
    names = {f"{strategy}-w{workers}" for strategy in ("native", "horovod") for workers in (1, 2)}
    assert [{name.removesuffix(f"-s{seed}") for name in block} for seed, block in enumerate(blocks)] == [
        names
    ] * 2
    assert call("run", study, "--no-report")[0] == 0
    assert launcher.ran == [name for block in blocks for name in block]
    assert [(point.turn.order, point.turn.place) for point in launcher.points] == [
        ("blocks", place) for place in range(8)
    ]


@pytest.mark.slow
def test_what_is_missing_failed_or_added_keeps_the_order_of_the_study(call, study: Path, launcher) -> None:
    study.write_text(BLOCKS)
    launcher.fail = {"horovod-w1-s0", "native-w1-s1"}
    call("run", study, "--no-report")
    first, order = launcher.ran, StudyFolder.open(study.parent / "studies" / "study").order
    failed = [name for name in first if name in launcher.fail]
    launcher.fail, launcher.ran = set(), []
    study.write_text(BLOCKS.replace("[1, 2]", "[1, 2, 4]").replace("[0, 1]", "[0, 1, 2]"))
    call("run", study, "--no-report")
    folder = StudyFolder.open(study.parent / "studies" / "study")
    assert folder.order == order
    assert [name for name in launcher.ran if name in failed] == failed
    assert [int(name[-1]) for name in launcher.ran] == sorted(int(name[-1]) for name in launcher.ran)
    assert set(launcher.ran) == {point.name for point in folder.points()} - set(first) | set(failed)


def test_the_order_that_a_study_was_last_given_is_kept(call, study: Path, launcher) -> None:
    study.write_text(BLOCKS)
    launcher.fail = {"native-w1-s0", "native-w2-s1"}
    call("run", study, "--no-report", "--order", "rows")
    folder = StudyFolder.open(study.parent / "studies" / "study")
    assert launcher.ran == [point.name for point in folder.points()]
    launcher.points = []
    call("run", study, "--no-report")
    assert [(point.name, point.turn.order) for point in launcher.points] == [
        ("native-w1-s0", "rows"),
        ("native-w2-s1", "rows"),
    ]


def test_an_interrupted_study_says_how_to_resume(call, study: Path, launcher) -> None:
    launcher.interrupt = "native-w2-s0"
    code, text, errors = call("run", study, "--out", study.parent / "elsewhere", "--order", "rows")
    assert code == 130
    assert "native-w2-s0 failed, interrupted by the user" in text
    assert f"scalestudy run {study} --out {study.parent / 'elsewhere'}" in errors
    assert study_status(StudyFolder.open(study.parent / "elsewhere")).states == {
        "native-w1-s0": "done",
        "native-w2-s0": "failed",
    }


def test_a_dry_run_shows_the_points_and_writes_nothing(call, study: Path, launcher) -> None:
    code, text, _ = call("run", study, "--dry-run")
    assert code == 0
    assert "2 points, 2 to run" in text
    assert "predicted once a run has ended" in text
    assert launcher.ran == []
    assert listing(study.parent) == {"study.toml"}


def test_a_dry_run_says_what_a_run_would_be_refused_for(call, study: Path) -> None:
    study.write_text('task = "cnn"\n[launch]\nenvironments = { tensorflow = "nowhere" }\n')
    code, _, notes = call("run", study, "--dry-run")
    assert code == 2 and "environments of tensorflow" in " ".join(notes.split())


@pytest.fixture
def no_horovod(launcher, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Take Horovod away; undone by `undo()`."""
    monkeypatch.setattr("scalestudy.launch.local.launcher.refuse_missing_software", refuse_missing_software)
    monkeypatch.setattr(horovod_build, "library_file", lambda: None)
    return monkeypatch


def test_points_whose_library_is_not_installed_are_left_out_and_named(
    call, study: Path, launcher, no_horovod
) -> None:
    study.write_text(BLOCKS)
    code, _, notes = call("run", study, "--no-report")
    assert code == 0 and {name.split("-")[0] for name in launcher.ran} == {"native"}
    assert "Left out: 4 points of horovod" in notes and "Horovod" in notes
    no_horovod.setattr(horovod_build, "library_file", lambda: Path("built"))
    assert call("run", study, "--no-report")[0] == 0
    assert sum(name.startswith("horovod") for name in launcher.ran) == 4


def test_runs_that_other_programs_disturbed_are_repeated_on_request(call, study: Path, launcher) -> None:
    assert "--repeat-disturbed" not in call("run", study, "--no-report")[2]
    folder = StudyFolder.open(study.parent / "studies" / "study")
    folder.runs("native-w2-s0")[0].write_disturbance(
        Disturbance(share=0.5, programs="make of anna (7): 1.0 cores")
    )
    _, _, notes = call("run", study, "--no-report")
    assert "1 of 2 runs" in notes and "--repeat-disturbed" in notes
    launcher.ran = []
    _, text, notes = call("run", study, "--no-report", "--repeat-disturbed")
    assert launcher.ran == ["native-w2-s0"] and "1 of 2 points are already done" in text
    assert len(folder.runs("native-w2-s0")) == 2 and "--repeat-disturbed" not in notes


def test_a_run_on_cores_that_another_study_used_is_repeated_by_the_next_run(
    call, study: Path, launcher, monkeypatch
) -> None:
    def shared(point, quality=0.75, wall=5.0):
        return result_of(point, quality, wall).model_copy(
            update={"oversubscribed": "cores shared with another study"}
        )

    with monkeypatch.context() as patched:
        patched.setattr("synthetic_result.result_of", shared)
        assert call("run", study, "--no-report")[0] == 0
    assert sorted(launcher.ran) == ["native-w1-s0", "native-w2-s0"]
    launcher.ran = []
    assert call("run", study, "--no-report")[0] == 0
    assert sorted(launcher.ran) == ["native-w1-s0", "native-w2-s0"]
    launcher.ran = []
    assert call("run", study, "--no-report")[0] == 0
    assert launcher.ran == []


def test_a_study_of_which_nothing_is_installed_is_refused(call, study: Path, launcher, no_horovod) -> None:
    study.write_text(BLOCKS.replace('["native", "horovod"]', '["horovod"]'))
    assert call("run", study)[0] == call("run", study, "--dry-run")[0] == 2
    assert launcher.ran == []


def test_a_dry_run_says_how_long_it_takes_by_the_runs_that_have_ended(call, study: Path, launcher) -> None:
    study.write_text(BLOCKS)
    launcher.fail = {"native-w2-s1", "horovod-w1-s1"}
    call("run", study, "--no-report")
    done = StudyFolder.open(study.parent / "studies" / "study").runs("native-w2-s0")[0].result()
    text = call("run", study, "--dry-run")[1]
    assert f"They take about {duration(2 * done.wall_seconds)} (" in text
    launcher.fail = set()
    call("run", study, "--no-report")
    assert "They take" not in call("run", study, "--dry-run")[1]


def test_workers_that_no_strategy_of_the_study_can_use_are_named(call, study: Path, launcher) -> None:
    study.write_text('task = "cnn"\n[sweep]\nstrategy = ["single"]\nworkers = [1, 2]\nseed = [0]\n')
    _, text, notes = call("run", study, "--dry-run")
    assert "single-w1-s0" in text and "No point has 2 workers" in notes
    study.write_text('task = "cnn"\n[sweep]\nstrategy = ["single"]\nseed = [0]\n')
    assert "No point" not in call("run", study, "--dry-run")[2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('task = "cnn"\n[train]\nepohcs = 1', "Did you mean `epochs`?"),
        ('task = "cnn"\n[launch]\ndevice = "gpu"', "a GPU for launch.device"),
        ('task = "cnn"\n[launch]\non = "slurm"', "line 3"),
        ('task = "cnn"\n[data]\nsource = "no/where"', "which does not exist"),
        ('task = "cnn"\n[data]\nsource = "stduy.toml"', "Did you mean study.toml?"),
        ('task = "unet"\n[data]\nsource = "digits"', "images with masks"),
        ('task = "cnn"\n[train]\nbatch_size = 1\n[sweep]\nworkers = 2000', "2000 training samples"),
        ('task = "cnn"\n[train]\nbatch_size = 2000', "1438 training samples"),
    ],
)
def test_wrong_input_ends_with_2_and_leaves_nothing_half_written(
    call, study: Path, launcher, text: str, message: str
) -> None:
    study.write_text(text)
    code, _, errors = call("run", study)
    assert code == 2
    assert message in errors
    assert launcher.ran == []
    assert listing(study.parent) <= {"study.toml", "cache"}


def test_a_folder_of_another_study_is_refused_before_its_data_is_prepared(
    call, study: Path, folder, launcher
) -> None:
    study.write_text('task = "cnn"\n[train]\nepochs = 99\n[data]\nsource = "no/where"\n[sweep]\nseed = 0')
    code, _, errors = call("run", study)
    assert code == 2
    assert "train.epochs is 8 in the folder and 99 in the study file" in errors


def test_a_folder_that_is_being_run_is_refused(call, study: Path, folder, launcher) -> None:
    with folder.lock():
        code, _, errors = call("run", study)
    assert code == 2
    assert "one by process" in errors


@pytest.mark.slow
def test_a_task_file_may_name_its_own_data(
    call, study: Path, launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    (study.parent / "mine.py").write_text("data = 'digits'\nkind = 'classes'\n")
    study.write_text('task = "mine.py"\n[sweep]\nworkers = 1\nseed = 0')
    monkeypatch.setattr("scalestudy.app.weights.build_task", lambda *_: ())
    assert call("run", study, "--no-report")[0] == 0
    assert launcher.points[0].data.source == "digits"
    (study.parent / "mine.py").write_text("kind = 'classes'\n")
    study.write_text('task = "mine.py"\n[sweep]\nworkers = 2\nseed = 0')
    code, _, errors = call("run", study, "--no-report")
    assert code == 2
    assert "a source of data" in errors


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_prepared(
    call, study: Path, launcher
) -> None:
    code, _, errors = call("run", study, "--out", "/dev/null/x")
    assert code == 2
    assert "/dev/null is no folder" in errors
    assert listing(study.parent) == {"study.toml"}


@pytest.mark.parametrize("name", ["result.json", "point.json"])
def test_a_point_with_a_damaged_record_is_not_trained_again(call, study: Path, launcher, name: str) -> None:
    assert call("run", study, "--no-report")[0] == 0
    file = study.parent / "studies" / "study" / "points" / "native-w1-s0" / "run-1" / name
    os.truncate(file, 60)
    launcher.ran, before = [], file.read_bytes()
    code, _, errors = call("run", study, "--no-report")
    assert (code, launcher.ran, file.read_bytes()) == (1, [], before)
    assert name in errors and "status --verify" in errors
