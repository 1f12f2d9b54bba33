"""Rendered scripts under a real bash, with a worker that records what it receives."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scalestudy.launch.queue.point_job import JobScript
from scalestudy.launch.queue.site_profile import Container
from scalestudy.store.records import JobRecord
from scalestudy.store.run_folder import RunFolder, write_point
from sites import MARK, job, job_script, site

pytestmark = pytest.mark.slow
SOURCE = Path(__file__).parents[3] / "src"
SKIP_OPTIONS = 'while [[ $1 == -* ]]; do shift; done\nexec "$@"'
SKIP_TO_PYTHON = 'while [[ $1 != env && $1 != */python ]]; do shift; done\nexec "$@"'
NAMES = st.text(
    st.characters(exclude_characters="\0/", exclude_categories=["Cs"])
    | st.sampled_from("'\"$`\\ \n%*~#&;(){}"),
    min_size=1,
    max_size=30,
).filter(lambda name: name not in (".", "..") and len(name.encode()) < 200)


@dataclass
class Node:
    """A folder with programs of its own first on PATH, which record their calls."""

    root: Path
    wrapper: bool = True
    """Whether the job has its wrapper, which takes a while to start."""

    def __post_init__(self) -> None:
        (self.root / "bin").mkdir()
        (self.root / "told").mkdir()
        self.program("python", "")
        self.program("srun", SKIP_OPTIONS)
        self.program("mpirun", SKIP_TO_PYTHON)
        self.program("apptainer", SKIP_TO_PYTHON)
        self.says("RUNNING")

    def says(self, state: str) -> None:
        """Set the state that Slurm reports for the job."""
        self.program("scontrol", f'echo "JobId=7 JobName=x JobState={state} Reason=None"')

    def program(self, name: str, body: str) -> None:
        file = self.root / "bin" / name
        told = self.root / "told" / name
        wrapper = f'exec {sys.executable} "$@"' if self.wrapper else 'shift 7; exec "$@"'
        wrapped = f'if [ "$3" = scalestudy.launch.queue.wrapper ]; then {wrapper}; fi'
        file.write_text(
            f"#!/bin/bash\n{wrapped}\nprintf '%s\\0' \"$@\" >>{told}\nenv -0 >{told}.env\n{body}\n"
        )
        file.chmod(0o755)

    def called(self, name: str) -> list[str] | None:
        file = self.root / "told" / name
        return os.fsdecode(file.read_bytes()).split("\0")[:-1] if file.exists() else None

    def environment(self, name: str = "python") -> dict[str, str]:
        lines = os.fsdecode((self.root / "told" / f"{name}.env").read_bytes()).split("\0")[:-1]
        return dict(line.partition("=")[::2] for line in lines)

    def give(self, run: Path, submission: str, job: str = "") -> None:
        """Record the submission to which a run belongs."""
        run.mkdir(parents=True, exist_ok=True)
        record = JobRecord(job=job, submission=submission, submitted=time.time(), site="here", script="x.sh")
        RunFolder(run).write_job(record)

    def run(self, made: JobScript, **environment: str) -> int:
        """Run the script as Slurm does, in the run's folder; return its exit code."""
        for file in (self.root / "told").iterdir():
            file.unlink()
        made.run.mkdir(parents=True, exist_ok=True)
        write_point(made.run / "point.json", made.point)
        if not (made.run / "job.json").exists():
            self.give(made.run, MARK.submission)
        script = self.root / "job.sh"
        script.write_text(job_script(replace(made, python=str(self.root / "bin" / "python"), source=SOURCE)))
        given = {
            "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}",
            "SLURM_JOB_ID": "7",
            "LC_ALL": "C.UTF-8",
        }
        return subprocess.run(["bash", script], env=given | environment, check=False, timeout=600).returncode


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def log(run: Path) -> str:
    return (run / "logs" / "job.log").read_text()


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=NAMES,
    launcher=st.sampled_from(["srun", "mpirun"]),
    strategy=st.sampled_from(["horovod", "single"]),
    container=st.booleans(),
    word=NAMES,
)
@example(" ", "srun", "horovod", True, "%j")
@example("it's $HOME", "mpirun", "horovod", False, "$(id)\n")
@example("$\x7f`\1", "mpirun", "horovod", True, "$\x7f")
def test_the_worker_receives_the_very_folder_of_its_run(node, name, launcher, strategy, container, word):
    node.wrapper = False
    node.program("python", "")
    run = node.root / "runs" / name
    image = Container(image=f"/images/{word}".replace("$", "$$"), python=str(node.root / "bin" / "python"))
    on = site(launcher=launcher, container=image if container else None, wrapper=("env", f"WORD={word}"))
    run.mkdir(parents=True, exist_ok=True)
    (run / "result.json").touch()
    assert node.run(job(strategy, 2 if strategy == "horovod" else 1, on, run)) == 0
    assert node.called("python") == ["-m", "scalestudy.worker", str(run)]
    assert node.environment()["WORD"] == word
    assert (node.called("apptainer") is None) == (not container)
    if container:
        assert f"/images/{word}" in node.called("apptainer")
    if strategy == "horovod":
        assert node.called(launcher) is not None


