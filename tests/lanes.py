"""How two processes share out all tests (`make test`, pytest-xdist): by groups, of which each stays in one.

A file is a group, so that what it makes once is made once. Files that would be in each other's way, or
that share what is expensive, are one group.
"""

from pathlib import Path, PurePosixPath

import pytest

TOGETHER = {
    # Their clusters are made once. Most of the time Slurm waits, while the other process computes.
    "slurm": ("slurm/*.py",),
    # Runs and checks of this machine reserve its cores, and say so when they have to share them.
    "this machine": (
        "test_end_to_end.py", "test_interrupted.py", "check/test_local.py", "check/test_stalled_rank.py",
        "cli/test_check.py", "conduct/*.py", "plugins/*.py",
    ),
}  # fmt: skip
"""Files that are one group, by its name."""
FRAMEWORK = "framework"
"""The group of all tests that compute in their own process: TensorFlow is imported once."""
LONGEST = (
    "slurm", "this machine", "training/test_equality.py", FRAMEWORK, "strategies/test_mpirun.py",
    "test_package.py",
)  # fmt: skip
"""Groups that take a minute or more; they begin first, so that neither process is left waiting at the end."""


def group(file: str, fixtures: list[str]) -> str:
    """Name of a test's group.

    Args:
        file: Its file, from the tests' folder.
        fixtures: Names of all fixtures that it uses.
    """
    for name, patterns in TOGETHER.items():
        if any(PurePosixPath(file).match(pattern) for pattern in patterns):
            return name
    return FRAMEWORK if "framework" in fixtures else file


def position(name: str) -> int:
    """When a group begins, among all others."""
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Name the groups, and put them in order where several processes run them."""
    if not config.getoption("loadgroup", False):  # as pytest-xdist tells its processes
        return
    here = PurePosixPath(__file__).parent
    names = {}
    for item in items:
        file = PurePosixPath(item.path)
        inside = str(file.relative_to(here)) if here in file.parents else str(file)
        names[item] = group(inside, getattr(item, "fixturenames", []))
        item.add_marker(pytest.mark.xdist_group(names[item]))
    items.sort(key=lambda item: position(names[item]))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of which all tests are left out: to import TensorFlow for nothing takes seconds."""
    if "not engine" not in config.getoption("markexpr") or collection_path.suffix != ".py":
        return None
    return "\npytestmark = pytest.mark.engine\n" in collection_path.read_text() or None
