"""The job script: what it asks for, and that a linter finds nothing in any of them."""

import shutil
import subprocess
from pathlib import Path

import pytest
from sites import EXAMPLES, MARK, job, site

from scalestudy.errors import UserError
from scalestudy.launch.queue.site import Container, find_site
from scalestudy.launch.slurm import job_script

RUNS = (Path("/studies/s/points/p/run-1"), Path('/studies/s/points/it\'s "$HOME" `x`\n\\/run-1'))


def directives(script: str) -> list[str]:
    return [line.removeprefix("#SBATCH ") for line in script.splitlines() if line.startswith("#SBATCH ")]


def started(script: str) -> str:
    """The words of srun, mpirun, …, on one line."""
    return " ".join(script.partition("launch=(")[2].partition("\n)")[0].split())


def test_a_job_asks_for_what_its_layout_says():
    on = site(
        partition="gpu", account="me", qos="high", constraint="[a|b]", gpus_per_node=4, cpus_per_node=32,
        memory_per_node="180G", gpu_request="--gres=gpu:v100:{gpus}", time_limit="1-02:00:00",
        comment="x 1", exclusive=False, directives=("--reservation=two words", "-w n1"),
    )  # fmt: skip
    assert directives(job_script(job("horovod", 6, on))) == [
        "--job-name=s-p", "--output=/dev/null", "--nodes=2", "--ntasks=6", "--ntasks-per-node=3",
        "--cpus-per-task=8", "--time=1-02:00:00", "--requeue", "--open-mode=append", "--signal=B:USR1@120",
        "--gres=gpu:v100:3", "--partition=gpu", "--account=me", "--qos=high", "--constraint=[a|b]",
        "--mem=138240M", f'--comment="x 1 {MARK}"', '--reservation="two words"', "--nodelist=n1",
    ]  # fmt: skip


def test_a_short_job_is_signalled_half_way():
    assert "--signal=B:USR1@30" in directives(job_script(job("single", 1, site(time_limit="00:01:00"))))


def test_directives_come_before_all_commands():
    lines = job_script(job("horovod", 4, site(), *RUNS)).splitlines()
    first = next(index for index, line in enumerate(lines) if line and not line.startswith("#"))
    assert not any(line.startswith("#SBATCH") for line in lines[first:])
    assert lines[0].startswith("#!")


def test_runs_that_are_alike_are_an_array():
    script = job_script(job("horovod", 2, site(), *RUNS, throttle=1))
    assert "--array=0-1%1" in directives(script)
    assert "${SLURM_ARRAY_TASK_ID:-0}" in script
    assert not any(line.startswith("--array") for line in directives(job_script(job("horovod", 2, site()))))


def test_srun_is_told_cores_blocks_and_to_end_all_when_one_fails():
    assert started(job_script(job("multiworker", 8, site(cpus_per_node=4)))) == (
        "srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=1 --distribution=block:block "
        "--kill-on-bad-exit=1 --mpi=none --export=ALL"
    )


def test_srun_is_told_no_number_per_node_where_nodes_differ():
    assert started(job_script(job("multiworker", 5, site(cpus_per_node=4)))).startswith(
        "srun --nodes=2 --ntasks=5 --cpus-per-task=1"
    )


@pytest.mark.parametrize("strategy", ["single", "mirrored", "virtual"])
def test_what_is_one_process_needs_no_launcher(strategy):
    script = job_script(job(strategy, 1 if strategy == "single" else 4, site(launcher="mpirun")))
    assert started(script) == ""
    assert '\n"${worker[@]}" &\n' in script


@pytest.mark.parametrize("strategy", ["multiworker", "horovod"])
def test_a_ring_of_one_learns_its_place_from_the_launcher_as_any_other(strategy):
    assert "--ntasks=1" in started(job_script(job(strategy, 1, site())))


def test_mpirun_fills_node_after_node_and_leaves_cores_to_the_workers():
    script = job_script(job("horovod", 6, site(cpus_per_node=4, launcher="mpirun", env={"MY_OWN": "1"})))
    assert started(script) == "mpirun -n 6 --map-by ppr:3:node --rank-by slot --bind-to none"
    assert "--allow-run-as-root" in script
    assert "|MY_OWN)" in script


def test_horovodrun_starts_horovod_alone():
    on = site(cpus_per_node=4, launcher="horovodrun")
    assert started(job_script(job("horovod", 6, on))) == 'horovodrun -np 6 -H "$hosts"'
    assert started(job_script(job("multiworker", 6, on))).startswith("srun ")


def test_a_sites_own_launcher_stands_as_it_is():
    script = job_script(job("horovod", 2, site(launcher="$MPIEXEC $FLAGS_MPI_BATCH")))
    assert '\n$MPIEXEC $FLAGS_MPI_BATCH "${worker[@]}" &\n' in script


def test_only_workers_that_talk_over_grpc_lose_the_proxies():
    on = site(proxies={"http_proxy": "http://p:1"})
    ring, others = job_script(job("multiworker", 2, on)), job_script(job("horovod", 2, on))
    assert ring.index("export http_proxy=http://p:1") < ring.index("unset http_proxy https_proxy")
    assert "export http_proxy=http://p:1" in others
    assert "unset" not in others


