"""The scripts that users run first, as far as they can be tested without cluster hardware."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "environments"
SCRIPTS = sorted(FOLDER.glob("*.sh"))
RECIPES = sorted(FOLDER.glob("*.def"))
HEADINGS = r"%(arguments|files|post|environment|runscript|test|help|labels)"


def shellcheck(text: str, shell: str) -> str:
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck: install it (Debian: apt-get install shellcheck)")
    command = ["shellcheck", f"--shell={shell}", "--external-sources", "-"]
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, check=False, cwd=FOLDER
    )
    return done.stdout


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_pass_shellcheck_and_are_executable(script):
    assert os.access(script, os.X_OK)
    assert shellcheck(script.read_text(), "bash") == ""


def sections(recipe: Path) -> dict[str, str]:
    parts = re.split(rf"^{HEADINGS}\n", recipe.read_text(), flags=re.MULTILINE)
    return {"header": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def rendered(recipe: Path) -> dict[str, str]:
    """Return the sections with the values of %arguments filled in, as by Apptainer."""
    found = sections(recipe)
    values = dict(
        line.strip().split("=", 1)
        for line in found["arguments"].splitlines()
        if line.strip()
    )

    def value(match: re.Match[str]) -> str:
        return values[match[1]]

    return {
        name: re.sub(r"\{\{ *(\w+) *\}\}", value, text) for name, text in found.items()
    }


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_every_value_of_a_recipe_is_given(recipe):
    found = rendered(recipe)
    assert not re.search(r"\{\{|\}\}", "".join(found.values()))
    header = [
        line
        for line in found["header"].splitlines()
        if line and not line.startswith("#")
    ]
    assert [line.split(":")[0] for line in header] == ["Bootstrap", "From"]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
@pytest.mark.parametrize("section", ["post", "environment", "runscript", "test"])
def test_sections_of_a_recipe_pass_shellcheck(recipe, section):
    assert shellcheck("#!/bin/sh\n" + rendered(recipe)[section], "sh") == ""


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_files_of_a_recipe_exist_and_hold_what_it_runs(recipe):
    found = rendered(recipe)
    placed = {}
    for line in found["files"].splitlines():
        if line.strip():
            source, target = line.split()
            assert (ROOT / source).exists(), source
            placed[target] = source
    for path in re.findall(r"/opt/scalestudy/project/[\w./-]+\.sh", found["post"]):
        target = max((target for target in placed if path.startswith(target)), key=len)
        assert (ROOT / (placed[target] + path.removeprefix(target))).exists(), path


def run(
    script: str, *arguments: str, **variables: str
) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **variables}
    return subprocess.run(
        [str(FOLDER / script), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_nccl_on_cpus_is_refused_before_anything_is_made(tmp_path):
    done = run("venv.sh", str(tmp_path / "new"), DEVICE="cpu", HOROVOD="nccl")
    assert done.returncode == 1
    assert "received DEVICE=cpu HOROVOD=nccl" in done.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("there", "variables"),
    [
        ("torch", {"DEVICE": "gpu"}),
        ("tensorflow", {"DEVICE": "torch-gpu"}),
    ],
)
def test_two_versions_of_cuda_are_refused_in_one_environment(
    tmp_path, there, variables
):
    if there:
        package = tmp_path / "lib" / "python3.11" / "site-packages" / there
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
    done = run("setup.sh", VENV=str(tmp_path), **variables)
    assert done.returncode == 1
    assert "DEVICE=torch-gpu VENV=" in done.stderr
    assert not (tmp_path / "bin").exists()


def test_on_gpus_both_engines_get_an_environment_each_by_one_command(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    write_program(tools / "uname", "echo x86_64")
    for name in ("both", "both-torch"):
        programs = tmp_path / name / "bin"
        programs.mkdir(parents=True)
        write_program(
            programs / "python", f'echo "$@" >>"{tmp_path / name}/asked"\n{OWN_SOURCE}'
        )
        write_program(programs / "scalestudy", "")
    path = f"{tools}:{os.environ['PATH']}"
    variables = {"DEVICE": "gpu", "TORCH": "1", "HOROVOD": "0", "PATH": path}
    done = run("setup.sh", VENV=str(tmp_path / "both"), **variables)
    assert done.returncode == 0, done.stderr
    for name, lock in (("both", "gpu"), ("both-torch", "torch-gpu")):
        locks = re.findall(
            r"-r requirements/(\S+).txt", (tmp_path / name / "asked").read_text()
        )
        assert locks == [lock]
    assert f'torch = "{tmp_path / "both-torch"}"' in done.stderr


OWN_SOURCE = f'case "$*" in *"import os, scalestudy"*) echo "{ROOT}/src/scalestudy/__init__.py" ;; esac'
"""What a stand-in for the environment's Python answers about where the source is."""