def test_a_folder_whose_name_is_no_text_is_found(node):
    run = node.root / os.fsdecode(b"caf\xe9 '$HOME")
    run.mkdir()
    (run / "result.json").touch()
    assert node.run(job("single", 1, site(), run)) == 0
    assert node.called("python")[-1] == str(run)


@pytest.fixture
def run(node: Node) -> Path:
    return node.root / "study" / "run-1"


@pytest.mark.parametrize("strategy", ["single", "horovod"])
def test_the_workers_exit_code_is_the_jobs_and_written_down(node, run, strategy):
    node.program("python", "echo out of luck >&2; exit 3")
    assert node.run(job(strategy, 1, site(), run)) == 3
    assert (run / "exit").read_text() == "3\n"
    assert "out of luck" in log(run)


def test_a_worker_that_ends_well_without_a_result_has_failed(node, run):
    assert node.run(job("single", 1, site(), run)) == 1
    assert (run / "exit").read_text() == "1\n"


def test_what_an_earlier_job_left_is_cleared_and_its_log_goes_on(node, run):
    run.mkdir(parents=True)
    (run / "exit").write_text("9")
    (run / "stop").touch()
    (run / "causes").mkdir()
    (run / "causes" / "1.json").touch()
    gone = " && ".join(f'[ ! -e "{run}/{name}" ]' for name in ("exit", "stop", "causes"))
    node.program("python", f'{gone} && touch "{run}/result.json"')
    made = job("single", 1, site(), run)
    assert node.run(made) == 0
    assert node.run(made) == 0
    assert log(run).count("ended with exit code 0") == 2


STOPS = """
kill -USR1 $PPID
while [ ! -e stop ]; do sleep 0.02; done
touch checkpoint.npz
exit 0"""
"""A worker that is asked to stop near its job's time limit, and stops."""


def test_before_its_time_limit_a_job_is_stopped_and_queued_again(node, run):
    node.program("python", STOPS)
    assert node.run(job("single", 1, site(), run)) == 0
    assert node.called("scontrol")[-2:] == ["requeue", "7"]
    assert not (run / "exit").exists()
    assert not (run / "stop").exists()
    assert "stopped at a checkpoint" in log(run)


def test_a_job_that_cannot_be_queued_again_says_so_and_leaves_its_stop(node, run):
    node.program("python", STOPS)
    node.program("scontrol", "exit 1")
    assert node.run(job("single", 1, site(), run)) == 75
    assert (run / "exit").read_text() == "75\n"
    assert "submit the study again" in log(run)


def test_a_job_queues_itself_no_more_often_than_the_site_says(node, run):
    node.program("python", STOPS)
    made = job("single", 1, site(requeue_limit=2), run)
    for told in ("1 of 2", "2 of 2"):
        assert node.run(made) == 0
        assert RunFolder(run).requeues() == told
    assert node.run(made, SLURM_RESTART_COUNT="9") == 75
    assert "requeue" not in (node.called("scontrol") or ())
    assert (run / "exit").read_text() == "75\n"


def test_a_preemption_with_grace_uses_up_no_requeue(node, run):
    node.program("python", STOPS.replace("-USR1", "-TERM"))
    for _ in range(2):
        assert node.run(job("single", 1, site(requeue_limit=0), run)) == 0
        assert node.called("scontrol")[-2:] == ["requeue", "7"]
    assert not (run / "requeues").exists()


def test_a_job_that_was_put_back_by_others_may_still_queue_itself(node, run):
    node.program("python", STOPS)
    assert node.run(job("single", 1, site(requeue_limit=1), run), SLURM_RESTART_COUNT="50") == 0


def test_a_run_that_is_done_when_it_is_asked_to_stop_is_done(node, run):
    node.program("python", STOPS.replace("exit 0", "touch result.json"))
    assert node.run(job("single", 1, site(), run)) == 0
    assert "requeue" not in (node.called("scontrol") or ())
    assert (run / "exit").read_text() == "0\n"


def test_a_worker_that_fails_while_it_is_asked_to_stop_has_failed(node, run):
    node.program("python", STOPS.replace("exit 0", "exit 5"))
    assert node.run(job("single", 1, site(), run)) == 5
    assert "requeue" not in (node.called("scontrol") or ())