def test_variables_for_gpus_are_set_only_where_there_are_gpus():
    with_gpus, without = (job_script(job("single", 1, site(gpus_per_node=gpus))) for gpus in (1, 0))
    for name in ("SCALESTUDY_GPUS=", "TF_GPU_THREAD_MODE=gpu_private", "NCCL_DEBUG="):
        assert name in with_gpus
        assert name not in without


def test_our_own_source_is_seen_in_a_container(tmp_path):
    script = job_script(job("single", 1, site(container=Container(image="/i")), source=Path("/own/src")))
    assert '"source=/own/src"' in script
    assert 'export PYTHONPATH=/own/src"${PYTHONPATH:+:$PYTHONPATH}"' in script
    assert "PYTHONPATH" not in job_script(job("single", 1, site(), source=Path("/own/src")))


def test_the_folders_of_every_point_of_an_array_are_seen_in_a_container():
    on = site(container=Container(image="/i"))
    runs = (Path("/a/s/points/p/run-1"), Path("/a/s/points/q/run-2"))
    made = job("single", 1, on, *runs)
    point = made.point.with_files("/cache/d-1/images", "/cache/d-1/splits/s.json")
    script = job_script(type(made)(**{**vars(made), "point": point}))
    assert [line.count("source=") for line in script.splitlines() if "source=" in line] == [1, 1]
    assert '"source=/a/s"' in script
    assert '"source=/cache/d-1"' in script


def test_the_submitting_python_runs_it_unless_the_site_names_another():
    assert "\n  /opt/python\n  -m\n  scalestudy.worker\n" in job_script(job("single", 1, site()))
    named = job_script(job("single", 1, site(environment="/venvs/a b")))
    assert "export VIRTUAL_ENV='/venvs/a b'" in named
    assert '\n  "$VIRTUAL_ENV/bin/python"\n' in named
    contained = job_script(job("single", 1, site(container=Container(image="/i", python="/ext3/bin/python"))))
    assert "\n  /i\n  /ext3/bin/python\n" in contained


def test_words_before_the_worker_are_each_one_word():
    script = job_script(job("single", 1, site(wrapper=("zsh", "-l", "-c", 'exec "$@"', "zsh"))))
    assert '\n  zsh\n  -l\n  -c\n  "exec \\"\\$@\\""\n  zsh\n  /opt/python\n' in script


def test_a_template_of_ones_own_sees_the_same_variables(tmp_path):
    mine = tmp_path / "mine.j2"
    mine.write_text(
        "{% for each in directives %}#SBATCH {{ each }}\n{% endfor %}{{ start }} {{ layout.tasks }}"
    )
    script = job_script(job("horovod", 2, site(), template=mine))
    assert "#SBATCH --ntasks=2" in script
    assert script.endswith('"${launch[@]}" "${worker[@]}" 2')


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a\n{{ nodes }}", "nodes"),
        ("{% if %}", "line 1"),
        ("\n{{ layout.node }}", "node"),
        (None, "No such file"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ 'a' + 1 }}", "concatenate"),
        ("{% include '/etc/passwd' %}", "no loader"),
        ("{% for i in range(10**12) %}{{ i }}{% endfor %}", "Range too big"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "unsafe"),
    ],
)
def test_a_template_that_cannot_be_filled_is_refused(tmp_path, text, told):
    mine = tmp_path / "mine.j2"
    if text is not None:
        mine.write_text(text)
    with pytest.raises(UserError) as caught:
        job_script(job("single", 1, site(), template=mine))
    assert told in caught.value.received
    assert str(mine) in caught.value.received


@pytest.fixture(scope="session")
def shellcheck() -> str:
    found = shutil.which("shellcheck")
    if found is None:
        pytest.skip("shellcheck is not installed (`make test-tools` does so on Debian)")
    return found


@pytest.mark.parametrize("container", [None, "apptainer", "singularity", "charliecloud"])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_linter_finds_nothing(shellcheck, tmp_path, path, container):
    on = find_site(str(path), Path())
    if container:
        named = Container(
            image="$HOME/a b.sif", runtime=container, binds=("$SCRATCH:/s",), overlay=("/o:ro",)
        )
        on = on.model_copy(update={"container": named, "environment": None})
    launchers = {on.launcher, "srun"} if container else {on.launcher, "srun", "mpirun", "horovodrun"}
    kinds = [("single", 1), ("mirrored", 2), ("multiworker", 6), ("horovod", 6)]
    files = []
    for launcher in launchers:
        changed = on.model_copy(update={"launcher": launcher})
        for strategy, workers in kinds if launcher == on.launcher else kinds[2:]:
            file = tmp_path / f"{len(files)}.sh"
            runs = RUNS if strategy == "horovod" else RUNS[1:]
            file.write_text(job_script(job(strategy, workers, changed, *runs, source=Path("/own $/src"))))
            files.append(file)
    done = subprocess.run([shellcheck, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[:3000]
