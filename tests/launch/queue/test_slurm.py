"""For any site profile, a job script has exactly the intended directives."""

import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from directives import options
from scalestudy.launch import scheduler
from scalestudy.launch.job_view import JobView
from scalestudy.launch.queue.job_script import job_name
from scalestudy.launch.queue.launchers import SLURM
from scalestudy.launch.queue.site_profile import Container
from scalestudy.launch.queue.slurm_output import (
    parse_sacct,
    parse_sinfo,
    parse_squeue,
    partition_seconds,
)
from scalestudy.launch.scheduler import QueueAbsent, QueueRefused, QueueUnreachable
from scalestudy.util.errors import UserError
from sites import MARK, job, job_script, site


def test_what_a_command_prints_is_returned_and_it_reads_no_input(programs) -> None:
    programs(squeue='cat; echo "$1|$LC_ALL|$SQUEUE_FORMAT"')
    assert SLURM.queue.call("squeue", "-h") == "-h|C|\n"


def has_ended(stat: Path) -> bool:
    """Wait until the process has ended, which may take a while on a busy machine."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            if stat.read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def test_a_command_that_takes_too_long_is_ended_with_all_it_has_started(
    programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "TIMEOUT", 0.5)
    programs(squeue=f"sleep 1000 & echo $! > {tmp_path}/child; wait")
    began = time.monotonic()
    with pytest.raises(QueueUnreachable) as caught:
        SLURM.queue.call("squeue")
    assert time.monotonic() - began < 300
    assert caught.value.received == "none within 0.5 s"
    assert caught.value.exit_code == 1
    child = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    assert has_ended(child)


def test_a_refusal_comes_in_slurms_own_words(programs) -> None:
    programs(
        squeue='echo "squeue: Warning: this and that" >&2; echo "squeue: error: Invalid account." >&2;'
        'echo "squeue: error: Batch job submission failed" >&2; exit 1'
    )
    with pytest.raises(QueueRefused) as caught:
        SLURM.queue.call("squeue")
    assert caught.value.words == "Invalid account; Batch job submission failed"
    assert caught.value.exit_code == 2
    programs(squeue="exit 7")
    with pytest.raises(QueueRefused, match="exit code 7"):
        SLURM.queue.call("squeue")


@pytest.mark.parametrize(
    "words",
    [
        "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
        "squeue: error: Socket timed out on send/recv operation",
        "sacct: error: failed to open persistent connection to host:db: Connection refused",
    ],
)
def test_an_unreachable_controller_is_silent_and_refuses_nothing(
    programs, words: str
) -> None:
    programs(squeue=f'echo "{words}" >&2; exit 1')
    with pytest.raises(QueueUnreachable, match="answer of Slurm"):
        SLURM.queue.call("squeue")


def test_a_machine_without_slurm_is_told_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(QueueAbsent, match="module load slurm"):
        SLURM.queue.call("squeue")


def test_a_users_own_formats_do_not_reach_the_parsers() -> None:
    kept = {"SLURM_CONF": "a", "SBATCH_ACCOUNT": "b", "LC_ALL": "de"}
    formats = {
        "SQUEUE_FORMAT": "%i",
        "SACCT_FORMAT": "x",
        "SLURM_TIME_FORMAT": "relative",
    }
    assert SLURM.queue.environment(kept | formats, submitting=False) == kept


SQUEUE = """\
5|CANCELLED||2026-11-21T13:46:28|DependencyNeverSatisfied
1|FAILED|node1|2026-11-21T13:46:27|NonZeroExitCode
8|PENDING||N/A|ReqNodeNotAvail, UnavailableNodes:node[1-2]
3|RUNNING|node[1-2,4]|2026-11-21T13:46:33|None
"""
SACCT = """\
1|FAILED|3:0|node1|2026-11-21T13:46:27
4|PENDING|0:0|None assigned|Unknown
6|CANCELLED by 1000|0:0|None assigned|None
3|CANCELLED by 0|0:15|node1|2026-11-21T13:46:27
7|OUT_OF_ME+|0:125|node2|2026-11-21T13:46:27
"""


def test_squeue_tells_waiting_running_and_ended_jobs_apart() -> None:
    views = parse_squeue(SQUEUE)
    assert list(views) == ["5", "1", "8", "3"]
    assert views["3"] == JobView(
        job="3", state="RUNNING", nodes="node[1-2,4]", start="2026-11-21T13:46:33"
    )
    assert views["3"].live and not views["3"].waiting
    assert (
        views["8"].waiting
        and views["8"].reason == "ReqNodeNotAvail, UnavailableNodes:node[1-2]"
    )
    assert views["1"].ended and not views["1"].live


def test_sacct_tells_codes_and_signals() -> None:
    views = parse_sacct(SACCT)
    assert set(views) == {"1", "3", "4", "6", "7"}
    assert (views["1"].exit_code, views["1"].signal) == (3, None)
    assert (views["6"].state, views["6"].nodes) == ("CANCELLED", "")
    assert (views["3"].exit_code, views["3"].signal) == (0, 15)
    assert parse_sacct("1|NODE_FAIL|0:0|a|x\n1|COMPLETED|0:0|b|y")["1"].nodes == "b", (
        "the last line counts"
    )
    noise = "squeue: warning\n\n|||\nslurm|x|y|z|w\n12\n"
    assert parse_squeue(noise) == parse_sacct(noise) == {}


def test_a_job_that_squeue_hides_and_accounting_shows_alive_is_alive(programs) -> None:
    programs(
        squeue="",
        sacct='echo "7|PENDING|0:0|None assigned|Unknown"; echo "8|RUNNING|0:0|n1|x"',
    )
    views = SLURM.queue.ask(["7", "8", "9"])
    assert [views[job].state for job in "789"] == ["PENDING", "RUNNING", "UNKNOWN"]


def test_accounting_that_lags_behind_the_controller_does_not_bring_a_job_back(
    programs,
) -> None:
    programs(
        squeue='echo "7|FAILED|n1|x|NonZeroExitCode"',
        sacct='echo "7|RUNNING|0:0|n1|x"',
    )
    view = SLURM.queue.ask(["7"])["7"]
    assert (view.state, view.reason) == ("FAILED", "NonZeroExitCode")


def test_jobs_of_another_cluster_are_not_taken_for_forgotten(programs) -> None:
    programs(
        squeue="",
        sacct="",
        scontrol='echo "Configuration data"; echo "ClusterName             = one"',
    )
    assert SLURM.queue.ask(["7"], cluster="one")["7"].state == "UNKNOWN"
    with pytest.raises(QueueUnreachable):
        SLURM.queue.ask(["7"], cluster="other")


def test_neither_the_allocation_one_is_in_nor_options_of_sbatch_reach_a_new_job(
    programs, monkeypatch, tmp_path
) -> None:
    programs(sbatch=f"env >{tmp_path}/env; echo 7")
    ranks = {
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "OMPI_COMM_WORLD_RANK",
        "PMI_RANK",
        "PMIX_RANK",
    }
    kept = {"SLURM_CONF", "SLURMX", "LOCAL_SCRATCH"}
    for name in (*ranks, *kept, "SLURM_JOB_ID", "SLURM_CPU_BIND", "SBATCH_ACCOUNT"):
        monkeypatch.setenv(name, "x")
    assert SLURM.queue.submit(tmp_path / "job.sh") == "7"
    names = {
        line.partition("=")[0] for line in (tmp_path / "env").read_text().splitlines()
    }
    assert names & {"SLURM_JOB_ID", "SLURM_CPU_BIND", "SBATCH_ACCOUNT", *ranks} == set()
    assert {*kept, "PATH"} <= names


def test_nodes_that_differ_are_listed_one_by_one(programs) -> None:
    exact = "mixed*|up|1:00:00|1|2|4000|(null)\nmixed*|up|1:00:00|1|4|8000|(null)"
    joined = "mixed*|up|1:00:00|2|2+|4000+|(null)"
    programs(sinfo=f'case "$*" in *-e*) echo "{exact}" ;; *) echo "{joined}" ;; esac')
    assert [nodes.cpus for nodes in SLURM.queue.partitions()] == [2, 4]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "AssocMaxSubmitJobLimit; Job violates accounting/QOS policy (job submit limit, …)",
            "--at-most",
        ),
        (
            "QOSMaxWallDurationPerJobLimit; Job violates accounting/QOS policy (job submit limit, …)",
            "time_limit",
        ),
        ("invalid partition specified: nonsense", "sinfo -s"),
        (
            "Invalid account or account/partition combination specified",
            "key is account",
        ),
        ("Requested time limit is invalid (missing)", "time_limit"),
        ("Requested node configuration is not available", "gpus_per_node"),
        ("No more of this", "Correct what it names"),
    ],
)
def test_a_refusal_says_what_to_correct_and_where_to_look(
    programs, tmp_path, words, told
) -> None:
    programs(sbatch=f'echo "sbatch: error: {words}" >&2; exit 1')
    with pytest.raises(QueueRefused) as caught:
        SLURM.queue.submit(tmp_path / "job.sh")
    assert caught.value.words == words and told in caught.value.action


@pytest.mark.parametrize("printed", ["123", "Welcome!\n123;cluster", "123\n\nBye."])
def test_the_id_is_found_whatever_a_site_prints_around_it(
    programs, tmp_path, printed
) -> None:
    programs(sbatch=f"echo '{printed}'")
    assert SLURM.queue.submit(tmp_path / "job.sh") == "123"
    programs(sbatch="echo 'Submitted batch job 123'")
    with pytest.raises(QueueRefused, match="Submitted batch job"):
        SLURM.queue.submit(tmp_path / "job.sh")


COMPUTED_HERE = [
    "--job-name=s-p",
    "--output=/studies/s/jobs/p.out",
    "--nodes=1",
    "--ntasks=2",
    "--ntasks-per-node=2",
    "--cpus-per-task=2",
    "--time=01:00:00",
    "--requeue",
    "--open-mode=append",
    "--signal=B:USR1@120",
    "--exclusive",
    "--gres=gpu:2",
]
NASTY = st.text(
    st.sampled_from("ab1 -='\"\\#$`;&|\t\n\r\x0b\x85\u2028(){}[]%é\0"), max_size=25
)
TEXTS = NASTY | st.text(max_size=20)


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(
        st.sampled_from(["partition", "account", "qos", "constraint"]), TEXTS
    ),
    TEXTS,
)
@example({"partition": "a --array=0-9"}, 'b" --ntasks=9')
@example({"account": "a\n#SBATCH --array=0-9"}, "b")
@example({"qos": 'a" --array=0-9 "'}, "b\\")
def test_the_directives_are_those_meant_and_no_others(named, reservation):
    try:
        on = site(
            gpus_per_node=4, directives=(f"--reservation={reservation}",), **named
        )
    except ValidationError:
        assert any(
            not (text.isprintable() and text.strip())
            for text in (*named.values(), reservation)
        )
        return
    script = job_script(job("horovod", 2, on))
    keys = ("partition", "account", "qos", "constraint")
    assert options(script) == [
        *COMPUTED_HERE,
        *(f"--{key}={named[key]}" for key in keys if key in named),
        f"--comment={MARK}",
        f"--reservation={reservation}",
    ]
    done = subprocess.run(
        ["bash", "-n"], input=script, text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "text",
    [
        "--array=0-9",
        "--ntasks=4",
        "--mem=1G",
        "--gres=gpu:4",
        "--comment=x",
        "-Ha0-9",
        "---",
        "-w n1",
        "--hint nomultithread --array=1",
        "--exclude n1 --array=1",
    ],
)
def test_what_would_change_a_jobs_layout_is_refused(text):
    with pytest.raises(UserError):
        job_script(job("single", 1, site(gpus_per_node=4, directives=(text,))))


@pytest.mark.parametrize(
    "option",
    [
        "--hint=nomultithread",
        "--nice=-5",
        "--spread-job",
        "--mem-bind=local",
        "--gpu-bind=closest",
        "--mail-user=a@b",
        "--nodelist=n1",
        "--exclusive",
    ],
)
def test_all_others_stand_as_they_are_and_once(option):
    found = options(
        job_script(job("single", 1, site(gpus_per_node=4, directives=(option,))))
    )
    assert found.count(option) == 1


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("--gres=gpu:v100:{gpus}", "--gres=gpu:v100:6"),
        ("--gres=gpu:{gpus},craynetwork:1", "--gres=gpu:6,craynetwork:1"),
        ("--gpus-per-node=a100:{gpus}", "--gpus-per-node=a100:6"),
        ("--gpus-per-task={gpus}", "--gpus-per-task=1"),
        ("--gpus={gpus}", "--gpus=11"),
        ("--gres=gpu:a100:8", "--gres=gpu:a100:8"),
        ("--gpus-per-node=8", "--gpus-per-node=8"),
    ],
)
def test_gpus_are_counted_by_the_node_by_the_task_or_in_total_as_they_are_asked_for(
    given, asked
):
    on = site(gpus_per_node=8, cpus_per_node=32, gpu_request=given)
    assert asked in options(job_script(job("horovod", 11, on)))


def test_a_process_with_several_devices_asks_for_all_and_a_partition_that_brings_them_for_none():
    on = site(gpus_per_node=8, gpu_request="--gpus-per-task={gpus}")
    assert "--gpus-per-task=4" in options(job_script(job("mirrored", 4, on)))
    script = job_script(job("horovod", 4, site(gpus_per_node=4, gpu_request="")))
    assert not [
        option for option in options(script) if "gpu" in option or "gres" in option
    ]
    assert "NCCL_DEBUG" in script
    others = ("--gres=lscratch:10",)
    assert others[0] in options(job_script(job("single", 1, site(directives=others))))


@pytest.mark.parametrize("keys", [{"requeues": 0}, {"directives": ("--no-requeue",)}])
def test_a_site_may_forbid_that_a_job_is_put_back(keys):
    text = job_script(job("single", 1, site(**keys)))
    assert [option for option in options(text) if "requeue" in option] == [
        "--no-requeue"
    ]
    assert 'wrapper slurm 0 0 "$run"' in text


def test_the_signal_comes_as_long_before_the_limit_as_a_checkpoint_takes():
    assert "--signal=B:USR1@900" in options(
        job_script(job("single", 1, site(signal_lead=900)))
    )


@pytest.mark.parametrize(
    ("keys", "purges", "loads"),
    [
        ({}, 0, 0),
        ({"modules": ("GCC/12",)}, 1, 1),
        ({"module_purge": True}, 1, 0),
        ({"modules": ("GCC/12",), "module_purge": False}, 0, 1),
    ],
)
def test_modules_are_purged_where_some_are_loaded_or_the_site_says_so(
    keys, purges, loads
):
    text = job_script(job("single", 1, site(**keys)))
    assert (text.count("\nmodule purge\n"), text.count("\nmodule load")) == (
        purges,
        loads,
    )


def test_a_job_without_a_time_limit_is_not_warned_of_one():
    found = options(job_script(job("single", 1, site(time_limit="infinite"))))
    assert "--time=UNLIMITED" in found
    assert not any(option.startswith("--signal") for option in found)


@pytest.mark.parametrize(
    ("keys", "asked"),
    [
        ({}, "--mem=180G"),
        ({"exclusive": False}, "--mem=90G"),
        ({"exclusive": False, "gpus_per_node": 2}, "--mem=180G"),
        ({"exclusive": False, "gpus_per_node": 8}, "--mem=90G"),
        ({"exclusive": False, "memory_per_node": "0"}, "--mem=0"),
        ({"exclusive": False, "memory_per_node": "0G"}, "--mem=0"),
    ],
)
def test_a_job_that_shares_its_nodes_asks_for_its_share_of_their_memory(keys, asked):
    on = site(**({"memory_per_node": "180G", "cpus_per_node": 4} | keys))
    asked = asked.replace("90G", f"{90 * 1024}M")
    assert asked in options(job_script(job("horovod", 2, on)))
    assert ("--exclusive" in options(job_script(job("horovod", 2, on)))) == (
        "exclusive" not in keys
    )


@settings(deadline=None, max_examples=60)
@given(*[TEXTS] * 6)
@example("a\nid", "b\n#SBATCH --array=1", "`id`", "'\n", '"\n', "n\n#SBATCH -a 1")
def test_no_other_text_of_a_profile_or_a_study_adds_a_directive_or_breaks_the_script(
    module, value, scratch, word, image, name
):
    try:
        container = Container(image=image, binds=(value or "/b",))
        on = site(
            gpus_per_node=4,
            modules=(module,),
            env={"X": value},
            scratch=scratch,
            wrapper=(word,),
            container=container,
        )
    except ValidationError:
        return
    run = Path(f"/studies/{word}/points/p/run-1")
    made = replace(
        job("horovod", 2, on, run), name=name, script=run.parents[2] / "jobs" / "p.sh"
    )
    script = job_script(made)
    found = options(script)
    assert found[0] == f"--job-name={job_name(name)}"
    assert found[1] in (
        "--output=/dev/null",
        f"--output={str(run.parents[2]).replace('%', '%%')}/jobs/p.out",
    )
    assert found[2:] == [*COMPUTED_HERE[2:], f"--comment={MARK}"]
    done = subprocess.run(
        ["bash", "-n"], input=script.encode(), capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


SINFO = """\
gpu|up|1-00:00:00|16|48|192000+|gpu:v100:2(S:0-1)
cpu*|up|infinite|100|64+|250000|(null)
cpu*|up|infinite|4|128|1000000|(null)
old|down|30:00|2|8|16000|gpu:4,craynetwork:1
"""


def test_each_kind_of_node_is_read():
    gpu, cpu, _, old = parse_sinfo(SINFO)
    assert (gpu.seconds, gpu.count, gpu.cpus, gpu.memory, gpu.gpus) == (
        86400,
        16,
        48,
        192000 * 2**20,
        2,
    )
    assert (cpu.default, cpu.seconds, cpu.cpus, cpu.gpus) == (True, None, 64, 0)
    assert (old.up, old.seconds, old.gpus) == (False, 1800, 4)


@given(st.text())
def test_no_text_upsets_the_parser(text):
    parse_sinfo(text), partition_seconds(text)
