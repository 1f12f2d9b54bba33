"""Submitting to a queue: marks, what a refusal or a full disk leaves, and what is submitted again."""

import time
from dataclasses import replace

import pytest

from scalestudy.launch.job_view import UNKNOWN
from scalestudy.launch.launcher import Options, Overview, PointStatus
from scalestudy.launch.queue.launchers import SLURM
from scalestudy.launch.queue.queue_launcher import (
    Submission,
    can_continue,
    cancel_jobs,
    next_submission,
    next_submissions,
    submit_point,
)
from scalestudy.launch.scheduler import MARK, QueueRefused, QueueUnreachable, read_mark
from scalestudy.store.records import Failure, JobRecord
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.state import how_it_failed, state_of_runs
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import RunError, ScalestudyError, UserError
from sites import site


@pytest.mark.parametrize("around", ["{}", "mine {} too", "a:{}", "x={},y=1"])
def test_a_mark_is_found_within_a_comment(around):
    assert (
        read_mark(around.format(MARK.format(submission="0123456789abcdef")))
        == "0123456789abcdef"
    )
    assert [
        read_mark(text) for text in ("", "(null)", "scalestudy", "scalestudy:12")
    ] == [None] * 4


COUNTER = 'n=$(cat "$0.n" 2>/dev/null || echo 0); n=$((n + 1)); echo $n > "$0.n"; '
TAKES_ALL = COUNTER + "echo $((100 + n))"
ONE, TWO = "native-w1-s0", "native-w2-s1"


def submitted(
    folder: StudyFolder, *names: str, how: Submission | None = None
) -> tuple[list[str], ScalestudyError | None]:
    """Return the submitted jobs, and the error that stopped the submission or None."""
    points = {point.name: point for point in folder.points()}
    jobs: list[str] = []
    try:
        for name in names:
            jobs.append(
                submit_point(
                    folder,
                    points[name],
                    how or Submission(),
                    SLURM.queue,
                    site(),
                    "test",
                )
            )
    except ScalestudyError as error:
        return jobs, error
    return jobs, None


def by_files(folder: StudyFolder) -> dict[str, str]:
    return {
        point.name: state_of_runs(folder.runs(point.name)) for point in folder.points()
    }


def left_behind(folder: StudyFolder) -> set[str]:
    return {
        path.relative_to(folder.path).as_posix() for path in folder.path.rglob("*")
    } - {
        "study.json",
        "study.toml",
    }


def failed(
    folder: StudyFolder, state: str, *, checkpoint: bool, attempt: int = 1
) -> PointStatus:
    point = folder.points()[0]
    run = folder.new_run(point)
    job = JobRecord(
        job="9", submitted=time.time(), site="here", script="x.sh", attempt=attempt
    )
    run.write_job(job)
    (run.path / "began").touch()
    failure = Failure(rank=None, exit_code=None, reason="it ended", job_state=state)
    run.write_failure(failure)
    if checkpoint:
        run.checkpoint.touch()
    return PointStatus(
        point,
        how_it_failed(failure),
        run=run,
        job=job,
        failure=failure,
    )


def test_every_run_knows_its_job_and_every_script_its_run(
    folder: StudyFolder, programs
) -> None:
    asked = programs(sbatch=TAKES_ALL)
    assert submitted(folder, ONE, TWO) == (["101", "102"], None)
    records = [folder.runs(name)[0].job() for name in (ONE, TWO)]
    assert [
        (job.job, job.site, job.cluster, job.attempt) for job in records if job
    ] == [
        ("101", "here", "test", 1),
        ("102", "here", "test", 1),
    ]
    assert len({job.submission for job in records if job} | {""}) == 3
    script = folder.path / "jobs" / f"{TWO}.sh"
    assert f"run={folder.runs(TWO)[0].path.absolute()}\n" in script.read_text()
    assert asked()[1] == f"sbatch --parsable {script}"
    assert by_files(folder) == {
        "native-w1-s1": "missing",
        "native-w2-s0": "missing",
        ONE: "queued",
        TWO: "queued",
    }


