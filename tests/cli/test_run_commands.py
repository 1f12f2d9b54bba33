"""`scalestudy run` and `submit`."""

import json
import os
import shutil
from pathlib import Path

import pytest

from data_settings import data_of
from scalestudy.config.expand import expand
from scalestudy.config.parse import load_study
from scalestudy.config.run_order import RunOrder
from scalestudy.engines.tensorflow import installation
from scalestudy.launch.environments import refuse_missing_software
from scalestudy.launch.study_status import study_status
from scalestudy.store.records import SHARED_CORES, Disturbance
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.units import duration
from synthetic_result import result_of

BLOCKS = (
    'task = "cnn"\n[train]\nbatch_size = 32\n'
    '[sweep]\nstrategy = ["native", "horovod"]\nworkers = [1, 2]\nseed = [0, 1]\n'
)


def listing(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def arranged(study: Path) -> list[str]:
    """Names of the study's points in the order of their runs."""
    points = expand(load_study(study), gpus=0, cores=8)
    return [
        point.name for point in RunOrder.drawn_from(study.read_text()).arrange(points)
    ]


def opened(study: Path) -> StudyFolder:
    return StudyFolder.open(study.parent / "studies" / "study")


@pytest.mark.slow
def test_a_study_runs_and_is_reported(call, study: Path, launcher) -> None:
    code, text, _ = call("run", study)
    assert code == 0
    assert sorted(launcher.ran) == ["native-w1-s0", "native-w2-s0"]
    for number, name in enumerate(launcher.ran, start=1):
        assert f"[{number}/2] {name} done" in text
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


def test_runs_are_taken_in_the_blocks_that_a_dry_run_shows(
    call, study: Path, launcher
) -> None:
    study.write_text(BLOCKS)
    _, text, _ = call("run", study, "--dry-run")
    blocks = [
        line.partition(": ")[2].split(", ")
        for line in text.splitlines()
        if line.startswith("  seed ")
    ]
    names = {
        f"{strategy}-w{workers}"
        for strategy in ("native", "horovod")
        for workers in (1, 2)
    }
    assert [
        {name.removesuffix(f"-s{seed}") for name in block}
        for seed, block in enumerate(blocks)
    ] == [names] * 2
    assert call("run", study, "--no-report")[0] == 0
    assert launcher.ran == [name for block in blocks for name in block]
    assert [point.place for point in launcher.points] == list(range(8))


@pytest.mark.slow
def test_what_is_missing_failed_or_added_keeps_the_order_of_the_study(
    call, study: Path, launcher
) -> None:
    study.write_text(BLOCKS)
    launcher.fail = {"horovod-w1-s0", "native-w1-s1"}
    call("run", study, "--no-report")
    first, order = launcher.ran, opened(study).order
    failed = [name for name in first if name in launcher.fail]
    launcher.fail, launcher.ran = set(), []
    study.write_text(
        BLOCKS.replace("[1, 2]", "[1, 2, 4]").replace("[0, 1]", "[0, 1, 2]")
    )
    call("run", study, "--no-report")
    folder = opened(study)
    assert folder.order == order
    assert [name for name in launcher.ran if name in failed] == failed
    assert [int(name[-1]) for name in launcher.ran] == sorted(
        int(name[-1]) for name in launcher.ran
    )
    assert set(launcher.ran) == {point.name for point in folder.points()} - set(
        first
    ) | set(failed)


def test_an_interrupted_study_says_how_to_resume(call, study: Path, launcher) -> None:
    first, second = arranged(study)
    launcher.interrupt = second
    code, text, errors = call("run", study, "--out", study.parent / "elsewhere")
    assert code == 130
    assert f"{second} failed, interrupted by the user" in text
    assert f"scalestudy run {study} --out {study.parent / 'elsewhere'}" in errors
    assert study_status(StudyFolder.open(study.parent / "elsewhere")).states == {
        first: "done",
        second: "failed",
    }


def test_a_dry_run_shows_the_points_and_writes_nothing(
    call, study: Path, launcher
) -> None:
    code, text, _ = call("run", study, "--dry-run")
    assert code == 0
    assert "2 points, 2 to run" in text and "predicted once a run has ended" in text
    assert launcher.ran == [] and listing(study.parent) == {"study.toml"}


def test_a_dry_run_says_what_a_run_would_be_refused_for(call, study: Path) -> None:
    study.write_text(
        'task = "cnn"\n[launch]\nenvironments = { tensorflow = "nowhere" }\n'
    )
    code, _, notes = call("run", study, "--dry-run")
    assert code == 2 and "environments of tensorflow" in " ".join(notes.split())


@pytest.fixture
def no_horovod(launcher, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Take Horovod away; undone by `undo()`."""
    monkeypatch.setattr(
        "scalestudy.launch.local.refuse_missing_software", refuse_missing_software
    )
    monkeypatch.setattr(installation, "library_file", lambda: None)
    return monkeypatch


def test_points_whose_library_is_not_installed_are_left_out_and_named(
    call, study: Path, launcher, no_horovod
) -> None:
    study.write_text(BLOCKS)
    code, _, notes = call("run", study, "--no-report")
    assert code == 0 and {name.split("-")[0] for name in launcher.ran} == {"native"}
    assert "Left out: 4 points of horovod" in notes and "Horovod" in notes
    launcher.ran = []
    study.write_text(BLOCKS.replace('["native", "horovod"]', '["horovod"]'))
    assert (
        call("run", study, "--out", "x")[0]
        == call("run", study, "--out", "x", "--dry-run")[0]
        == 2
    )
    assert launcher.ran == []
    study.write_text(BLOCKS)
    no_horovod.setattr(installation, "library_file", lambda: Path("built"))
    assert call("run", study, "--no-report")[0] == 0
    assert sum(name.startswith("horovod") for name in launcher.ran) == 4


def test_runs_that_other_programs_disturbed_are_repeated_on_request(
    call, study: Path, launcher
) -> None:
    assert "--repeat-disturbed" not in call("run", study, "--no-report")[2]
    folder = opened(study)
    folder.runs("native-w2-s0")[0].write_disturbance(Disturbance(share=0.5))
    _, _, notes = call("run", study, "--no-report")
    assert "1 of 2 runs" in notes and "--repeat-disturbed" in notes
    launcher.ran = []
    _, text, notes = call("run", study, "--no-report", "--repeat-disturbed")
    assert launcher.ran == ["native-w2-s0"] and "1 of 2 points are already done" in text
    assert len(folder.runs("native-w2-s0")) == 2 and "--repeat-disturbed" not in notes


def test_a_run_on_cores_that_another_study_used_is_called_disturbed_and_repeated_only_on_request(
    call, study: Path, launcher, monkeypatch
) -> None:
    def shared(point, quality=0.75, wall=5.0):
        return result_of(point, quality, wall).model_copy(
            update={"oversubscribed": SHARED_CORES}
        )

    both = ["native-w1-s0", "native-w2-s0"]
    monkeypatch.setattr("synthetic_result.result_of", shared)
    _, _, notes = call("run", study, "--no-report")
    assert "2 of 2 runs are disturbed" in notes and notes.count(SHARED_CORES) == 1
    launcher.ran = []
    assert "2 of 2 points are already done" in call("run", study, "--no-report")[1]
    assert launcher.ran == []

    text = call("run", study, "--dry-run")[1]
    assert text.count(f"done (disturbed: {SHARED_CORES})") == 2
    assert "2 points, 0 to run" in text and "--repeat-disturbed" in text
    text = call("status", opened(study).path)[1]
    assert (
        "2 points: 2 done" in text
        and text.count("done (disturbed)") == text.count(SHARED_CORES) == 2
    )
    points = json.loads(call("status", opened(study).path, "--format", "json")[1])[
        "points"
    ]
    assert [point["disturbed"] for point in points] == [SHARED_CORES] * 2

    monkeypatch.setattr("synthetic_result.result_of", result_of)
    text = call("run", study, "--dry-run", "--repeat-disturbed")[1]
    assert "2 points, 2 to run" in text and "of the finished ones" not in text
    assert call("run", study, "--no-report", "--repeat-disturbed")[0] == 0
    assert sorted(launcher.ran) == both
    assert "disturbed" not in call("run", study, "--dry-run")[1]


def test_a_dry_run_says_how_long_it_takes_by_the_runs_that_have_ended(
    call, study: Path, launcher
) -> None:
    study.write_text(BLOCKS)
    launcher.fail = {"native-w2-s1", "horovod-w1-s1"}
    call("run", study, "--no-report")
    done = opened(study).runs("native-w2-s0")[0].result()
    text = call("run", study, "--dry-run")[1]
    assert f"They take about {duration(2 * done.wall_seconds)} (" in text
    launcher.fail = set()
    call("run", study, "--no-report")
    assert "They take" not in call("run", study, "--dry-run")[1]


def test_workers_that_no_strategy_of_the_study_can_use_are_named(
    call, study: Path, launcher
) -> None:
    study.write_text(
        'task = "cnn"\n[sweep]\nstrategy = ["single"]\nworkers = [1, 2]\nseed = [0]\n'
    )
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
        (
            'task = "cnn"\n[train]\nbatch_size = 1\n[sweep]\nworkers = 2000',
            "2000 training samples",
        ),
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


def test_a_folder_of_another_study_or_in_use_or_that_cannot_be_made_is_refused_before_anything(
    call, study: Path, folder, launcher
) -> None:
    code, _, errors = call("run", study, "--out", "/dev/null/x")
    assert code == 2 and "/dev/null is no folder" in errors
    before = study.read_text()
    study.write_text(
        'task = "cnn"\n[train]\nepochs = 99\n[data]\nsource = "no/where"\n[sweep]\nseed = 0'
    )
    code, _, errors = call("run", study)
    assert code == 2
    assert "train.epochs is 8 in the folder and 99 in the study file" in errors
    assert listing(study.parent) == {"study.toml", "studies"}
    study.write_text(before)
    with folder.lock():
        code, _, errors = call("run", study)
    assert code == 2 and "one by process" in errors
    assert launcher.ran == []


@pytest.mark.slow
def test_a_task_file_may_name_its_own_data(
    call, study: Path, launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    (study.parent / "mine.py").write_text("data = 'digits'\nkind = 'classes'\n")
    study.write_text('task = "mine.py"\n[sweep]\nworkers = 1\nseed = 0')
    monkeypatch.setattr("scalestudy.app.task_checks.build_task", lambda *_: ())
    assert call("run", study, "--no-report")[0] == 0
    assert launcher.points[0].data.source == "digits"
    (study.parent / "mine.py").write_text("kind = 'classes'\n")
    study.write_text('task = "mine.py"\n[sweep]\nworkers = 2\nseed = 0')
    code, _, errors = call("run", study, "--no-report")
    assert code == 2
    assert "a source of data" in errors


@pytest.mark.parametrize("name", ["result.json", "point.json"])
def test_a_point_with_a_damaged_record_is_not_trained_again(
    call, study: Path, launcher, name: str
) -> None:
    assert call("run", study, "--no-report")[0] == 0
    file = (
        study.parent / "studies" / "study" / "points" / "native-w1-s0" / "run-1" / name
    )
    os.truncate(file, 60)
    launcher.ran, before = [], file.read_bytes()
    code, _, errors = call("run", study, "--no-report")
    assert (code, launcher.ran, file.read_bytes()) == (1, [], before)
    assert name in errors and "status --verify" in errors


SITE = "cpus_per_node = 4\ntime_limit = '00:10:00'\n"
LAUNCH = '[launch]\non = "slurm"\nsite = "here.toml"\n'


@pytest.fixture
def queued(study: Path) -> Path:
    """The study file, set up for the queue of a site; its data is not prepared."""
    (study.parent / "here.toml").write_text(SITE)
    study.write_text(study.read_text() + LAUNCH)
    return study


def prepare(call, study: Path) -> None:
    assert call("data", "prepare", study)[0] == 0


def test_a_study_for_this_machine_is_refused_with_what_to_change(
    call, study: Path
) -> None:
    code, _, errors = call("submit", study)
    assert code == 2
    assert 'Set on = "slurm"' in errors and f"scalestudy run {study}" in errors


def test_missing_data_is_refused_with_the_command_that_prepares_it_but_shown_in_a_dry_run(
    call, queued: Path, slurm
) -> None:
    slurm(sbatch="exit 1")
    for words, code in (((), 2), (("--dry-run",), 0)):
        done, out, errors = call("submit", queued, *words)
        assert done == code and f"scalestudy data prepare {queued}" in errors
        assert not (queued.parent / "studies").exists()
    assert "#SBATCH --nodes=1" in out and "2 to submit" in out


@pytest.mark.parametrize("command", ["submit", "run"])
def test_a_missing_site_is_refused_with_the_line(
    call, queued: Path, command: str
) -> None:
    (queued.parent / "here.toml").unlink()
    code, _, errors = call(command, queued)
    assert code == 2
    assert (
        "a site profile at" in errors
        and "study.toml, line 9" in errors
        and "scalestudy site init" in errors
    )


def test_what_is_submitted_is_queued_and_is_not_submitted_again(
    call, queued: Path, slurm
) -> None:
    slurm(sbatch="echo 7", squeue="echo '7|PENDING||N/A|Priority'")
    prepare(call, queued)
    queued.write_text(queued.read_text().replace("workers = [1, 2]", "workers = 1"))
    code, text, _ = call("submit", queued)
    assert code == 0 and "Submitted native-w1-s0 as job 7" in text
    code, text, _ = call("submit", queued)
    assert code == 0 and "Nothing was submitted" in text
    assert "others come first" in call("status", queued.parent / "studies" / "study")[1]


def test_what_slurm_refuses_is_told_in_its_own_words_and_leaves_nothing(
    call, queued: Path, slurm
) -> None:
    slurm(
        sbatch="echo 'sbatch: error: Batch job submission failed: Invalid account' >&2; exit 1"
    )
    prepare(call, queued)
    code, _, errors = call("submit", queued)
    assert code == 2 and "Invalid account" in errors
    assert not (queued.parent / "studies" / "study").exists()


def test_what_was_taken_before_a_refusal_is_told(call, queued: Path, slurm) -> None:
    refuses = 'echo "sbatch: error: QOSMaxSubmitJobPerUserLimit" >&2; exit 1'
    slurm(sbatch=f'[ -e "$0.1" ] && {{ {refuses}; }}; touch "$0.1"; echo 7')
    prepare(call, queued)
    code, text, errors = call("submit", queued)
    assert code == 2
    assert f"Submitted {arranged(queued)[0]} as job 7" in text
    assert (
        "1 of 2 points were submitted" in errors
        and "QOSMaxSubmitJobPerUserLimit" in errors
    )


@pytest.mark.parametrize(
    ("queue", "script", "command"),
    [("slurm", "#SBATCH --nodes=", "sbatch "), ("pbs", "#PBS -l select=", "qsub ")],
)
def test_a_dry_run_needs_no_queue_and_writes_nothing(
    call, queued: Path, queue, script, command
) -> None:
    queued.write_text(queued.read_text().replace('"slurm"', f'"{queue}"'))
    prepare(call, queued)
    before = set(queued.parent.rglob("*"))
    code, text, _ = call("submit", queued, "--dry-run")
    assert code == 0
    assert text.count("#!/usr/bin/env bash") == text.count(script) == 1
    assert text.count(f"\n{command}") == 2
    assert "2 points, 2 to submit" in text
    assert call("run", queued, "--dry-run")[0] == 0
    assert set(queued.parent.rglob("*")) == before


def test_the_script_of_any_point_is_printed_and_those_of_all_are_written(
    call, queued: Path
) -> None:
    prepare(call, queued)
    code, one, _ = call("submit", queued, "--dry-run", "--point", "native-w1-s0")
    two = call("submit", queued, "--dry-run", "--point", "native-w2-s0")[1]
    assert code == 0
    assert one.startswith("#!") and "native-w1-s0" in one and "native-w2-s0" not in one
    assert one != two
    folder = queued.parent / "scripts"
    code, text, _ = call("submit", queued, "--dry-run", "--all", folder)
    assert code == 0 and "2 job scripts" in text
    assert {file.name: file.read_text() for file in folder.iterdir()} == {
        "native-w1-s0.sh": one,
        "native-w2-s0.sh": two,
    }
    assert not (queued.parent / "studies").exists()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--point", "native-w1-s0"), "--dry-run"),
        (("--all", "scripts"), "--dry-run"),
        (("--dry-run", "--point", "native-w1-so"), "native-w1-s0"),
        (
            ("--dry-run", "--point", "native-w1-s0", "--all", "scripts"),
            "--point or --all",
        ),
    ],
)
def test_scripts_that_cannot_be_shown_are_refused(
    call, queued: Path, words, named
) -> None:
    prepare(call, queued)
    code, _, errors = call("submit", queued, *words)
    assert code == 2 and named in errors


def test_a_dry_run_prints_one_script_and_a_line_for_each_further_point(
    call, queued: Path
) -> None:
    prepare(call, queued)
    queued.write_text(queued.read_text().replace("seed = 0", "seed = [0, 1, 2, 3]"))
    text = call("submit", queued, "--dry-run")[1]
    assert text.count("#!/usr/bin/env bash") == 1
    commands = [line for line in text.splitlines() if line.startswith("sbatch ")]
    assert sorted(line.split()[2].rpartition("/")[2] for line in commands) == [
        f"native-w{workers}-s{seed}.sh" for workers in (1, 2) for seed in range(4)
    ]
    for line in commands[
        1:
    ]:  # only rows with other workers than the first ask for something else
        assert ("--cpus-per-task=" in line) == (
            ("-w2-" in line) != ("-w2-" in commands[0])
        ), line
        assert "--nodes" not in line


@pytest.mark.slow
def test_weights_that_may_be_missing_are_refused_where_they_can_be_fetched(
    call, queued: Path, slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm(sbatch="echo 7")
    (queued.parent / "mine.py").write_text("data = 'digits'\nkind = 'classes'\n")
    queued.write_text(queued.read_text().replace('"cnn"', '"mine.py"'))
    monkeypatch.setattr("scalestudy.app.task_checks.build_task", lambda *_: ())
    call("data", "prepare", "digits")
    from scalestudy.data.preparation import find_prepared
    from scalestudy.data.split import ensure_split

    ensure_split(find_prepared(data_of("digits")), None, 0)  # type: ignore[arg-type]
    code, _, errors = call("submit", queued)
    assert (
        code == 2
        and "model has been built here" in errors
        and "scalestudy data prepare" in errors
    )
    prepare(call, queued)
    assert call("submit", queued)[0] == 0


def test_a_point_that_needs_more_than_a_node_has_is_refused(call, queued: Path) -> None:
    queued.write_text(
        queued.read_text().replace(LAUNCH, LAUNCH + "cpus_per_worker = 8\n")
    )
    code, _, errors = call("submit", queued)
    assert code == 2 and "4 cores of a node" in errors


def test_a_limit_of_jobs_is_refused_for_a_study_without_jobs(
    call, study: Path, launcher
) -> None:
    for more in ([], ["--dry-run"]):
        code, _, errors = call("run", study, "--at-most", "2", *more)
        assert code == 2 and "--at-most" in errors and 'launch.on = "local"' in errors
    assert launcher.ran == []


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (Path.mkdir, "a folder"),
        (lambda lock: lock.symlink_to("elsewhere"), "a symbolic link to elsewhere"),
    ],
)
def test_a_lock_that_is_no_file_is_wrong_input(
    call, study: Path, launcher, make, found
) -> None:
    call("run", study, "--no-report")
    folder = opened(study)
    shutil.rmtree(folder.runs("native-w2-s0")[0].path)
    lock = folder.path / "lock"
    lock.unlink()
    make(lock)
    code, _, errors = call("run", study, "--no-report")
    assert (
        code == 2
        and f"a lock file at {lock}" in errors
        and f"Received {found}" in errors
    )


def test_results_are_not_put_into_a_new_folder_at_the_root(
    call, study: Path, launcher
) -> None:
    code, _, errors = call("run", study, "--out", "/unmounted-scratch/results")
    assert code == 2 and "a folder that exists: /unmounted-scratch" in errors
    assert not Path("/unmounted-scratch").exists()
