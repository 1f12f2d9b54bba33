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
from sites import SUBMISSION, job, job_script, site

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
    wrapper: bool = False
    """Whether the job has its wrapper, which takes a while to start (`test_wrapper.py` starts it alone)."""

    def __post_init__(self) -> None:
        (self.root / "bin").mkdir()
        (self.root / "told").mkdir()
        self.program("python", "")
        self.program("srun", SKIP_OPTIONS)
        self.program("mpirun", SKIP_TO_PYTHON)
        self.program("apptainer", SKIP_TO_PYTHON)
        self.program(
            "scontrol", 'echo "JobId=7 JobName=x JobState=RUNNING Reason=None"'
        )

    def program(self, name: str, body: str) -> None:
        file = self.root / "bin" / name
        told = self.root / "told" / name
        wrapper = (
            f'exec {sys.executable} "$@"' if self.wrapper else 'shift 7; exec "$@"'
        )
        wrapped = f'if [ "$3" = scalestudy.launch.queue.wrapper ]; then {wrapper}; fi'
        file.write_text(
            f"#!/bin/bash\n{wrapped}\nprintf '%s\\0' \"$@\" >>{told}\nenv -0 >{told}.env\n{body}\n"
        )
        file.chmod(0o755)

    def called(self, name: str) -> list[str] | None:
        file = self.root / "told" / name
        return (
            os.fsdecode(file.read_bytes()).split("\0")[:-1] if file.exists() else None
        )

    def environment(self, name: str = "python") -> dict[str, str]:
        lines = os.fsdecode((self.root / "told" / f"{name}.env").read_bytes()).split(
            "\0"
        )[:-1]
        return dict(line.partition("=")[::2] for line in lines)

    def run(self, made: JobScript, **environment: str) -> int:
        """Run the script as Slurm does, in the run's folder; return its exit code."""
        for file in (self.root / "told").iterdir():
            file.unlink()
        made.run.mkdir(parents=True, exist_ok=True)
        write_point(made.run / "point.json", made.point)
        now = time.time()
        record = JobRecord(
            job="", submission=SUBMISSION, submitted=now, site="here", script="x.sh"
        )
        RunFolder(made.run).write_job(record)
        script = self.root / "job.sh"
        script.write_text(
            job_script(
                replace(made, python=str(self.root / "bin" / "python"), source=SOURCE)
            )
        )
        given = {
            "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}",
            "SLURM_JOB_ID": "7",
            "LC_ALL": "C.UTF-8",
        }
        return subprocess.run(
            ["bash", script], env=given | environment, check=False, timeout=600
        ).returncode


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def log(run: Path) -> str:
    return (run / "logs" / "job.log").read_text()


@settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
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
def test_the_worker_receives_the_very_folder_of_its_run(
    node, name, launcher, strategy, container, word
):
    run = node.root / "runs" / name
    image = Container(
        image=f"/images/{word}".replace("$", "$$"),
        python=str(node.root / "bin" / "python"),
    )
    on = site(
        launcher=launcher,
        container=image if container else None,
        wrapper=("env", f"WORD={word}"),
    )
    assert node.run(job(strategy, 2 if strategy == "horovod" else 1, on, run)) == 0
    assert node.called("python") == ["-m", "scalestudy.worker", str(run)]
    assert node.environment()["WORD"] == word
    assert (node.called("apptainer") is None) == (not container)
    if container:
        assert f"/images/{word}" in node.called("apptainer")
    if strategy == "horovod":
        assert node.called(launcher) is not None


@pytest.fixture
def run(node: Node) -> Path:
    return node.root / "study" / "run-1"


STOPS = """
kill -USR1 $PPID
while [ ! -e stop ]; do sleep 0.02; done
touch checkpoint.npz
echo '{"epoch": 1, "step": 2}' >stopped.json
exit 0"""
"""A worker that is asked to stop near its job's time limit, and stops."""


@pytest.fixture
def wrapped(node: Node) -> Node:
    node.wrapper = True
    return node


@pytest.mark.parametrize("strategy", ["single", "horovod"])
def test_the_workers_exit_code_is_the_jobs_and_its_log_goes_on(wrapped, run, strategy):
    wrapped.program("python", "echo out of luck >&2; exit 3")
    made = job(strategy, 1, site(), run)
    assert [wrapped.run(made), wrapped.run(made)] == [3, 3]
    assert (run / "exit").read_text() == "3\n"
    assert (
        log(run).count("out of luck") == log(run).count("ended with exit code 3") == 2
    )


def test_before_its_time_limit_a_job_is_stopped_and_queued_again(wrapped, run):
    wrapped.program("python", STOPS)
    assert wrapped.run(job("single", 1, site(), run)) == 0
    assert wrapped.called("scontrol")[-2:] == ["requeue", "7"]
    assert not (run / "exit").exists() and not (run / "stop").exists()
    assert "stopped at a checkpoint" in log(run)


MODULES = 'module() { echo "module $*"; [ "$*" != "load missing" ] && export LOADED="${LOADED:-} $*"; }'


def test_modules_are_loaded_and_a_missing_one_ends_the_job_before_the_workers(
    node, run
):
    (node.root / "init").mkdir()
    (node.root / "init" / "bash").write_text(
        MODULES
    )  # a shell that does not know them yet
    node.run(
        job("single", 1, site(modules=("gcc/12", "a b")), run),
        MODULESHOME=str(node.root),
    )
    assert node.environment()["LOADED"] == " purge load gcc/12 load a b"
    made = job("single", 1, site(modules=("gcc/12", "missing")), run)
    assert node.run(made, MODULESHOME=str(node.root)) == 1
    assert node.called("python") is None
    assert "module load failed missing" in log(run)


def test_variables_are_the_nodes_and_proxies_are_kept_from_grpc(node, run):
    on = site(
        env={
            "WHERE": "$SCRATCH/a b",
            "PLAIN": "`id` $(id) $$",
            "http_proxy": "http://p:1",
        }
    )
    given = {"SCRATCH": "/scratch/of me", "HTTPS_PROXY": "http://q:1"}
    node.run(job("horovod", 2, on, run), **given)
    found = node.environment()
    assert (found["WHERE"], found["PLAIN"]) == ("/scratch/of me/a b", "`id` $(id) $")
    assert (found["http_proxy"], found["HTTPS_PROXY"]) == ("http://p:1", "http://q:1")
    node.run(job("multiworker", 2, on, run), **given)
    assert not {"http_proxy", "HTTPS_PROXY"} & set(node.environment())


@pytest.mark.parametrize(("strategy", "workers"), [("single", 1), ("horovod", 2)])
def test_temporary_files_go_to_the_scratch_folder_of_every_node(
    node, run, strategy, workers
):
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
    assert (
        node.environment()["SCALESTUDY_SUBMISSION"] == SUBMISSION
        and "SCALESTUDY_SUBMISSION" in taken
    )


def test_a_run_folder_that_is_not_there_is_not_made(node, run):
    made = job("single", 1, site(), run)
    script = node.root / "job.sh"
    script.write_text(job_script(made))
    assert (
        subprocess.run(["bash", script], check=False, capture_output=True).returncode
        == 1
    )
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
    assert (
        not {"CUDA_VISIBLE_DEVICES", "MINE"} & taken
    )  # set by each node, and unrelated to the run