def test_what_slurm_refuses_leaves_nothing_behind_and_what_it_took_before_stays(
    folder: StudyFolder, programs
) -> None:
    programs(
        sbatch=COUNTER
        + "[ $n = 1 ] && echo 5 || { echo 'sbatch: error: no more' >&2; exit 1; }"
    )
    jobs, error = submitted(folder, ONE, TWO)
    assert (
        jobs == ["5"] and isinstance(error, QueueRefused) and error.words == "no more"
    )
    assert by_files(folder)[ONE] == "queued" and not folder.runs(TWO)
    assert [path.name for path in (folder.path / "jobs").iterdir()] == [f"{ONE}.sh"]


LATE = """mark=$(grep -o 'scalestudy:[0-9a-f]*' "${!#}"); echo "77|mine $mark" >"$0.queue"
echo "sbatch: error: Socket timed out on send/recv operation" >&2; exit 1"""
"""Accepts the job but times out before it answers."""
SILENT = 'echo "error: Unable to contact slurm controller" >&2; exit 1'


def test_a_job_that_was_taken_though_the_answer_was_late_is_found_by_its_mark(
    folder: StudyFolder, programs
) -> None:
    other = "76|scalestudy:0123456789abcdef"
    programs(
        sbatch=LATE, squeue=f"echo '{other}'; echo '75|'; cat ${{0%squeue}}sbatch.queue"
    )
    assert submitted(folder, ONE) == (["77"], None)


@pytest.mark.parametrize("full", ["before the queue is asked", "after it has answered"])
def test_a_full_disk_leaves_no_job_that_no_run_knows_of(
    folder: StudyFolder, programs, monkeypatch: pytest.MonkeyPatch, full
) -> None:
    asked = programs(sbatch="echo 5", scancel="")
    write = RunFolder.write_job

    def write_job(run: RunFolder, job: JobRecord) -> None:
        if job.job or full == "before the queue is asked":
            raise OSError(122, "Disk quota exceeded", "job.json")
        write(run, job)

    monkeypatch.setattr(RunFolder, "write_job", write_job)
    _jobs, error = submitted(folder, ONE)
    assert isinstance(error, RunError) and "quota" in error.received
    assert asked()[1:] == (
        [] if full == "before the queue is asked" else ["scancel --quiet 5"]
    )
    assert bool(asked()) == (full != "before the queue is asked")
    assert left_behind(folder) - {"points", "jobs"} == set()


def test_what_slurm_may_have_taken_stays_for_the_next_look_to_find(
    folder: StudyFolder, programs
) -> None:
    programs(sbatch=SILENT, squeue="")
    assert isinstance(submitted(folder, ONE)[1], QueueUnreachable)
    assert left_behind(folder) - {"points", "jobs"} == set(), "it has no such job"
    programs(sbatch=LATE, squeue=SILENT)
    jobs, error = submitted(folder, ONE)
    assert isinstance(error, QueueUnreachable) and jobs == []
    assert folder.runs(ONE)[0].job().job == ""  # type: ignore[union-attr]
    assert by_files(folder)[ONE] == "queued"