TERMINATED = STOPS.replace("-USR1", "-TERM")
"""A worker that stops because its job must leave its nodes."""


@pytest.mark.parametrize("words", [TERMINATED, TERMINATED.replace("exit 0", "exit 137")])
def test_a_job_that_is_told_to_leave_and_goes_on_running_is_queued_again(node, run, words):
    node.program("python", words)
    assert node.run(job("single", 1, site(), run)) == 0
    assert node.called("scontrol")[-2:] == ["requeue", "7"]
    assert not (run / "stop").exists()


@pytest.mark.parametrize("words", [TERMINATED, STOPS])
def test_a_job_that_its_user_cancels_is_never_put_back(node, run, words):
    """Slurm reports COMPLETING for cancelled and for preempted jobs, and would accept a requeue of both."""
    node.says("COMPLETING")
    node.program("python", words)
    assert node.run(job("single", 1, site(), run)) == (-15 if words == TERMINATED else 75)
    assert "requeue" not in (node.called("scontrol") or ())
    assert (run / "checkpoint.npz").exists()
    assert (run / "exit").exists() == (words == STOPS)


def test_a_run_that_is_done_when_its_job_is_to_leave_is_done(node, run):
    node.says("COMPLETING")
    node.program("python", TERMINATED.replace("exit 0", "touch result.json"))
    assert node.run(job("single", 1, site(), run)) == 0
    assert (run / "exit").read_text() == "0\n"


def test_a_worker_that_leaves_no_checkpoint_when_told_to_leave_has_failed(node, run):
    node.program("python", "touch -d @1 checkpoint.npz" + TERMINATED.replace("touch ch", ": ch") + "1")
    assert node.run(job("single", 1, site(), run)) == 1
    assert "requeue" not in (node.called("scontrol") or ())


MODULES = 'module() { echo "module $*"; [ "$*" != "load missing" ] && export LOADED="${LOADED:-} $*"; }'


def test_modules_are_loaded_by_a_shell_that_does_not_know_them_yet(node, run):
    (node.root / "init").mkdir()
    (node.root / "init" / "bash").write_text(MODULES)
    node.run(job("single", 1, site(modules=("gcc/12", "a b")), run), MODULESHOME=str(node.root))
    assert node.environment()["LOADED"] == " purge load gcc/12 load a b"


def test_a_module_that_is_not_there_ends_the_job_before_the_workers(node, run):
    (node.root / "init").mkdir()
    (node.root / "init" / "bash").write_text(MODULES)
    made = job("single", 1, site(modules=("gcc/12", "missing")), run)
    assert node.run(made, MODULESHOME=str(node.root)) == 1
    assert node.called("python") is None
    assert "module load failed missing" in log(run)


def test_variables_are_the_nodes_and_proxies_are_kept_from_grpc(node, run):
    on = site(env={"WHERE": "$SCRATCH/a b", "PLAIN": "`id` $(id) $$"}, proxies={"http_proxy": "http://p:1"})
    given = {"SCRATCH": "/scratch/of me", "HTTPS_PROXY": "http://q:1"}
    node.run(job("horovod", 2, on, run), **given)
    found = node.environment()
    assert (found["WHERE"], found["PLAIN"]) == ("/scratch/of me/a b", "`id` $(id) $")
    assert (found["http_proxy"], found["HTTPS_PROXY"]) == ("http://p:1", "http://q:1")
    node.run(job("multiworker", 2, on, run), **given)
    assert not {"http_proxy", "HTTPS_PROXY"} & set(node.environment())


@pytest.mark.parametrize(("strategy", "workers"), [("single", 1), ("horovod", 2)])
def test_temporary_files_go_to_the_scratch_folder_of_every_node(node, run, strategy, workers):
    on = site(scratch="$LOCAL/x y", cpus_per_node=1)
    node.run(job(strategy, workers, on, run), LOCAL=str(node.root))
    assert node.environment()["TMPDIR"] == str(node.root / "x y")
    assert (node.root / "x y").is_dir()


def test_a_scratch_folder_that_cannot_be_made_is_not_used(node, run):
    node.run(job("single", 1, site(scratch="/proc/no/such"), run))
    assert "TMPDIR" not in node.environment()


def test_the_environment_of_the_site_comes_first(node, run):
    venv = node.root / "my venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(node.root / "bin" / "python")
    node.run(job("single", 1, site(environment=str(venv)), run))
    assert node.called("python") == ["-m", "scalestudy.worker", str(run)]
    assert node.environment()["PATH"].startswith(f"{venv}/bin:")


