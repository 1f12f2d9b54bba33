"""Whatever a site profile holds, a job script has the directives that were meant, and no others."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from sites import MARK, job, site

from scalestudy.errors import UserError
from scalestudy.launch.pbs import DIALECT as PBS
from scalestudy.launch.queue.script import job_name, render
from scalestudy.launch.queue.site import Container
from scalestudy.launch.slurm import COMPUTED, KEYS, job_script, own_options

sys.path.insert(0, str(Path(__file__).parent))

from directives import options

COMPUTED_HERE = [
    "--job-name=s-p", "--output=/dev/null", "--nodes=1", "--ntasks=2", "--ntasks-per-node=2",
    "--cpus-per-task=2", "--time=01:00:00", "--requeue", "--open-mode=append", "--signal=B:USR1@120",
    "--exclusive", "--gres=gpu:2",
]  # fmt: skip
NASTY = st.text(st.sampled_from("ab1 -='\"\\#$`;&|\t\n\r\x0b\x85\u2028(){}[]%é\0"), max_size=25)
TEXTS = NASTY | st.text(max_size=20)


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(st.sampled_from(["partition", "account", "qos", "constraint", "comment"]), TEXTS), TEXTS
)
@example({"partition": "a --array=0-9"}, 'b" --ntasks=9')
@example({"account": "a\n#SBATCH --array=0-9"}, "b")
@example({"qos": 'a" --array=0-9 "'}, "b\\")
def test_the_directives_are_those_meant_and_no_others(named, reservation):
    try:
        on = site(gpus_per_node=4, directives=(f"--reservation={reservation}",), **named)
    except ValidationError:
        assert any(not (text.isprintable() and text.strip()) for text in (*named.values(), reservation))
        return
    script = job_script(job("horovod", 2, on))
    comment = " ".join(filter(None, (named.get("comment"), str(MARK))))
    keys = ("partition", "account", "qos", "constraint")
    assert options(script) == [
        *COMPUTED_HERE,
        *(f"--{key}={named[key]}" for key in keys if key in named),
        f"--comment={comment}",
        f"--reservation={reservation.rstrip()}",
    ]
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@settings(deadline=None, max_examples=200)
@given(
    TEXTS
    | st.tuples(st.sampled_from(("--", "-")), st.text("abcdegimnoprstuxyJNtGaH -=0,"), TEXTS).map("".join)
)
@example("--exclude=a --array=0-9")
@example("--hint nomultithread --array=1")
@example("-Ha0-9")
@example("--arr=0-9")
@example("-J x")
@example("--nic\u0000e")
def test_a_directive_is_one_option_that_none_of_ours_is_changed_by_or_it_is_refused(text):
    try:
        on = site(gpus_per_node=4, directives=(text,))
        script = job_script(job("horovod", 2, on))
    except (ValidationError, UserError):
        return
    found = options(script)
    assert found[:-1] == [*COMPUTED_HERE, f"--comment={MARK}"]
    name = found[-1].partition("=")[0].removeprefix("--")
    assume(name)
    assert not any(ours.startswith(name) for ours in (*KEYS, *COMPUTED, "gres"))


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("--array=0-9", "Remove it"),
        ("--arr=0-9", "Remove it"),
        ("-a 0-9", "Remove it"),
        ("-a0-9", "Remove it"),
        ("--ntasks 4", "Remove it"),
        ("-J mine", "Remove it"),
        ("--partition=gpu", "`partition`"),
        ("-p gpu", "`partition`"),
        ("--mem=1G", "`memory_per_node`"),
        ("--gpus=4", "`gpu_request`"),
        ("--gres=gpu:4", "`gpu_request`"),
        ("--exclusive", "`exclusive`"),
        ("-s", "`exclusive`"),
        ("--comment=x", "`comment`"),
        ("-Ha0-9", "a text of its own"),
        ("--hint nomultithread --array=1", "a text of its own"),
        ("--exclude n1 --array=1", "a text of its own"),
        ("-z", "a text of its own"),
        ("---", "a text of its own"),
    ],
)
def test_what_would_change_a_jobs_layout_is_refused_with_what_to_do(text, action):
    with pytest.raises(UserError, match=action):
        own_options(site(gpus_per_node=4, directives=(text,)))


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("--hint=nomultithread", "--hint=nomultithread"),
        ("--hint nomultithread", "--hint=nomultithread"),
        ("-w n1,n2", "--nodelist=n1,n2"),
        ("-xn1", "--exclude=n1"),
        ("--nice=-5", "--nice=-5"),
        ("--spread-job", "--spread-job"),
        ("-H", "--hold"),
        ("--mem-bind=local", "--mem-bind=local"),
        ("--gpu-bind=closest", "--gpu-bind=closest"),
        ("--mail-user=a@b", "--mail-user=a@b"),
        ("--nodelist=n1", "--nodelist=n1"),
    ],
)
def test_all_others_stand_as_they_are_by_their_long_names(text, option):
    assert own_options(site(gpus_per_node=4, directives=(text,))) == [option]


def test_other_resources_are_asked_for_where_no_gpus_are():
    assert own_options(site(directives=("--gres=lscratch:10",))) == ["--gres=lscratch:10"]


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
def test_gpus_are_counted_by_the_node_by_the_task_or_in_total_as_they_are_asked_for(given, asked):
    on = site(gpus_per_node=8, cpus_per_node=32, gpu_request=given)
    assert asked in options(job_script(job("horovod", 11, on)))


def test_where_the_partition_brings_its_gpus_none_are_asked_for():
    script = job_script(job("horovod", 4, site(gpus_per_node=4, gpu_request="")))
    assert not [option for option in options(script) if "gpu" in option or "gres" in option]
    assert "NCCL_DEBUG" in script


def test_gpus_by_the_task_are_refused_under_mpirun_whose_daemons_would_get_one_each():
    on = site(gpus_per_node=4, gpu_request="--gpus-per-task={gpus}", launcher="mpirun")
    with pytest.raises(UserError, match="asked for by the node where mpirun"):
        job_script(job("horovod", 4, on))
    assert "mpirun -n 2" in job_script(job("horovod", 2, on.model_copy(update={"tasks_per_node": 1})))


def test_every_strategy_starts_in_the_container_that_srun_enters():
    on = site(gpus_per_node=2, container=Container(image="/i.sqsh", runtime="pyxis"))
    for strategy, workers in (("single", 1), ("mirrored", 2), ("horovod", 2)):
        script = job_script(job(strategy, workers, on))
        assert "  --container-image=/i.sqsh\n" in script
        assert '"${launch[@]}" "${worker[@]}" &' in script
        assert "srun --nodes=1" in script
    with pytest.raises(UserError, match='launcher = "srun"'):
        job_script(job("horovod", 2, on.model_copy(update={"launcher": "mpirun"})))
    with pytest.raises(UserError, match="which is Slurm's"):
        render(job("single", 1, on), PBS)


def test_a_process_with_several_devices_asks_for_all_of_them():
    on = site(gpus_per_node=8, gpu_request="--gpus-per-task={gpus}")
    assert "--gpus-per-task=4" in options(job_script(job("mirrored", 4, on)))


def test_a_job_without_a_time_limit_is_not_warned_of_one():
    found = options(job_script(job("single", 1, site(time_limit="infinite"))))
    assert "--time=UNLIMITED" in found
    assert not any(option.startswith("--signal") for option in found)


@pytest.mark.parametrize(
    ("keys", "asked"),
    [
        ({}, "--mem=180G"),
        ({"exclusive": False}, "--mem=90G"),
        ({"exclusive": False, "memory_scaling": "none"}, "--mem=180G"),
        ({"exclusive": False, "gpus_per_node": 2}, "--mem=180G"),
        ({"exclusive": False, "gpus_per_node": 8}, "--mem=90G"),
    ],
)
def test_a_job_that_shares_its_nodes_asks_for_its_share_of_their_memory(keys, asked):
    on = site(memory_per_node="180G", cpus_per_node=4, **keys)
    asked = asked.replace("90G", f"{90 * 1024}M")
    assert asked in options(job_script(job("horovod", 2, on)))
    assert ("--exclusive" in options(job_script(job("horovod", 2, on)))) == ("exclusive" not in keys)


@settings(deadline=None, max_examples=60)
@given(*[TEXTS] * 7)
@example("a\nid", "b\n#SBATCH --array=1", "$(id)", "`id`", "'\n", '"\n', "n\n#SBATCH -a 1")
def test_no_other_text_of_a_profile_or_a_study_adds_a_directive_or_breaks_the_script(
    module, value, proxy, scratch, word, image, name
):
    try:
        container = Container(image=image, binds=(value or "/b",), overlay=(proxy or "/o",), cache=scratch)
        on = site(
            gpus_per_node=4, modules=(module,), env={"X": value}, proxies={"http_proxy": proxy},
            scratch=scratch, wrapper=(word,), container=container,
        )  # fmt: skip
    except ValidationError:
        return
    made = replace(job("horovod", 2, on, Path(f"/runs/{word}")), name=name)
    script = job_script(made)
    found = options(script)
    assert found[0] == f"--job-name={job_name(name)}"
    assert found[1:] == [*COMPUTED_HERE[1:], f"--comment={MARK}"]
    done = subprocess.run(["bash", "-n"], input=script.encode(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