def test_ctrl_c_while_the_queue_is_asked_leaves_a_run_that_the_next_look_settles(
    folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(SLURM.queue), "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        submitted(folder, ONE)
    assert folder.runs(ONE)[0].job().job == ""  # type: ignore[union-attr]


def test_a_job_finds_its_submission_in_its_folder_though_it_begins_before_its_id_is_known(
    folder: StudyFolder, programs
) -> None:
    digits = """$(grep -o 'SUBMISSION=[0-9a-f]*' "${!#}" | cut -d= -f2)"""
    programs(
        sbatch=f'grep -q "{digits}" {folder.path}/points/*/run-1/job.json && echo 5'
    )
    assert submitted(folder, ONE) == (["5"], None)


def test_a_run_that_goes_on_keeps_its_folder_and_loses_what_its_last_job_left(
    folder: StudyFolder, programs
) -> None:
    programs(sbatch="exit 1")
    seen = failed(folder, "TIMEOUT", checkpoint=True)
    run = seen.run
    assert run is not None
    again = next_submission(seen, limit=3)
    assert again == Submission(2, run)
    submitted(folder, ONE, how=again)
    assert by_files(folder)[ONE] == "failed", "it was refused"
    assert run.checkpoint.exists() and run.job() == seen.job
    for name in ("exit", "stop", "began"):
        (run.path / name).touch()
    programs(sbatch=TAKES_ALL)
    submitted(folder, ONE, how=again)
    assert folder.runs(ONE) == [run]
    assert run.job().attempt == 2 and run.job().job == "101"  # type: ignore[union-attr]
    assert {path.name for path in run.path.iterdir()} == {
        "point.json",
        "launcher.json",
        "job.json",
        "checkpoint.npz",
    }
    assert by_files(folder)[ONE] == "queued"


def test_no_script_is_overwritten(folder: StudyFolder, programs) -> None:
    programs(sbatch=TAKES_ALL)
    for _ in range(2):
        submitted(folder, ONE)
    assert {path.name for path in (folder.path / "jobs").iterdir()} == {
        "native-w1-s0.sh",
        "native-w1-s0-2.sh",
    }


@pytest.mark.parametrize(
    "state", ["TIMEOUT", "NODE_FAIL", "PREEMPTED", "CANCELLED", "STOPPED"]
)
def test_the_interrupted_go_on_and_all_others_start_anew(
    folder: StudyFolder, state: str
) -> None:
    seen = failed(folder, state, checkpoint=True)
    assert next_submission(seen, limit=3) == Submission(2, seen.run)
    assert next_submission(
        failed(folder, state, checkpoint=False), limit=3
    ) == Submission(2)
    assert next_submission(
        failed(folder, "FAILED", checkpoint=True), limit=3
    ) == Submission(2)
    assert can_continue(seen) == (state != "CANCELLED"), (
        "by itself, unless a person has ended it"
    )
    assert not can_continue(failed(folder, state, checkpoint=False))


def test_a_job_that_its_queue_has_forgotten_goes_on_from_its_checkpoint(
    folder: StudyFolder,
) -> None:
    status = failed(folder, UNKNOWN, checkpoint=True)
    submission = next_submission(status, limit=3)
    assert submission and submission.resume == status.run
    failure = status.failure.model_copy(update={"exit_code": 3})
    assert next_submission(replace(status, failure=failure), limit=3) == Submission(2)


def test_a_point_is_submitted_again_no_more_often_than_the_limit(
    folder: StudyFolder,
) -> None:
    assert next_submission(
        failed(folder, "FAILED", checkpoint=False, attempt=3), limit=3
    ) == Submission(4)
    assert (
        next_submission(failed(folder, "FAILED", checkpoint=False, attempt=4), limit=3)
        is None
    )
    assert next_submission(failed(folder, "FAILED", checkpoint=False), limit=0) is None


def test_a_job_that_was_cancelled_before_it_started_does_not_count(
    folder: StudyFolder,
) -> None:
    ran = failed(folder, "CANCELLED", checkpoint=False, attempt=4)
    assert next_submission(ran, limit=3) is None
    (ran.run.path / "began").unlink()
    assert next_submission(ran, limit=3) == Submission(4)


@pytest.mark.parametrize("state", ["done", "running", "queued"])
def test_what_is_done_or_under_way_is_left_alone(folder: StudyFolder, state) -> None:
    assert next_submission(PointStatus(folder.points()[0], state), limit=3) is None
    assert (
        next_submission(PointStatus(folder.points()[0], "missing"), limit=0)
        == Submission()
    )


def test_no_more_than_that_many_jobs_are_kept_in_the_queue(folder: StudyFolder) -> None:
    points = [PointStatus(point, "missing") for point in folder.points()]
    overview = Overview([replace(points[0], state="queued"), *points[1:]])
    names_of_all = [point.name for point in points]
    submissions, notes = next_submissions(overview, names_of_all, Options(at_most=2))
    assert list(submissions) == [points[1].name]
    assert len(notes) == 1
    assert (
        next_submissions(overview, names_of_all, Options(at_most=2, feeds=True))[1]
        == []
    )
    assert next_submissions(overview, names_of_all, Options(at_most=1))[0] == {}
    assert len(next_submissions(overview, names_of_all, Options())[0]) == 3


def test_a_dry_run_writes_nothing_and_prints_lines_that_a_shell_could_run(
    folder: StudyFolder, tmp_path
) -> None:
    (tmp_path / "here.toml").write_text("cpus_per_node = 4\n")
    study = folder.study.model_copy(
        update={
            "launch": folder.study.launch.model_copy(
                update={"on": "slurm", "site": "./here.toml"}
            )
        }
    )
    points = {point.name: point for point in folder.points()}
    overview = Overview([PointStatus(point, "missing") for point in points.values()])
    before = left_behind(folder)
    options = Options(base=tmp_path)
    _, *printed = SLURM.dry_run(
        folder.path, study, {ONE: points[ONE]}, overview, options
    )
    assert left_behind(folder) == before
    assert f"run={folder.path.absolute()}/points/{ONE}/run-1\n" in printed[0]
    assert printed[1] == f"\nsbatch --parsable {folder.path.absolute()}/jobs/{ONE}.sh\n"
    after = replace(options, after="7")
    _, *printed = SLURM.dry_run(folder.path, study, {ONE: points[ONE]}, overview, after)
    assert (
        "sbatch --parsable --dependency=afterok:7 --kill-on-invalid-dep=yes "
        in printed[1]
    )


@pytest.mark.parametrize(
    ("job", "state", "refused"),
    [
        ("7", "PENDING", None),
        ("7", "COMPLETED", None),
        ("7", "FAILED", "which has ended as FAILED"),
        ("7", "", "which it does not know"),
        ("7:8", "RUNNING", "'7:8'"),
    ],
)
def test_jobs_start_after_a_job_that_can_still_succeed(
    folder, programs, tmp_path, job, state, refused
):
    (tmp_path / "here.toml").write_text("cpus_per_node = 4\n")
    programs(
        squeue=f"echo '7|{state}||N/A|None'" if state else "",
        sacct="",
        scontrol="exit 1",
    )
    launch = folder.study.launch.model_copy(
        update={"on": "slurm", "site": "./here.toml"}
    )
    study = folder.study.model_copy(update={"launch": launch})
    options = Options(base=tmp_path, after=job)
    if refused is None:
        assert len(SLURM.points(study, options)) == 4
    else:
        with pytest.raises(UserError) as error:
            SLURM.points(study, options)
        assert refused in error.value.received


def test_a_dependency_reaches_sbatch(folder: StudyFolder, programs) -> None:
    asked = programs(sbatch=TAKES_ALL)
    point = folder.points()[0]
    submit_point(folder, point, Submission(), SLURM.queue, site(), after="7")
    assert "--dependency=afterok:7" in asked()[-1]


def test_a_job_of_a_launcher_that_is_not_here_is_not_taken_for_cancelled(
    folder: StudyFolder,
) -> None:
    run = folder.new_run(folder.points()[0])
    run.write_job(
        JobRecord(
            queue="elsewhere",
            job="7",
            submitted=time.time(),
            site="here",
            script="x.sh",
        )
    )
    with pytest.raises(UserError, match="elsewhere"):
        cancel_jobs(folder, [])
    assert not run.cancelled.exists()
