"""Bash reads any text in a job script literally."""

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scalestudy.launch.queue.job_script import (
    container_command,
    container_exports,
    directive,
    expandable,
    literal,
)
from scalestudy.launch.queue.site_profile import Container, find_site
from sites import EXAMPLES, MARK, job, job_script, site

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/people/of me",
    "A_1": 'a "b" $HOME `c` \\',
    "LC_ALL": "C.UTF-8",
}
TEXTS = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30
)
NASTY = st.text(
    st.sampled_from("a1 '\"$`\\{}!#~*?[]()<>|&;\n\t\r%é€𝄞-=\1\x7f"), max_size=20
)


def seen_by_bash(*words: str) -> list[bytes]:
    """Return words as bash reads them; arguments and array elements must agree."""
    script = "printf '%s\\0' {0}; words=({0}); printf '%s\\0' \"${{words[@]}}\"".format(
        " ".join(words)
    )
    done = subprocess.run(
        ["bash", "-c", os.fsencode(script)],
        env=ENVIRONMENT,
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""
    seen = done.stdout.split(b"\0")[:-1]
    assert seen[: len(words)] == seen[len(words) :]
    return seen[: len(words)]


@settings(deadline=None, max_examples=60)
@given(st.lists(TEXTS | NASTY, min_size=1, max_size=20))
@example(["", "-n", "a\nb", "$HOME", "`id`", "!!", "it's", "\\", "$(id)", "$'x'", '"'])
@example(["$\x7f", "\1`", "\x7f$$HOME"])
def test_a_literal_is_what_it_was(texts):
    assert seen_by_bash(*map(literal, texts)) == [text.encode() for text in texts]


@given(st.binary(min_size=1, max_size=20).filter(lambda data: 0 not in data))
@settings(deadline=None, max_examples=30)
@example(b"caf\xe9 $HOME 'x' \\ \n")
def test_a_path_that_is_no_text_is_what_it_was(data):
    assert seen_by_bash(literal(os.fsdecode(data))) == [data]


def expected(text: str) -> str:
    def value(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else ENVIRONMENT.get(match[1] or match[2], "")

    return re.sub(
        r"\$\$|\$([A-Za-z_][A-Za-z0-9_]*)|\$\{([A-Za-z_][A-Za-z0-9_]*)\}", value, text
    )


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        NASTY
        | st.lists(
            st.sampled_from(
                ["$HOME", "${A_1}", "$A_1", "$$", "$NOT_SET", "$1", "$(id)", "'", " "]
            )
        ).map("".join),
        min_size=1,
        max_size=20,
    )
)
@example(["$HOME\x7f", "\1\x7f${A_1}`\1", "$\x7f"])
@example(
    [
        "$HOME/x y",
        "${HOME}a",
        "$$HOME",
        "$",
        "a$",
        "$A_1",
        "$$$A_1",
        "`id`$HOME",
        "${HOME",
    ]
)
def test_variables_are_put_in_and_nothing_is_run(texts):
    assert seen_by_bash(*map(expandable, texts)) == [
        expected(text).encode() for text in texts
    ]


@pytest.mark.parametrize(
    ("option", "written"),
    [
        ("--nodes=2", "--nodes=2"),
        ("--exclusive", "--exclusive"),
        ("--constraint=[a|b]&c", "--constraint=[a|b]&c"),
        ("--comment=two words", '--comment="two words"'),
        ('--comment=a "b" # c', '--comment="a \\"b\\" # c"'),
    ],
)
def test_directives_are_quoted_where_sbatch_would_split_them(option, written):
    assert directive(option) == written


STUDY, DATA = Path("/work/me/studies/s"), Path("/data/sets")


MOUNT = '--mount \'type=bind,"source={0}","destination={0}"\' '


@pytest.mark.parametrize(
    ("keys", "binds", "gpus", "command"),
    [
        (
            *({}, (STUDY, DATA), True),
            f'apptainer exec --nv {MOUNT.format(STUDY)}{MOUNT.format(DATA)}--pwd "$run" /images/a.sif',
        ),
        ({}, (), False, 'apptainer exec --pwd "$run" /images/a.sif'),
        (  # commas, colons and quotes
            *({}, (Path('/a,b:c "d"/$e'),), False),
            """apptainer exec --mount 'type=bind,"source=/a,b:c ""d""/$e","destination=/a,b:c ""d""/$e"' """
            '--pwd "$run" /images/a.sif',
        ),
        (
            {
                "image": "$IMAGES/a.sif",
                "runtime": "singularity",
                "binds": ("$SCRATCH:/scratch",),
            },
            *((), True),
            'singularity exec --nv --bind "$SCRATCH":/scratch --pwd "$run" "$IMAGES"/a.sif',
        ),
    ],
)
def test_a_container_sees_the_gpus_and_the_studys_folders(keys, binds, gpus, command):
    container = Container(**({"image": "/images/a.sif"} | keys))
    assert " ".join(container_command(container, binds, gpus=gpus)) == command


