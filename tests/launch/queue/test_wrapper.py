"""The process that monitors the ranks of a job; `test_script_runs.py` starts it from job scripts."""

import signal

import psutil
import pytest

from scalestudy.launch.queue import wrapper
from scalestudy.measure import hang_detection
from scalestudy.store.records import JobRecord, Sign
from scalestudy.store.run_folder import RunFolder, write_point
from sites import job, site

pytestmark = pytest.mark.slow


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run whose ranks may be silent for half a second; signal handlers are restored."""
    for name in ("SCALESTUDY_SUBMISSION", "SLURM_JOB_ID", "SLURM_ARRAY_TASK_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(hang_detection, "HANG_GRACE", 0.2)
    monkeypatch.setattr(wrapper, "HANG_EVERY", 0.1)
    monkeypatch.setattr(wrapper, "GRACE", 0.2)
    before = {number: signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGTERM)}
    made = job("single", 1, site()).point
    launch = made.launch.model_copy(update={"progress_timeout": 0.3})
    write_point(tmp_path / "point.json", made.on(launch=launch))
    monkeypatch.chdir(tmp_path)
    yield RunFolder(tmp_path)
    for number, handler in before.items():
        signal.signal(number, handler)


def work(run, script):
    return wrapper.main(["slurm", "1", "0", str(run.path), "sh", "-c", script])


def test_a_rank_that_is_stopped_does_not_hold_the_job(run):
    assert work(run, "echo $$ >pid; kill -STOP $$; touch went-on") == 128 + signal.SIGKILL
    assert run.exit_code() == 137
    assert run.hang().seconds > 0.5
    assert not (run.path / "went-on").exists()
    assert not psutil.pid_exists(int((run.path / "pid").read_text()))


def test_a_heartbeat_grants_its_own_time_and_those_of_an_earlier_job_are_gone(run, monkeypatch):
    (run.path / "signs").mkdir()
    (run.path / "signs" / "1.json").touch()
    sign = Sign(
        rank=0, host="n1", pid=1, written=1.0, moved=1.0, due=60, marks=1, phase="train", epoch=1, step=1
    )
    text = sign.model_dump_json()
    assert work(run, f"mkdir signs; echo '{text}' >signs/0.json; ls signs >seen; sleep 1.5; exit 3") == 3
    assert (run.path / "seen").read_text() == "0.json\n"
    assert run.hang() is None


@pytest.mark.parametrize(("work_done", "kept"), [("touch result.json", False), ("exit 3", True)])
def test_heartbeats_are_removed_once_a_run_is_done(run, work_done, kept):
    work(run, f"mkdir signs; touch signs/0.json; {work_done}")
    assert (run.path / "signs").exists() is kept


def test_a_command_that_is_not_there_ends_the_job(run):
    assert wrapper.main(["slurm", "1", "0", str(run.path), "/no/such"]) == 127
    assert run.exit_code() == 127


def test_a_job_records_what_it_holds_from_start_to_end(run, monkeypatch, tmp_path):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_CPUS_PER_NODE", "4(x2),2")
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "2")
    monkeypatch.setenv("SLURM_JOB_START_TIME", "1000")
    monkeypatch.setenv("SCALESTUDY_SUBMISSION", "s")
    run.write_job(JobRecord(job="7", submission="s", submitted=1.0, site="here", script="x.sh"))
    assert work(run, "exit 3") == 3
    (held,) = run.allocations().jobs
    assert (held.job, held.nodes, held.cores, held.gpus, held.began) == ("7", 3, 10, 6, 1000.0)
    assert held.ended is not None and held.ended > held.began
