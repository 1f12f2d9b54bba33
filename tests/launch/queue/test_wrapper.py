"""The process that monitors the ranks of a job; `test_job_script_runs.py` starts it from job scripts."""

import signal
import time
from pathlib import Path

import psutil
import pytest

from forked import Forked
from scalestudy.launch.queue import wrapper
from scalestudy.measure import hang_detection
from scalestudy.store.records import JobRecord, Sign
from scalestudy.store.run_folder import RunFolder, write_point
from sites import SUBMISSION, job, site

pytestmark = pytest.mark.slow
RUNNING = 'echo "JobId=7 JobName=x JobState=RUNNING Reason=None"'
ENDING = RUNNING.replace("RUNNING", "COMPLETING")
"""Slurm reports COMPLETING for cancelled and for preempted jobs, and would accept a requeue of both."""


def give(run: Path, submission: str = SUBMISSION, job: str = "") -> None:
    """Record the submission to which a run belongs."""
    run.mkdir(exist_ok=True)
    record = JobRecord(
        job=job,
        submission=submission,
        submitted=time.time(),
        site="here",
        script="x.sh",
    )
    RunFolder(run).write_job(record)


@pytest.fixture
def run(tmp_path, monkeypatch) -> RunFolder:
    """A run of job 7, whose ranks may be silent for half a second."""
    monkeypatch.setenv("SCALESTUDY_SUBMISSION", SUBMISSION)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.delenv("SLURM_ARRAY_TASK_ID", raising=False)
    monkeypatch.setattr(hang_detection, "HANG_GRACE", 0.2)
    monkeypatch.setattr(wrapper, "HANG_EVERY", 0.1)
    monkeypatch.setattr(wrapper, "GRACE", 0.2)
    monkeypatch.setattr(wrapper, "POLL", 0.02)
    folder = tmp_path / "run-1"
    give(folder)
    write_point(folder / "point.json", job("single", 1, site()).point)
    return RunFolder(folder)


@pytest.fixture
def impatient(run) -> RunFolder:
    """The run, with a limit of 0.3 s for its progress."""
    point = run.point()
    launch = point.launch.model_copy(update={"progress_timeout": 0.3})
    write_point(run.path / "point.json", point.on(launch=launch))
    return run


@pytest.fixture
def scontrol(programs):
    """Let Slurm say that the job runs; the returned function lists the calls of scontrol."""
    return programs(scontrol=RUNNING)


def requeued(asked) -> bool:
    return "scontrol requeue 7" in asked()


def work(run: RunFolder, script: str, requeues: int = 10) -> tuple[int, str]:
    """Run a job whose ranks are a shell script; return its exit code (negative: a signal) and its output."""
    words = [
        "slurm",
        "0",
        str(requeues),
        str(run.path),
        "sh",
        "-c",
        f"cd {run.path}\n{script}",
    ]
    process = Forked(lambda: wrapper.main(words), run.path.parent)
    return process.wait(), process.output()


STOPS = """
kill -USR1 $PPID
while [ ! -e stop ]; do sleep 0.02; done
touch -r stop checkpoint.npz
echo '{"epoch": 3, "step": 12}' >stopped.json
exit 0"""
"""Ranks that are asked to stop near their job's time limit, and stop within the same tick of the clock."""
LEAVES = STOPS.replace("-USR1", "-TERM")
"""Ranks that stop because their job must leave its nodes."""


@pytest.mark.parametrize(
    ("script", "slurm", "code", "exit_code", "put_back"),
    [
        pytest.param("exit 3", RUNNING, 3, 3, False, id="failed"),
        pytest.param(":", RUNNING, 1, 1, False, id="without a result"),
        pytest.param(STOPS, RUNNING, 0, None, True, id="stopped"),
        pytest.param(
            STOPS, "exit 1", 75, 75, True, id="stopped, but refused by the queue"
        ),
        pytest.param(
            STOPS.replace("exit 0", "touch result.json"),
            RUNNING,
            0,
            0,
            False,
            id="done meanwhile",
        ),
        pytest.param(
            STOPS.replace("exit 0", "exit 5"),
            RUNNING,
            5,
            5,
            False,
            id="failed meanwhile",
        ),
        pytest.param(LEAVES, RUNNING, 0, None, True, id="preempted"),
        pytest.param(
            LEAVES.replace("exit 0", "exit 137"),
            RUNNING,
            0,
            None,
            True,
            id="preempted and killed",
        ),
        pytest.param(LEAVES, ENDING, -15, None, False, id="cancelled"),
        pytest.param(STOPS, ENDING, 75, 75, False, id="cancelled after it stopped"),
        pytest.param(
            LEAVES.replace("exit 0", "touch result.json"),
            ENDING,
            0,
            0,
            False,
            id="done, cancelled",
        ),
        pytest.param(
            LEAVES.replace("echo", ": echo")
            .replace(">stopped", "stopped")
            .replace("exit 0", "exit 1"),
            *(RUNNING, 1, 1, False),
            id="preempted with a checkpoint that answers no request",
        ),
    ],
)
def test_a_job_is_put_back_only_if_it_stopped_and_nobody_cancelled_it(
    run, programs, script, slurm, code, exit_code, put_back
):
    asked = programs(scontrol=slurm)
    ended, output = work(run, script)
    assert (ended, run.exit_code()) == (code, exit_code)
    assert requeued(asked) == (put_back and slurm == RUNNING)
    assert run.checkpoint.exists() == ("checkpoint" in script)
    if put_back:
        assert not run.stop.exists() and run.stopped() is None
        assert "in epoch 3 after step 12" in output
        assert ("submit the study again" in output) == (slurm != RUNNING)