@pytest.mark.parametrize(
    ("runtime", "scratch", "exports"),
    [
        ("apptainer", "/s", {"APPTAINER_CACHEDIR": "/s/apptainer"}),
        (
            "apptainer",
            None,
            {"APPTAINER_CACHEDIR": '"$run/.apptainer"'},
        ),  # never in the home folder
        ("singularity", None, {"SINGULARITY_CACHEDIR": '"$run/.singularity"'}),
    ],
)
def test_each_runtime_reads_variables_of_its_own(runtime, scratch, exports):
    assert container_exports(Container(image="/i", runtime=runtime), scratch) == exports


NASTY_RUN = Path('/studies/s/points/it\'s "$HOME" `x`\n\\/run-1')


def directives(script: str) -> list[str]:
    return [
        line.removeprefix("#SBATCH ")
        for line in script.splitlines()
        if line.startswith("#SBATCH ")
    ]


def started(script: str) -> str:
    """Return the launch command (srun, mpirun, …) on one line."""
    return " ".join(script.partition("launch=(")[2].partition("\n)")[0].split())


def test_a_job_asks_for_what_its_layout_says():
    on = site(
        partition="gpu",
        account="me",
        qos="high",
        constraint="[a|b]",
        gpus_per_node=4,
        cpus_per_node=32,
        memory_per_node="180G",
        gpu_request="--gres=gpu:v100:{gpus}",
        time_limit="1-02:00:00",
        exclusive=False,
        directives=("--reservation=two words", "--nodelist=n1"),
    )
    assert directives(job_script(job("horovod", 6, on))) == [
        "--job-name=s-p",
        "--output=/studies/s/jobs/p.out",
        "--nodes=2",
        "--ntasks=6",
        "--ntasks-per-node=3",
        "--cpus-per-task=8",
        "--time=1-02:00:00",
        "--requeue",
        "--open-mode=append",
        "--signal=B:USR1@120",
        "--gres=gpu:v100:3",
        "--partition=gpu",
        "--account=me",
        "--qos=high",
        "--constraint=[a|b]",
        "--mem=138240M",
        f"--comment={MARK}",
        '--reservation="two words"',
        "--nodelist=n1",
    ]


def test_a_short_job_is_signalled_half_way():
    assert "--signal=B:USR1@30" in directives(
        job_script(job("single", 1, site(time_limit="00:01:00")))
    )


SRUN = "--cpus-per-task=1 --distribution=block:block --kill-on-bad-exit=1 --mpi=none --export=ALL"


@pytest.mark.parametrize(
    ("strategy", "workers", "launcher", "command"),
    [
        (
            "multiworker",
            8,
            "srun",
            f"srun --nodes=2 --ntasks=8 --ntasks-per-node=4 {SRUN}",
        ),
        ("multiworker", 5, "srun", f"srun --nodes=2 --ntasks=5 {SRUN}"),  # nodes differ
        # a ring of one learns its place as any other
        *(
            (ring, 1, "srun", f"srun --nodes=1 --ntasks=1 --ntasks-per-node=1 {SRUN}")
            for ring in ("multiworker", "horovod")
        ),
        (
            "horovod",
            6,
            "mpirun",
            "mpirun -n 6 --map-by ppr:3:node --rank-by slot --bind-to none",
        ),
        (
            *("horovod", 6, "mpirun -mca btl ^openib"),
            "mpirun -n 6 --map-by ppr:3:node --rank-by slot --bind-to none -mca btl ^openib",
        ),
        (
            *("multiworker", 8, "srun --mpi=pmix -v"),
            f"srun --nodes=2 --ntasks=8 --ntasks-per-node=4 {SRUN} --mpi=pmix -v",
        ),
    ],
)
def test_a_launcher_is_told_nodes_ranks_and_cores(strategy, workers, launcher, command):
    script = job_script(
        job(
            strategy,
            workers,
            site(cpus_per_node=4, launcher=launcher, env={"MY_OWN": "1"}),
        )
    )
    assert started(script) == command
    assert (
        ("--allow-run-as-root" in script)
        == ("|MY_OWN)" in script)
        == launcher.startswith("mpirun")
    )


def test_the_example_with_an_overlay_starts_the_python_of_the_overlay():
    example = find_site(
        str(next(path for path in EXAMPLES if path.stem == "apptainer-overlay")), Path()
    )
    script = job_script(job("horovod", 4, example))
    words = script.replace('"', "").split()
    python = words.index("/ext3/miniforge3/bin/python")
    assert words[python + 1 : python + 3] == ["-m", "scalestudy.worker"]
    assert any(
        word.startswith("SINGULARITY_OVERLAY=/scratch/me/overlay") for word in words
    )


