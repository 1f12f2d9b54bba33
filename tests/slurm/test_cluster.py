"""The cluster of these tests comes up although a service of it ends at its start."""

import os
import shutil
from pathlib import Path

import pytest

from clusters import Cluster, missing

FAILS_ONCE = """#!/bin/sh
if [ ! -e {mark} ]; then
  touch {mark}
  exit 1
fi
exec {program} "$@"
"""


def test_slurmdbd_is_started_again_if_it_ends_at_its_start(tmp_path: Path) -> None:
    """As it does on a busy machine, where its first query has no answer."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    mark, program = tmp_path / "failed", shutil.which("slurmdbd")
    wrapper = tmp_path / "slurmdbd"
    wrapper.write_text(FAILS_ONCE.format(mark=mark, program=program))
    wrapper.chmod(0o755)
    cluster = Cluster(1, accounting=True)
    cluster.env["PATH"] = f"{tmp_path}{os.pathsep}{cluster.env['PATH']}"
    try:
        cluster.up()
        assert mark.exists()
        assert cluster.node_state("node1") == "idle"
    finally:
        cluster.down()