def test_a_job_queues_itself_no_more_often_than_the_limit(run, scontrol, monkeypatch):
    for told in ("1 of 2", "2 of 2"):
        assert work(run, STOPS, requeues=2)[0] == 0
        assert run.requeues() == told
        assert run.job().job == "7"
    monkeypatch.setenv("SLURM_RESTART_COUNT", "9")
    assert work(run, STOPS, requeues=2)[0] == 75
    assert scontrol().count("scontrol requeue 7") == 2
    assert run.exit_code() == 75


def test_a_preemption_with_grace_uses_up_no_requeue(run, scontrol):
    for _ in range(2):
        assert work(run, LEAVES, requeues=1)[0] == 0
    assert scontrol().count("scontrol requeue 7") == 2
    assert not (run.path / "requeues").exists()


@pytest.mark.parametrize("script", [STOPS, LEAVES])
def test_a_site_that_forbids_it_sees_no_job_queue_itself(run, scontrol, script):
    assert work(run, script, requeues=0)[0] == run.exit_code() == 75
    assert not requeued(scontrol)


def test_a_job_that_was_put_back_by_others_may_still_queue_itself(
    run, scontrol, monkeypatch
):
    monkeypatch.setenv("SLURM_RESTART_COUNT", "50")
    assert work(run, STOPS)[0] == 0


def test_a_job_leaves_a_folder_that_was_given_to_another_submission(run):
    give(run.path, "0" * 16)
    code, output = work(run, "touch began-work")
    assert code == 1 and "job 7 leaves: this folder belongs to another job" in output
    assert not any(
        (run.path / name).exists() for name in ("began-work", "began", "exit")
    )


def test_a_job_leaves_a_folder_in_which_another_job_of_its_script_is_at_work(run):
    (run.path / "began").write_text(f"{SUBMISSION} 6\n")
    assert work(run, "touch began-work")[0] == 1
    assert not (run.path / "began-work").exists()
    assert (run.path / "began").read_text() == f"{SUBMISSION} 6\n"


def test_a_script_submitted_by_hand_goes_on_after_the_job_that_has_ended(
    run, monkeypatch
):
    assert work(run, "exit 3")[0] == 3
    monkeypatch.setenv("SLURM_JOB_ID", "8")
    assert work(run, "exit 3")[0] == 3
    assert run.job().job == "8"


@pytest.mark.parametrize("again", ["cd ..; rm -rf run-1; mkdir run-1; cd run-1; ", ""])
def test_a_job_whose_folder_became_anothers_meanwhile_leaves_no_exit_code(
    run, tmp_path, again
):
    give(tmp_path / "other", "0" * 16)
    assert work(run, f"{again}cp ../other/job.json .; touch {tmp_path}/worked")[0] == 1
    assert (tmp_path / "worked").exists() and not (run.path / "exit").exists()


def test_what_an_earlier_job_left_is_cleared(run):
    (run.path / "causes").mkdir()
    for name in ("exit", "stop", "stopped.json", "causes/1.json"):
        (run.path / name).touch()
    assert (
        work(
            run,
            "for left in exit stop stopped.json causes; do [ ! -e $left ] || exit 9; done; touch result.json",
        )[0]
        == 0
    )


def test_a_rank_that_is_stopped_does_not_hold_the_job(impatient):
    code, _ = work(impatient, "echo $$ >pid; kill -STOP $$; touch went-on")
    assert code == impatient.exit_code() == 128 + signal.SIGKILL
    assert impatient.hang().seconds > 0.5
    assert not (impatient.path / "went-on").exists()
    assert not psutil.pid_exists(int((impatient.path / "pid").read_text()))


def test_a_heartbeat_grants_its_own_time_and_those_of_an_earlier_job_are_gone(
    impatient,
):
    (impatient.path / "signs").mkdir()
    (impatient.path / "signs" / "1.json").touch()
    sign = Sign(
        rank=0,
        host="n1",
        pid=1,
        written=1.0,
        moved=1.0,
        due=60,
        marks=1,
        phase="train",
        epoch=1,
        step=1,
    )
    beats = f"mkdir signs; echo '{sign.model_dump_json()}' >signs/0.json; ls signs >seen; sleep 1.5; exit 3"
    assert work(impatient, beats)[0] == 3
    assert (impatient.path / "seen").read_text() == "0.json\n"
    assert impatient.hang() is None


def test_a_command_that_is_not_there_ends_the_job(run):
    assert (
        Forked(
            lambda: wrapper.main(["slurm", "0", "0", str(run.path), "/no/such"]),
            run.path,
        ).wait()
        == 127
    )
    assert run.exit_code() == 127


def test_a_job_records_what_it_holds_from_start_to_end(run, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_CPUS_PER_NODE", "4(x2),2")
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "2")
    monkeypatch.setenv("SLURM_JOB_START_TIME", "1000")
    assert work(run, "exit 3")[0] == 3
    (held,) = run.allocations().jobs
    assert (held.job, held.nodes, held.cores, held.gpus, held.began) == (
        "7",
        3,
        10,
        6,
        1000.0,
    )
    assert held.ended is not None and held.ended > held.began
