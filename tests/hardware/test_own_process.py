"""Memory that this process may use."""

import os
from pathlib import Path

import pytest

from scalestudy.hardware import own_process
from scalestudy.hardware.own_process import count_oom_kills, memory_limit, oom_kills


def test_the_memory_limit_is_at_most_the_machine():
    assert (
        0 < memory_limit() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    )


V2 = "low 0\nhigh 12\nmax 340\noom 3\noom_kill 2\noom_group_kill 1\n"
V1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n"
VMSTAT = "nr_free_pages 1\noom_kill 7\ndrop_pagecache 0\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (V2, 2),
        (V1, 4),
        (VMSTAT, 7),
        *(
            (text, None)
            for text in (
                "",
                "oom 3\noom_group_kill 1\n",
                "oom_kill\n",
                "oom_kill many\n",
            )
        ),
    ],
)
def test_the_kernels_counts_of_out_of_memory_kills_are_read(text, count):
    assert count_oom_kills(text) == count


def test_the_count_of_the_innermost_cgroup_is_the_one(tmp_path, monkeypatch):
    inner = tmp_path / "job" / "step"
    inner.mkdir(parents=True)
    (inner / "memory.events").write_text(V2)
    (tmp_path / "job" / "memory.events").write_text(
        V2.replace("oom_kill 2", "oom_kill 9")
    )
    monkeypatch.setattr(own_process, "_cgroups", lambda: [inner, inner.parent])
    assert oom_kills() == 2
    (inner / "memory.events").unlink()
    assert oom_kills() == 9


def test_without_a_cgroup_the_machines_count_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(own_process, "_cgroups", lambda: [tmp_path])
    assert oom_kills() == count_oom_kills(Path("/proc/vmstat").read_text())
