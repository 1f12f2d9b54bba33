"""Distribute all tests over processes (`make test`, pytest-xdist) by groups; a group stays in one process.

Each file is a group, so that its fixtures are created once. Files that would disturb each other, or that
share an expensive fixture, form one group.
"""

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

GROUPS = {
    # Where no Horovod with MPI is cached, it is built here for minutes, while other processes test.
    "mpirun": ("engines/tensorflow/test_mpirun.py",),
    # Slurm groups have their own clusters and mostly wait, while other processes compute.
    "slurm: many nodes": (
        "slurm/test_launchers.py",
        "slurm/test_submit.py",
        "slurm/test_ownership.py",
        "slurm/test_gpu_layouts.py",
    ),
    "slurm: runs": (
        "slurm/test_interruptions.py",
        "slurm/test_causes.py",
        "slurm/test_preemption.py",
        "slurm/test_refusals.py",
    ),
    # These two compute in the tests' own process: it imports TensorFlow and fixes its devices once.
    "training": ("training/*.py",),
    "equality": ("training/test_equality.py",),
    "ends": (
        "test_interrupted.py",
        "test_causes.py",
        "test_silent.py",
        "launch/test_hang.py",
    ),
    "slurm: whole study": ("slurm/test_whole_study.py", "slurm/test_silence.py"),
    "PyTorch": (
        "engines/torch/test_equality.py",
        "engines/torch/test_script.py",
        "engines/torch/test_modules.py",
        "test_gpu_benchmark.py",
    ),
    "course": ("test_course.py",),
    "scripts of Keras": ("engines/tensorflow/test_keras_script.py",),
    "framework": (
        "tasks/*.py",
        "engines/*.py",
        "engines/*/*.py",
        "features/launch/test_command.py",
    ),
    "asynchronous": ("test_asynchronous.py",),
    "hosts": ("launch/test_virtual_hosts.py",),
    "tutorials": ("docs/test_tutorials.py",),
    "end to end": ("test_end_to_end.py",),
    "slurm: checks": (
        "slurm/test_check.py",
        "slurm/test_waiting.py",
        "slurm/test_cluster.py",
    ),
    "checks": (
        "features/check/*.py",
        "launch/test_local_runs.py",
        "plugins/*.py",
        "cli/test_machine_commands.py",
        "app/*.py",
    ),
    "package": ("test_package.py",),
}
"""Names of groups, each with its files. All groups that take a minute or more are listed, the longest first,
so that no process runs alone at the end; likewise the files within a group: once a process has only two tests
left, xdist assigns it its next group, which no other process can take then."""
HERE = PurePosixPath(__file__).parents[1]


def group(file: str) -> str:
    """Name of a test's group, by its file in the tests folder: that which names it, else the first to fit."""
    for name, patterns in GROUPS.items():
        if file in patterns:
            return name
    for name, patterns in GROUPS.items():
        if any(PurePosixPath(file).match(pattern) for pattern in patterns):
            return name
    return file


def position(file: str) -> tuple[int, int]:
    """Sort key of a file's tests: index of its group, and index within the group."""
    name = group(file)
    if name not in GROUPS:
        return len(GROUPS), 0
    within = next(
        i
        for i, pattern in enumerate(GROUPS[name])
        if PurePosixPath(file).match(pattern)
    )
    return list(GROUPS).index(name), within


def _inside(file: Path) -> str:
    return str(file.relative_to(HERE)) if HERE in file.parents else str(file)


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Sort the tests by group in processes of pytest-xdist."""
    if hasattr(config, "workerinput"):  # set by pytest-xdist in each process
        items.sort(key=lambda item: position(_inside(item.path)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(
    config: pytest.Config, log: Any
) -> "LoadScopeScheduling":
    """Schedule groups. (xdist's own `--dist loadgroup` reads a field that pytest 9 has renamed.)"""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(_inside(config.rootpath / nodeid.partition("::")[0]))

    config.option.loadscopereorder = (
        False  # do not reorder groups by their numbers of tests
    )
    return ByGroup(config, log)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files that contain only deselected tests: importing TensorFlow for nothing takes seconds."""
    if (
        "not engine" not in config.getoption("markexpr")
        or collection_path.suffix != ".py"
    ):
        return None
    return "\npytestmark = pytest.mark.engine\n" in collection_path.read_text() or None
