"""The package as others get it: built from a tagged commit and installed without TensorFlow."""

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.version import Version

from scalestudy.util.own_package import UNKNOWN_VERSION

PROJECT = Path(__file__).parents[1]
FILES = (
    "pyproject.toml",
    "setup.py",
    "README.md",
    "LICENSE",
    ".git_archival.txt",
    ".gitattributes",
)
TEMPLATES = (
    "report/templates/document.html.j2",
    "launch/queue/templates/job.sh.j2",
    "py.typed",
    "features/imported/published-unet.csv",
)
NO_NETWORK = re.compile(
    "NewConnectionError|NameResolutionError|ConnectTimeoutError|new connection"
)

pytestmark = pytest.mark.package


def environment() -> dict[str, str]:
    """Return this environment without variables that lead to this source or change what Git does."""
    away = ("PYTHONPATH", "SETUPTOOLS_SCM_", "GIT_")
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(away)
    }
    return kept | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def run(
    *command: str | Path, cwd: Path, code: int = 0
) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == code, (
        f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    )
    return done


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=Someone", "-c", "user.email=someone@example.org")
    return run("git", *who, *words, cwd=folder).stdout.strip()


def commit(folder: Path) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message=A commit")
    return git(folder, "rev-parse", "HEAD")


def version_of(folder: Path) -> str:
    return run(sys.executable, "-m", "setuptools_scm", cwd=folder).stdout.strip()


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """The files that determine the version, in a repository without a tag."""
    for name in FILES:
        shutil.copy(PROJECT / name, tmp_path)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def test_the_version_is_the_tags_and_grows_between_them(history: Path):
    before = version_of(history)
    git(history, "tag", "v2.3.4")
    at = version_of(history)
    last = commit(history)
    after = version_of(history)
    assert at == "2.3.4"
    assert re.fullmatch(r"2\.3\.5\.dev1\+g[0-9a-f]+", after)
    assert last.startswith(after.split("+g")[1])
    assert Version(before) < Version(at) < Version(after) < Version("2.3.5")
    # A clone without tags counts from the last release that the changelog names.
    released = re.findall(
        r"^## \[(\d+\.\d+\.\d+)\]",
        (PROJECT / "CHANGELOG.md").read_text("utf-8"),
        re.MULTILINE,
    )
    assert Version(before).is_devrelease
    assert Version(released[0]) < Version(UNKNOWN_VERSION) < Version(before)
    assert before.endswith(git(history, "rev-parse", "--short", "v2.3.4"))


def test_an_archive_of_a_tag_knows_it_and_source_without_history_has_a_version_too(
    history: Path,
):
    git(history, "tag", "v2.3.4")
    for archive, expected in (("tagged", "2.3.4"), ("bare", UNKNOWN_VERSION)):
        git(history, "archive", f"--output={archive}.tar", "HEAD")
        (history / archive).mkdir()
        run("tar", "-xf", f"{archive}.tar", "-C", archive, cwd=history)
        if archive == "bare":
            (history / archive / ".git_archival.txt").unlink()
        assert version_of(history / archive) == expected


