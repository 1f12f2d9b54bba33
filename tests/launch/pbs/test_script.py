"""Job scripts for PBS Professional: what they ask for, how they start workers, what a linter finds."""

import shutil
import subprocess
from pathlib import Path

import pytest
from sites import MARK, job, site

from scalestudy.errors import UserError
from scalestudy.launch.pbs import DIALECT
from scalestudy.launch.queue.script import Job, render

RUNS = (Path("/studies/s/points/p/run-1"), Path('/studies/s/points/it\'s "$HOME" `x`\n\\/run-1'))


def script(made: Job) -> str:
    return render(made, DIALECT)


def directives(text: str) -> list[str]:
    return [line.removeprefix("#PBS ") for line in text.splitlines() if line.startswith("#PBS ")]


def started(text: str) -> str:
    return " ".join(text.partition("launch=(")[2].partition("\n)")[0].split())


def test_a_job_asks_for_what_its_layout_says():
    on = site(
        partition="prod", account="me", gpus_per_node=4, cpus_per_node=32, memory_per_node="180G",
        time_limit="1-02:00:00", constraint="system=polaris", directives=("-l filesystems=home:eagle",),
    )  # fmt: skip
    assert directives(script(job("horovod", 6, on))) == [
        "-N s-p", "-S /bin/bash", "-j oe", "-o /dev/null",
        "-l select=2:ncpus=24:mpiprocs=3:ngpus=3:mem=180gb:system=polaris", "-l place=scatter:excl", "-r y",
        "-l walltime=26:00:00", f"-v SCALESTUDY_MARK={MARK}", "-q prod", "-A me",
        "-l filesystems=home:eagle",
    ]  # fmt: skip


def test_runs_that_are_alike_are_an_array():
    text = script(job("horovod", 2, site(), *RUNS, throttle=1))
    assert "-J 0-1%1" in directives(text)
    assert "${PBS_ARRAY_INDEX:-0}" in text
    assert "-J 0-1" in directives(script(job("horovod", 2, site(), *RUNS)))


@pytest.mark.parametrize(
    ("memory", "asked"), [("180G", "180gb"), ("500M", "500mb"), ("4096", "4096mb"), ("2TB", "2tb")]
)
def test_memory_is_asked_for_in_the_form_of_pbs(memory, asked):
    assert f":mem={asked}" in script(job("single", 1, site(memory_per_node=memory)))


def test_a_sites_own_request_for_gpus_stands_in_the_chunk():
    on = site(gpus_per_node=4, gpu_request="ngpus={gpus}:gputype=V100")
    assert "-l select=1:ncpus=4:mpiprocs=2:ngpus=2:gputype=V100" in directives(script(job("horovod", 2, on)))


def test_a_quality_of_service_which_pbs_has_not_is_refused():
    with pytest.raises(UserError, match="qos"):
        script(job("single", 1, site(qos="high")))


def test_mpiexec_is_told_the_ranks_of_a_node_and_their_cores():
    text = script(job("multiworker", 8, site(cpus_per_node=4)))
    assert started(text) == "mpiexec -n 8 --ppn 4 --depth=1 --cpu-bind depth"
    assert "srun" not in text and "SLURM" not in text


def test_mpirun_takes_the_nodes_of_the_job_and_the_variables_that_name_them():
    text = script(job("horovod", 6, site(cpus_per_node=4, launcher="mpirun", env={"MY_OWN": "1"})))
    assert started(text) == (
        'mpirun -n 6 --map-by ppr:3:node --rank-by slot --bind-to none --hostfile "$PBS_NODEFILE"'
    )
    assert "|SCALESTUDY_|PBS_|MY_OWN)" in text