def test_mpirun_is_told_which_variables_to_take_along(node, run):
    on = site(launcher="mpirun", env={"MY_OWN": "1"})
    node.run(job("horovod", 2, on, run), HOROVOD_X="1", OTHER="1")
    words = node.called("mpirun")
    taken = {words[index + 1] for index, word in enumerate(words) if word == "-x"}
    assert {"PATH", "MY_OWN", "HOROVOD_X", "OMP_NUM_THREADS"} <= taken
    assert "OTHER" not in taken
    assert ("--allow-run-as-root" in words) == (os.geteuid() == 0)


def test_a_job_leaves_a_folder_that_was_given_to_another_submission(node, run):
    node.give(run, "0" * 16)
    assert node.run(job("single", 1, site(), run)) == 1
    assert node.called("python") is None
    assert "job 7 leaves: this folder belongs to another job" in log(run)
    assert not (run / "began").exists() and not (run / "exit").exists()


def test_a_job_leaves_a_folder_in_which_another_job_of_its_script_is_at_work(node, run):
    run.mkdir(parents=True)
    (run / "began").write_text(f"{MARK.submission} 6\n")
    assert node.run(job("single", 1, site(), run)) == 1
    assert node.called("python") is None
    assert (run / "began").read_text() == f"{MARK.submission} 6\n"


def test_a_script_submitted_by_hand_goes_on_after_the_job_that_has_ended(node, run):
    node.program("python", "exit 3")
    made = job("single", 1, site(), run)
    assert node.run(made) == 3
    assert node.run(made, SLURM_JOB_ID="8") == 3
    assert RunFolder(run).job().job == "8"


def test_a_job_that_is_put_back_into_the_queue_finds_its_folder_its_own(node, run):
    node.program("python", STOPS)
    made = job("single", 1, site(), run)
    for _ in range(2):
        assert node.run(made) == 0
    assert node.called("scontrol")[-2:] == ["requeue", "7"]
    assert RunFolder(run).job().job == "7"


@pytest.mark.parametrize("again", ["rm -rf {run}; mkdir {run}; cp {root}/other.json {run}/job.json", ":"])
def test_a_job_whose_folder_became_anothers_meanwhile_leaves_no_exit_code(node, run, again):
    node.give(node.root / "other", "0" * 16)
    (node.root / "other" / "job.json").rename(node.root / "other.json")
    node.program(
        "python", again.format(run=run, root=node.root) + f"; cp {node.root}/other.json {run}/job.json"
    )
    assert node.run(job("single", 1, site(), run)) == 1
    assert not (run / "exit").exists()


def test_the_workers_know_their_submission(node, run):
    node.run(job("horovod", 2, site(launcher="mpirun"), run))
    assert node.environment()["SCALESTUDY_SUBMISSION"] == MARK.submission
    assert "SCALESTUDY_SUBMISSION" in node.called("mpirun")


def test_a_run_folder_that_is_not_there_is_not_made(node, run):
    made = job("single", 1, site(), run)
    script = node.root / "job.sh"
    script.write_text(job_script(made))
    assert subprocess.run(["bash", script], check=False, capture_output=True).returncode == 1
    assert not run.exists()


def test_what_modules_set_reaches_all_ranks_under_mpirun(node, run):
    (node.root / "init").mkdir()
    sets = "module() { export UCX_TLS=rc FABRIC_OF_THIS_SITE=ib CUDA_HOME=/cuda; }"
    (node.root / "init" / "bash").write_text(sets)
    given = {
        "MODULESHOME": str(node.root),
        "UCX_NET_DEVICES": "mlx5_0",
        "CUDA_VISIBLE_DEVICES": "1",
        "MINE": "1",
    }
    node.run(job("horovod", 2, site(launcher="mpirun", modules=("mpi",)), run), **given)
    words = node.called("mpirun")
    taken = {words[index + 1] for index, word in enumerate(words) if word == "-x"}
    assert {"UCX_TLS", "FABRIC_OF_THIS_SITE", "CUDA_HOME", "UCX_NET_DEVICES"} <= taken
    assert not {"CUDA_VISIBLE_DEVICES", "MINE"} & taken  # set by each node, and unrelated to the run


@pytest.mark.parametrize(
    ("keys", "shared"),
    [({}, "no"), ({"exclusive": False}, "yes"), ({"exclusive": False, "cpus_per_node": 2}, "no")],
)
def test_the_workers_are_told_whether_other_jobs_may_share_their_nodes(node, run, keys, shared):
    node.run(job("horovod", 2, site(**keys), run))
    assert node.environment()["SCALESTUDY_NODES_SHARED"] == shared