def test_source_that_is_not_installed_has_a_version_too(tmp_path: Path):
    shutil.copytree(PROJECT / "src" / "scalestudy", tmp_path / "scalestudy")
    program = "import sys; sys.path.insert(0, '.'); import scalestudy; print(scalestudy.__version__)"
    assert (
        run(sys.executable, "-I", "-S", "-c", program, cwd=tmp_path).stdout.strip()
        == UNKNOWN_VERSION
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source as a tagged commit, so that earlier builds do not get into the wheel."""
    folder = tmp_path_factory.mktemp("source")
    for name in FILES:
        shutil.copy(PROJECT / name, folder)
    shutil.copytree(
        PROJECT / "src",
        folder / "src",
        ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", ".*"),
    )
    shutil.copytree(
        PROJECT / "docs",
        folder / "docs",
        ignore=shutil.ignore_patterns("__pycache__", "*.png"),
    )
    git(folder, "init", "--quiet")
    commit(folder)
    git(folder, "tag", "v9.8.7")
    return folder


@pytest.fixture(scope="module")
def wheel(source: Path) -> Path:
    pip = (
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        "dist",
    )
    run(*pip, ".", cwd=source)
    (built,) = (source / "dist").glob("*.whl")
    return built


def test_the_wheel_holds_all_files_of_the_package_its_licence_and_its_version(
    source: Path, wheel: Path
):
    assert wheel.name == "scalestudy-9.8.7-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    held = {name for name in names if name.startswith("scalestudy/")}
    files = (
        path for path in (source / "src" / "scalestudy").rglob("*") if path.is_file()
    )
    manual = {name for name in held if name.startswith("scalestudy/manual/")}
    pages = (source / "docs").rglob("*.md")
    assert manual == {
        f"scalestudy/manual/{page.relative_to(source / 'docs').as_posix()}"
        for page in pages
    } | {"scalestudy/manual/generate.py"}
    assert held - manual == {
        path.relative_to(source / "src").as_posix() for path in files
    }
    assert held >= {f"scalestudy/{name}" for name in TEMPLATES}
    assert "scalestudy-9.8.7.dist-info/licenses/LICENSE" in names
    about = zipfile.ZipFile(wheel).read("scalestudy-9.8.7.dist-info/METADATA").decode()
    assert set(re.findall(r"^Provides-Extra: (.+)$", about, re.MULTILINE)) == {
        "cpu",
        "gpu",
        "gpu-volta",
        "dev",
        "docs",
        "mlflow",
        "onnx",
        "tensorboard",
        "torch",
    }
    for extra, brings in (
        ("cpu", "tensorflow-cpu"),
        ("gpu", r"tensorflow\[and-cuda\]"),
    ):
        assert re.search(
            rf"^Requires-Dist: {brings}.*extra == \"{extra}\"$", about, re.MULTILINE
        )


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Iterator[Path]:
    """`bin` of a new environment with the wheel and its requirements, as on a login node, without TensorFlow.

    Versions are pinned, so that pip finds them in its cache.
    """
    folder = wheel.parents[1] / "environment"
    venv.create(folder, with_pip=False)
    lock = (PROJECT / "requirements" / "login.txt").read_text()
    pinned = re.findall(r"^([\w.-]+==\S+)", lock, re.MULTILINE)
    (folder / "pinned.txt").write_text("\n".join(pinned))
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin" / "python")
    install = (
        "install",
        "--no-compile",
        "--retries",
        "1",
        "--constraint",
        folder / "pinned.txt",
        wheel,
    )
    done = subprocess.run(
        [*pip, *install], env=environment(), capture_output=True, text=True, check=False
    )
    if done.returncode != 0 and NO_NETWORK.search(done.stderr):
        shutil.rmtree(folder)
        pytest.skip(
            "no network, and pip asks its index even for what it has in its cache"
        )
    assert done.returncode == 0, done.stderr[-2000:]
    run(*pip, "check", cwd=folder)
    yield folder / "bin"
    shutil.rmtree(folder)  # half a gigabyte


def test_the_installed_command_says_its_version_and_teaches(
    installed: Path, tmp_path: Path
):
    assert (
        run(installed / "scalestudy", "--version", cwd=tmp_path).stdout
        == "scalestudy 9.8.7\n"
    )
    assert "Examples:" in run(installed / "scalestudy", "--help", cwd=tmp_path).stdout
    assert (
        "--deadline TIME"
        in run(installed / "scalestudy", "docs", "command-line", cwd=tmp_path).stdout
    )
    package = run(
        installed / "python",
        "-c",
        "import scalestudy; print(scalestudy.__file__)",
        cwd=tmp_path,
    )
    assert package.stdout.startswith(str(installed.parent))


def test_a_login_node_plans_a_study_and_says_how_to_get_what_it_cannot_run_without(
    installed: Path, tmp_path: Path
):
    run(installed / "python", "-c", "import tensorflow", cwd=tmp_path, code=1)
    (tmp_path / "site.toml").write_text(
        'partition = "gpu"\ncpus_per_node = 16\nenvironment = "~/venv"\n'
    )
    queued = '[launch]\non = "slurm"\nsite = "site.toml"\n[sweep]\nworkers = [1, 2]\n'
    (tmp_path / "queued.toml").write_text(f'task = "cnn"\n{queued}')
    planned = run(
        installed / "scalestudy", "submit", "queued.toml", "--dry-run", cwd=tmp_path
    )
    assert "#SBATCH --partition=gpu\n" in planned.stdout
    run(installed / "scalestudy", "init", "study.toml", cwd=tmp_path)
    refused = run(
        installed / "scalestudy", "run", "study.toml", "--dry-run", cwd=tmp_path, code=2
    )
    assert "Expected TensorFlow in this environment" in refused.stderr
    assert "pip install '.[cpu]'" in refused.stderr
    assert {path.name for path in tmp_path.iterdir()} == {
        "site.toml",
        "queued.toml",
        "study.toml",
    }


def test_a_login_node_makes_reports(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(str(PROJECT / "tests" / "analysis"))
    import synthetic

    synthetic.write(tmp_path / "study", "study", synthetic.seeded())
    run(
        installed / "scalestudy",
        "report",
        "study",
        "--format",
        "html",
        "--out",
        "report.html",
        cwd=tmp_path,
    )
    page = (tmp_path / "report.html").read_text()
    assert 'content="Scalestudy 9.8.7"' in page
    assert page.count('<img class="still"') >= 2
    assert (
        "10.5281/zenodo.7639190"
        in run(installed / "scalestudy", "demo", cwd=tmp_path).stdout
    )
    assert (tmp_path / "published-unet.html").exists()
