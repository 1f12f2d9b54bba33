"""A real Slurm cluster on this machine: nodes in namespaces of their own, with host names and addresses.

`make test-tools` installs what it needs (Debian, root); elsewhere the tests are skipped and say why. To try
things out by hand: `tests/support/cluster.sh up`, and then `eval "$(tests/support/cluster.sh env)"`.

What the nodes are to see lies under `cluster.root` (use `cluster.folder(NAME)`, not `tmp_path`). A session's
clusters are ended with it; what a killed session left behind is removed by the next.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters import Cluster, missing


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slurm)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Four nodes of 4 CPUs and 2 GPUs, with accounting: only `research` is an account."""
    yield from _cluster(4, accounting=True)


@pytest.fixture(scope="session")
def big_cluster() -> Iterator[Cluster]:
    """Fourteen nodes without accounting."""
    yield from _cluster(14, accounting=False)


def _cluster(nodes: int, *, accounting: bool) -> Iterator[Cluster]:
    reason = missing()
    if reason:
        pytest.skip(reason)
    cluster = Cluster(nodes, accounting=accounting)
    try:
        cluster.up()
        yield cluster
    finally:
        cluster.down()
