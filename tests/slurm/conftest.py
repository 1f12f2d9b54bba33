"""A real Slurm cluster on this machine: nodes in their own namespaces, with host names and addresses.

`make test-tools` installs the requirements (Debian, root); elsewhere the tests are skipped with the reason.
To use a cluster by hand: `tests/support/cluster.sh up`, and then `eval "$(tests/support/cluster.sh env)"`.

Files for the nodes go under `cluster.root` (use `cluster.folder(NAME)`, not `tmp_path`). Clusters end with
their session; the next session removes those that a killed session left.
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
    """Four nodes of 4 CPUs and 2 GPUs, with accounting; the only account is `research`."""
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
