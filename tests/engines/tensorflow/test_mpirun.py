"""Real workers under the launchers of MPI and of Horovod."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from data_settings import data_of
from few_digits import few_digits
from scalestudy.config.point import Point
from scalestudy.data.preparation import prepare
from scalestudy.data.split import ensure_split
from scalestudy.engines.tensorflow.installation import library_file as horovod_built
from scalestudy.launch.worker_processes import FOREIGN
from scalestudy.store.run_folder import RunFolder, write_point

pytestmark = pytest.mark.engine

ROOT = Path(__file__).parents[3]
BUILD = ROOT / "environments" / "build-horovod.sh"


@pytest.fixture(scope="session")
def mpirun() -> list[str]:
    """Open MPI's launcher, with more processes than cores allowed and without core binding."""
    program = shutil.which("mpirun")
    if program is None:
        pytest.skip("no mpirun on this machine (Debian: openmpi-bin)")
    version = subprocess.run(
        [program, "--version"], capture_output=True, text=True, check=False
    ).stdout
    if "Open MPI" not in version:
        pytest.skip(f"mpirun is not Open MPI's: {version[:60]!r}")
    return [program, "--oversubscribe", "--bind-to", "none"]


@pytest.fixture(scope="session")
def horovod_with_mpi(mpirun, tmp_path_factory) -> Path:
    """A folder for PYTHONPATH with a Horovod built with MPI.

    Some sites install such a Horovod. `make setup` builds it without MPI, because with MPI it loads only
    where that MPI is, and in no container. Then build it here (minutes) and keep it in the user's cache.
    """
    packages = Path(sysconfig.get_paths()["purelib"])
    if any(
        b"libmpi" in library.read_bytes()
        for library in packages.glob("horovod/tensorflow/mpi_lib*.so")
    ):
        return packages
    missing = [
        tool
        for tool in ("mpicxx", "g++", "cmake", "make")
        if shutil.which(tool) is None
    ]
    if missing:
        pytest.skip(
            f"no {', '.join(missing)} to build Horovod with MPI (Debian: libopenmpi-dev g++ cmake make)"
        )
    target = tmp_path_factory.mktemp("horovod-mpi")
    done = subprocess.run(
        [BUILD, sys.prefix],
        env=os.environ | {"MPI": "1", "TARGET": str(target)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def make_run(tmp_path_factory):
    """Make the folder of a run on 120 digits: make_run(implementation, workers)."""
    cache = tmp_path_factory.mktemp("cache")
    prepared = prepare(data_of(few_digits(cache, 160), cache=cache))
    files = {
        "prepared": str(prepared.path),
        "split": str(ensure_split(prepared, 40 / 160, 0).path),
    }
    train = {"epochs": 2, "batch_size": 24, "batch": "global", "optimizer": "momentum"}

    def make(implementation: str, workers: int) -> RunFolder:
        values = {
            "name": f"{implementation}-w{workers}-s0",
            "study": "test",
            "task": "cnn",
            "strategy": implementation,
            "workers": workers,
            "seed": 0,
            "terms": {"implementation": implementation},
            "data": {"source": "digits"},
            "train": {**train, "learning_rate": 0.05, "schedule": "constant"},
            "files": files,
        }
        folder = tmp_path_factory.mktemp(values["name"]) / "run-1"
        folder.mkdir()
        write_point(folder / "point.json", Point.model_validate(values))
        return RunFolder(folder)

    return make


def start(
    launcher: list[str], processes: int, run: RunFolder, **variables: str
) -> tuple[int, str]:
    """Start the worker command under a launcher; return its exit code and all output."""
    path = os.pathsep.join(
        [*filter(None, [variables.pop("PYTHONPATH", "")]), str(ROOT / "src")]
    )
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(FOREIGN)
    }
    done = subprocess.run(
        [
            *launcher,
            "-np",
            str(processes),
            sys.executable,
            "-m",
            "scalestudy.worker",
            str(run.path),
        ],
        env=clean | root | {"PYTHONPATH": path} | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    logs = [log.read_text() for log in sorted((run.path / "logs").glob("rank-*.log"))]
    return done.returncode, "\n".join([done.stdout, *logs])


def environments(run: RunFolder) -> list[dict[str, str]]:
    return [rank.environment for rank in run.ranks()]


needs_horovod = pytest.mark.skipif(
    not horovod_built(), reason="Horovod is not built here"
)


@needs_horovod
def test_horovod_meets_by_gloo_unless_it_is_built_with_mpi(mpirun, make_run):
    run = make_run("horovod", 2)
    code, output = start(mpirun, 2, run)
    assert code == 0, output
    assert run.result().workers == 2
    assert [rank.placement_source for rank in run.ranks()] == ["openmpi", "openmpi"]
    built = "mpi" if run.ranks()[0].build["horovod"]["mpi"] else "gloo"
    assert {values["HOROVOD_CONTROLLER"] for values in environments(run)} == {built}
    assert run.result().communication == built


@pytest.fixture(scope="module")
def multiworker(mpirun, make_run) -> RunFolder:
    """A finished run of two workers under mpirun."""
    run = make_run("multiworker", 2)
    code, output = start(mpirun, 2, run)
    assert code == 0, output
    return run


def test_multiworker_finds_its_workers_under_mpirun_each_with_a_core_and_a_log(
    multiworker,
):
    assert multiworker.result().workers == 2
    assert multiworker.result().communication == "auto"
    logs = sorted((multiworker.path / "logs").iterdir())
    assert [log.name for log in logs] == ["rank-0.log", "rank-1.log"]
    if len(os.sched_getaffinity(0)) > 1:
        cpus = [rank.cpus for rank in multiworker.ranks()]
        assert [len(cores) for cores in cpus] == [1, 1] and cpus[0] != cpus[1]


def test_horovod_with_mpi_is_driven_by_mpi_and_ends_with_the_weights_of_multiworker(
    mpirun, horovod_with_mpi, make_run, multiworker
):
    run = make_run("horovod", 2)
    code, output = start(
        mpirun, 2, run, PYTHONPATH=str(horovod_with_mpi), HOROVOD_RANK="7"
    )
    assert code == 0, output
    assert {values["HOROVOD_CONTROLLER"] for values in environments(run)} == {"mpi"}
    assert all("HOROVOD_RANK" not in values for values in environments(run))
    assert all(rank.build["horovod"]["mpi"] for rank in run.ranks())
    # The sum of two gradients does not depend on the implementation.
    assert run.result().weights_digest == multiworker.result().weights_digest


def test_a_wrong_number_of_processes_is_refused_before_a_framework_is_imported(
    mpirun, make_run
):
    run = make_run("multiworker", 2)
    code, output = start(mpirun, 3, run)
    assert code == 2
    assert (
        "Expected 2 processes for multiworker with 2 workers. Received 3 (from openmpi)"
        in output
    )
    assert "oneDNN" not in output
    assert run.result() is None


def test_a_worker_without_its_folder_says_where_it_looked(mpirun, tmp_path):
    code, output = start(mpirun, 1, RunFolder(tmp_path / "not there"))
    assert code == 2
    assert "not there'" in output