PYTHON = """
here=$(dirname "$0")
case "$*" in
  "-m venv "*)
    for folder; do :; done
    [ "$3" != --clear ] || rm -rf "$folder"
    mkdir -p "$folder/bin" "$folder/lib"
    cp "$0" "$folder/bin/python"
    echo "command = $0 $*" >"$folder/pyvenv.cfg"
    printf '#!%s\\necho 1.0\\n' "$folder/bin/python" >"$folder/bin/scalestudy"
    chmod +x "$folder/bin/scalestudy" ;;
  *"--editable ."*) pwd -P >"$here/source" ;;
  *"import os, scalestudy"*) echo "$(cat "$here/source")/src/scalestudy/__init__.py" ;;
  *metadata*) cat "$here/../../tensorflow" ;;
  *loads.py*) [ -e "$here/../../loads" ] || { echo "expected Horovod's library to load"; exit 1; } ;;
  */bin/scalestudy*) echo 1.0 ;;
esac
"""
"""A stand-in for Python: it makes an environment of itself, and its packages are files beside the project."""


@pytest.fixture
def clone(tmp_path):
    """A clone of the project, whose set-up installs nothing but stand-ins."""
    folder = tmp_path / "clone"
    for name in ("environments", "requirements"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "pyproject.toml").touch()
    write_program(
        folder / "environments" / "build-horovod.sh",
        'echo built >>built; touch "$1/../loads"',
    )
    write_program(tmp_path / "python", PYTHON)
    (folder / "tensorflow").write_text("2.21.0")
    return folder