@pytest.mark.parametrize(
    ("strategy", "workers", "launcher", "end"),
    [
        ("single", 1, "mpirun", '"${worker[@]}"\n'),  # one process needs no launcher
        *((one, 4, "mpirun", '"${worker[@]}"\n') for one in ("mirrored", "virtual")),
        (
            "horovod",
            2,
            "$MPIEXEC $FLAGS_MPI_BATCH",
            '$MPIEXEC $FLAGS_MPI_BATCH "${worker[@]}"\n',
        ),
    ],
)
def test_one_process_needs_no_launcher_and_a_sites_own_stands_as_it_is(
    strategy, workers, launcher, end
):
    script = job_script(job(strategy, workers, site(launcher=launcher)))
    assert started(script) == "" and script.endswith(f' "$run" {end}')


def test_with_gpus_workers_bind_themselves():
    assert started(job_script(job("horovod", 2, site(gpus_per_node=4)))).endswith(
        " --cpu-bind=none"
    )
    assert "--cpu-bind" not in started(job_script(job("horovod", 2, site())))


def test_only_workers_that_talk_over_grpc_lose_the_proxies():
    on = site(env={"http_proxy": "http://p:1"})
    ring, others = (
        job_script(job("multiworker", 2, on)),
        job_script(job("horovod", 2, on)),
    )
    assert ring.index("export http_proxy=http://p:1") < ring.index(
        "unset http_proxy https_proxy"
    )
    assert "export http_proxy=http://p:1" in others
    assert "unset http_proxy" not in others


def test_variables_for_gpus_are_set_only_where_there_are_gpus():
    with_gpus, without = (
        job_script(job("single", 1, site(gpus_per_node=gpus))) for gpus in (1, 0)
    )
    for name in ("SCALESTUDY_GPUS=", "TF_GPU_THREAD_MODE=gpu_private", "NCCL_DEBUG="):
        assert name in with_gpus
        assert name not in without


def test_our_own_source_is_seen_in_a_container(tmp_path):
    script = job_script(
        job("single", 1, site(container=Container(image="/i")), source=Path("/own/src"))
    )
    assert '"source=/own/src"' in script
    assert 'export PYTHONPATH=/own/src"${PYTHONPATH:+:$PYTHONPATH}"' in script
    assert "export PYTHONPATH" not in job_script(job("single", 1, site()))


def test_the_folders_of_the_prepared_data_are_seen_in_a_container():
    made = job(
        "single", 1, site(container=Container(image="/i")), Path("/a/s/points/p/run-1")
    )
    point = made.point.with_files("/cache/d-1/images", "/cache/d-1/splits/s.json")
    script = job_script(replace(made, point=point))
    assert script.count("source=") == 2
    assert '"source=/a/s"' in script and '"source=/cache/d-1"' in script


def test_the_submitting_python_runs_it_unless_the_site_names_another():
    assert "\n  /opt/python\n  -m\n  scalestudy.worker\n" in job_script(
        job("single", 1, site())
    )
    named = job_script(job("single", 1, site(environment="/venvs/a b")))
    assert "export VIRTUAL_ENV='/venvs/a b'" in named
    assert '\n  "$VIRTUAL_ENV/bin/python"\n' in named
    contained = job_script(
        job(
            "single",
            1,
            site(container=Container(image="/i", python="/ext3/bin/python")),
        )
    )
    assert "\n  /i\n  /ext3/bin/python\n" in contained


def test_words_before_the_worker_are_each_one_word():
    script = job_script(
        job("single", 1, site(wrapper=("zsh", "-l", "-c", 'exec "$@"', "zsh")))
    )
    assert "\n  zsh\n  -l\n  -c\n  'exec \"$@\"'\n  zsh\n  /opt/python\n" in script


@pytest.fixture(scope="session")
def shellcheck() -> str:
    found = shutil.which("shellcheck")
    if found is None:
        pytest.skip("shellcheck is not installed (`make test-tools` does so on Debian)")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_linter_finds_nothing(shellcheck, tmp_path, path):
    plain = find_site(str(path), Path())
    files = []

    def write(on, strategy, workers):
        files.append(tmp_path / f"{len(files)}.sh")
        made = job(strategy, workers, on, NASTY_RUN, source=Path("/own $/src"))
        files[-1].write_text(job_script(made))

    for launcher in {plain.launcher, "srun", "mpirun"}:
        on = plain.model_copy(update={"launcher": launcher})
        for strategy, workers in (
            ("single", 1),
            ("mirrored", 2),
            ("multiworker", 6),
            ("horovod", 6),
        ):
            write(on, strategy, workers)
    container = Container(image="$HOME/a b.sif", binds=("$SCRATCH:/s",))
    write(
        plain.model_copy(
            update={"container": container, "environment": None, "launcher": "srun"}
        ),
        *("horovod", 6),
    )
    done = subprocess.run(
        [shellcheck, *files], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[:3000]