def test_horovodrun_is_told_the_nodes_with_their_slots(tmp_path):
    text = script(job("horovod", 6, site(cpus_per_node=4, launcher="horovodrun")))
    assert started(text) == 'horovodrun -np 6 -H "$hosts"'
    line = "\n".join(line for line in text.splitlines() if line.startswith(("slots=", "hosts=")))
    done = subprocess.run(
        ["bash", "-c", f'SCALESTUDY_NODES=n1,n2\n{line}\necho "$hosts"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "n1:3,n2:3\n"


def test_what_is_one_process_needs_no_launcher():
    assert '\n"${worker[@]}" &\n' in script(job("single", 1, site()))


def test_all_ranks_are_told_the_nodes_of_the_job_each_once_in_order(tmp_path):
    file = tmp_path / "nodes"
    file.write_text("n2\nn2\nn1\nn1\n")
    lines = "\n".join(DIALECT.prepare)
    done = subprocess.run(
        ["bash", "-c", f'PBS_NODEFILE={file}\n{lines}\necho "$SCALESTUDY_NODES"'],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "n2,n1\n"


def test_scratch_is_made_on_all_nodes():
    text = script(job("multiworker", 8, site(cpus_per_node=4, scratch="/local/me")))
    assert "if pbsdsh -- /usr/bin/env mkdir -p /local/me; then" in text
    assert "pbsdsh" not in script(job("single", 1, site(scratch="/local/me")))


def test_a_job_reminds_itself_of_its_time_limit_since_pbs_does_not():
    text = script(job("single", 1, site(time_limit="01:00:00", signal_lead=120)))
    assert "(sleep 3480 && kill -USR1 $$) &" in text
    assert "scontrol" not in text


@pytest.mark.parametrize("launcher", ["srun", "mpiexec", "mpirun", "horovodrun", "$MPIEXEC $FLAGS"])
@pytest.mark.parametrize(("strategy", "workers"), [("single", 1), ("multiworker", 8), ("horovod", 8)])
def test_a_linter_finds_nothing(tmp_path, strategy, workers, launcher):
    on = site(
        cpus_per_node=4, gpus_per_node=4, modules=("cuda",), scratch="$SCRATCH/x", launcher=launcher,
        proxies={"http_proxy": "http://p:1"},
    )  # fmt: skip
    file = tmp_path / "job.sh"
    file.write_text(script(job(strategy, workers, on, *RUNS, throttle=2)))
    assert subprocess.run(["bash", "-n", file], check=False).returncode == 0
    shellcheck = shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("no shellcheck")
    done = subprocess.run([shellcheck, "-s", "bash", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


WORKER = """#!/bin/bash
run=${!#}
case "$(cat "$run/plan")" in
  good) echo done > "$run/result.json" ;;
  stops) until [ -e "$run/stop" ]; do sleep 0.05; done; touch "$run/checkpoint.npz" ;;
  fails) exit 3 ;;
esac
"""


@pytest.mark.parametrize(("plan", "code"), [("good", 0), ("fails", 3), ("stops", 75)])
def test_the_script_leaves_the_exit_code_of_its_workers(tmp_path, monkeypatch, plan, code):
    """Read by bash from standard input, as PBS may; the reminder is set to come at once."""
    run = tmp_path / "points" / "p" / "run-1"
    run.mkdir(parents=True)
    (run / "plan").write_text(plan)
    (run / "job.json").write_text(MARK.submission)
    (run / "point.json").touch()
    worker, nodes = tmp_path / "worker", tmp_path / "nodes"
    worker.write_text(WORKER)
    worker.chmod(0o755)
    nodes.write_text("n1\n")
    text = script(job("single", 1, site(wrapper=(str(worker),)), run)).replace("sleep 3480", "sleep 0.2")
    monkeypatch.setenv("PBS_NODEFILE", str(nodes))
    monkeypatch.setenv("PBS_JOBID", "7.server")
    done = subprocess.run(["bash"], input=text, text=True, check=False, timeout=600)
    assert done.returncode == code, (run / "logs" / "job.log").read_text()
    assert (run / "exit").read_text() == f"{code}\n"
    assert "job 7.server on" in (run / "logs" / "job.log").read_text()


@pytest.mark.parametrize(
    "text",
    ["-J 0-9", "-J0-9", "-N x", "-l select=2", "-l a=b,walltime=1", "-W depend=afterok:1", "-v A=1", "-q x",
     "-VJ 0-9", "-l a -J 0-9", "--array=1", "-P 'a b'", "-C x", "x -J 1"],
)  # fmt: skip
def test_directives_that_would_change_a_job_are_refused(text):
    with pytest.raises(UserError, match="directives"):
        script(job("single", 1, site(directives=(text,) if text.startswith("-") else ("-m abe " + text,))))


@pytest.mark.parametrize("text", ["-P ab12", "-l filesystems=home:eagle", "-V", "-m abe", "-W umask=022"])
def test_all_others_stand_as_they_are(text):
    assert directives(script(job("single", 1, site(directives=(text,)))))[-1] == text


@pytest.mark.parametrize("key", ["partition", "account", "constraint"])
@pytest.mark.parametrize("value", ["a -J 0-9", 'a" b', "a\\", "a#b"])
def test_a_name_that_qsub_would_split_is_refused(key, value):
    with pytest.raises(UserError, match=key):
        script(job("single", 1, site(**{key: value})))


def test_a_job_that_shares_its_nodes_says_so_and_asks_for_its_share_of_the_memory():
    on = site(cpus_per_node=8, memory_per_node="16G", exclusive=False)
    text = script(job("horovod", 2, on))
    assert "-l select=1:ncpus=2:mpiprocs=2:mem=4096mb" in directives(text)
    assert "-l place=scatter" in directives(text)
    assert "export SCALESTUDY_NODES_SHARED=yes" in text
    assert "export SCALESTUDY_NODES_SHARED=no" in script(job("horovod", 8, on))
    assert "export SCALESTUDY_NODES_SHARED=no" in script(job("horovod", 2, site(cpus_per_node=8)))


def test_a_job_without_a_time_limit_asks_for_none_and_reminds_itself_of_none():
    text = script(job("single", 1, site(time_limit="infinite")))
    assert "walltime" not in text and "timer=" not in text