def set_up(folder, **variables):
    python = {
        "PYTHON": str(folder.parent / "python"),
        "DEVICE": "cpu",
        "VENV": "",
        "HOROVOD": "1",
    }
    return subprocess.run(
        [folder / "environments" / "setup.sh"],
        env=os.environ | python | variables,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def starts(folder) -> bool:
    program = folder / ".venv" / "bin" / "scalestudy"
    interpreter = Path(program.read_text().partition("\n")[0].removeprefix("#!"))
    return interpreter == folder / ".venv" / "bin" / "python" and interpreter.exists()


def test_set_up_records_project_environment_and_tensorflow(clone):
    done = set_up(clone)
    assert done.returncode == 0, done.stderr
    assert (clone / ".venv" / ".place").read_text().splitlines() == [
        f"environment={clone / '.venv'}",
        f"project={clone}",
        "tensorflow=2.21.0",
    ]
    assert starts(clone)
    again = set_up(clone)
    assert again.stderr.splitlines() == [
        f"setup: ready: {clone / '.venv'}/bin/scalestudy"
    ]


@pytest.mark.parametrize(
    "move", [shutil.move, shutil.copytree], ids=["moved", "copied"]
)
def test_a_clone_elsewhere_gets_an_environment_and_a_source_of_its_own(clone, move):
    set_up(clone)
    other = clone.parent / "other"
    move(clone, other)
    done = set_up(other)
    assert done.returncode == 0, done.stderr
    assert f"was made at {clone / '.venv'}" in done.stderr
    assert starts(other)
    assert (other / ".venv" / "bin" / "source").read_text().strip() == str(other)


def test_an_environment_of_the_user_that_was_moved_is_refused_and_kept(clone, tmp_path):
    venv = tmp_path / "mine"
    set_up(clone, VENV=str(venv))
    shutil.move(venv, tmp_path / "theirs")
    done = set_up(clone, VENV=str(tmp_path / "theirs"))
    assert done.returncode == 1
    assert f"received one from {venv}" in done.stderr
    assert (tmp_path / "theirs" / "bin" / "python").exists()


def test_two_clones_of_one_environment_run_each_its_own_source(clone, tmp_path):
    venv, other = tmp_path / "venv", tmp_path / "other"
    shutil.copytree(clone, other)
    shutil.copy(clone / "tensorflow", tmp_path)
    for folder in (clone, other, clone):
        done = set_up(folder, VENV=str(venv), HOROVOD="0")
        assert done.returncode == 0, done.stderr
        assert (venv / "bin" / "source").read_text().strip() == str(folder)


def test_a_horovod_that_does_not_load_or_is_of_another_tensorflow_is_built_anew(clone):
    set_up(clone)
    (clone / "loads").unlink()
    assert "ready:" in set_up(clone).stderr
    (clone / "tensorflow").write_text("2.22.0")
    set_up(clone)
    assert (clone / "built").read_text().split() == ["built"] * 3


def test_a_horovod_that_cannot_be_loaded_is_told_and_is_not_called_ready(clone):
    write_program(clone / "environments" / "build-horovod.sh", "exit 1")
    done = set_up(clone)
    assert done.returncode == 0, done.stderr
    assert "expected Horovod's library to load" in done.stderr
    assert "ready (without Horovod): " in done.stderr
    assert "without" not in set_up(clone, HOROVOD="0").stderr


def test_a_program_that_does_not_start_is_never_ready(clone):
    set_up(clone)
    (clone / ".venv" / "bin" / "scalestudy").write_text("#!/nowhere/python\n")
    done = set_up(clone)
    assert done.returncode == 1
    assert "scalestudy to start" in done.stderr and "ready" not in done.stderr


def write_program(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def test_pytorch_beside_tensorflow_is_refused_for_gpus_without_code_in_cuda_13(
    tmp_path,
):
    done = run("setup.sh", VENV=str(tmp_path / "new"), DEVICE="gpu-volta", TORCH="1")
    assert done.returncode == 1 and "7.5" in done.stderr
    assert not (tmp_path / "new").exists()


def pins(lock: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, flags=re.MULTILINE))


def test_pytorch_goes_beside_tensorflow_on_cpus_by_one_version():
    both, torch, gpu = pins("cpu"), pins("torch-cpu"), pins("torch-gpu")
    assert {name: both[name] for name in torch if name in both} == {
        name: version for name, version in torch.items() if name in both
    }
    assert "torch" not in torch  # pinned by version, not by hash
    assert torch.items() <= gpu.items()
    assert any(name.endswith("-cu13") for name in gpu) and not any(
        name.endswith("-cu12") for name in gpu
    )


def test_what_horovod_cannot_be_built_without_is_named_before_anything_is_made(
    tmp_path,
):
    done = run(
        "venv.sh", str(tmp_path / "new"), DEVICE="gpu", HOROVOD_CUDA_HOME=str(tmp_path)
    )
    assert done.returncode == 1
    assert f"nvcc (in HOROVOD_CUDA_HOME={tmp_path})" in done.stderr
    assert "HOROVOD=0" in done.stderr
    assert not (tmp_path / "new").exists()


def test_a_site_profile_that_is_not_there_is_named(tmp_path):
    done = run(
        "venv.sh", str(tmp_path / "new"), SITE="nowhere", XDG_CONFIG_HOME=str(tmp_path)
    )
    assert done.returncode == 1
    assert f"{tmp_path}/scalestudy/sites/nowhere.toml" in done.stderr


@pytest.fixture
def loaded(tmp_path):
    """A project whose setup prints its variables, and a `module` command that prints its arguments."""
    (tmp_path / "project" / "environments").mkdir(parents=True)
    setup = tmp_path / "project" / "environments" / "setup.sh"
    setup.write_text(
        '#!/bin/bash\nenv | grep -E "^(VENV|DEVICE|HOROVOD|http_proxy)=" | sort\n'
        'mkdir -p "$VENV/bin"; printf "#!/bin/sh\\necho recorded \\"\\$@\\"\\n" >"$VENV/bin/scalestudy"\n'
        'chmod +x "$VENV/bin/scalestudy"\n'
    )
    setup.chmod(0o755)
    (tmp_path / "module").write_text('#!/bin/sh\necho "module $*"\n')
    (tmp_path / "module").chmod(0o755)
    return {
        "SCALESTUDY_PROJECT": str(tmp_path / "project"),
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }


def test_modules_proxies_and_folder_come_from_the_site_profile(tmp_path, loaded):
    folder = tmp_path / "with space's" / "env"
    (tmp_path / "site.toml").write_text(
        f'cpus_per_node = 4\nmodules = ["GCC/12", "Python/3.11"]\nenvironment = "{folder}"\n'
        'env = {http_proxy = "http://p:3128/?a=$b"}\n'
    )
    done = run(
        "venv.sh", DEVICE="cpu", HOROVOD="0", SITE=str(tmp_path / "site.toml"), **loaded
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "module purge",
        "module load GCC/12",
        "module load Python/3.11",
        "DEVICE=cpu",
        "HOROVOD=0",
        f"VENV={folder}",
        "http_proxy=http://p:3128/?a=$b",
        "recorded check --strategies",
    ]


def test_the_users_own_modules_go_before_the_profiles(tmp_path, loaded):
    (tmp_path / "site.toml").write_text('modules = ["GCC/12"]\n')
    done = run(
        "venv.sh",
        str(tmp_path / "env"),
        DEVICE="cpu",
        HOROVOD="0",
        MODULES="GCC/13 CMake",
        SITE=str(tmp_path / "site.toml"),
        **loaded,
    )
    assert done.stdout.splitlines()[1:3] == ["module load GCC/13", "module load CMake"]


def test_a_job_finds_the_project_where_it_was_submitted(tmp_path, loaded):
    spooled = tmp_path / "slurm_script"
    shutil.copy(FOLDER / "venv.sh", spooled)
    done = subprocess.run(
        [str(spooled), str(tmp_path / "env")],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={
            "PATH": loaded["PATH"],
            "HOME": "/nonexistent",
            "DEVICE": "cpu",
            "HOROVOD": "0",
            "SLURM_SUBMIT_DIR": loaded["SCALESTUDY_PROJECT"],
        },
    )
    assert done.returncode == 0, done.stderr
    assert f"VENV={tmp_path}/env" in done.stdout
