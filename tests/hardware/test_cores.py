"""The cores that this process may use, those of each GPU's worker, and what other programs use of them."""

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.hardware import cores
from scalestudy.hardware.cores import (
    core_by_core,
    deal_cores,
    granted,
    share_of_others,
    use_by_others,
)
from sysfs_files import write

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system pins no processes"
)


def test_within_only_these_cores_are_granted_and_afterwards_all_as_before():
    before = cores.granted()
    with pytest.raises(ZeroDivisionError), cores.pinned_to(before[:1]):  # noqa: PT012
        assert cores.granted() == before[:1]
        _ = 1 / 0
    assert cores.granted() == before


def test_no_cores_named_means_all_that_are_granted():
    before = cores.granted()
    with cores.pinned_to([]):
        assert cores.granted() == before


def test_each_gpu_of_a_node_has_whole_cores_of_its_own_numa_node(tmp_path):
    """Eight GPUs, the first four near node 1, on two packages of 32 cores with two threads each."""
    for cpu in range(128):
        siblings = tmp_path / "cpu" / f"cpu{cpu}" / "topology" / "thread_siblings_list"
        write(siblings, f"{cpu % 64},{cpu % 64 + 64}")
    one, other = (*range(32), *range(64, 96)), (*range(32, 64), *range(96, 128))
    found = deal_cores(core_by_core(range(128), tmp_path), [other] * 4 + [one] * 4, 16)
    assert found[0] == [cpu for core in range(32, 40) for cpu in (core, core + 64)]
    assert found[4] == [cpu for core in range(8) for cpu in (core, core + 64)]
    assert sorted(cpu for own in found for cpu in own) == list(range(128))


def test_threads_that_are_numbered_one_after_another_are_of_one_core_by_the_older_file_too(
    tmp_path,
):
    for cpu in range(4):
        siblings = tmp_path / "cpu" / f"cpu{cpu}" / "topology" / "thread_siblings_list"
        write(siblings, f"{cpu % 2 * 2}-{cpu % 2 * 2 + 1}")
    assert core_by_core(range(4), tmp_path) == [0, 2, 1, 3]


def test_cpus_that_the_kernel_does_not_describe_come_as_they_are_numbered(tmp_path):
    assert core_by_core([3, 1, 2], tmp_path) == [1, 2, 3]


def test_who_has_the_fewest_cores_near_it_chooses_first():
    assert deal_cores(range(4), [range(4), range(2)], 2) == [[2, 3], [0, 1]]


def test_where_none_is_near_the_rest_is_dealt_out():
    assert deal_cores(range(6), [(), (), ()], 2) == [[0, 1], [2, 3], [4, 5]]
    assert deal_cores(range(4), [(0,), (90, 91)], 2) == [[0, 1], [2, 3]]


@given(
    st.sets(st.integers(0, 40)),
    st.lists(st.sets(st.integers(0, 40)), min_size=1, max_size=8),
    st.integers(1, 9),
)
def test_no_core_is_given_twice_and_none_is_withheld(granted, near, each):
    found = deal_cores(sorted(granted), [sorted(cpus) for cpus in near], each)
    dealt = [cpu for own in found for cpu in own]
    assert len(set(dealt)) == len(dealt) == min(len(granted), each * len(near))
    assert set(dealt) <= granted
    assert all(len(own) <= each for own in found)


@given(st.permutations(range(24)), st.integers(1, 6), st.integers(1, 6))
def test_cores_that_are_near_one_gpu_alone_go_to_it(cpus, gpus, each):
    near = [cpus[gpu::gpus] for gpu in range(gpus)]
    for own, around in zip(deal_cores(range(24), near, each), near, strict=True):
        assert len(set(own) & set(around)) == min(each, len(around))


COMPUTE = "import time\nwhile time.process_time() < 0.5: pass"


@pytest.fixture
def set_busy(monkeypatch):
    """Set the seconds that all cores were busy, whatever else this machine does."""
    return lambda seconds: monkeypatch.setattr(cores, "_busy", lambda used: seconds)


def test_what_own_children_used_counts_as_theirs(set_busy):
    set_busy(0.0)
    before, start = use_by_others(granted()), os.times()
    subprocess.run([sys.executable, "-c", COMPUTE], check=True)
    end = os.times()
    set_busy(
        end.children_user
        + end.children_system
        - start.children_user
        - start.children_system
    )
    assert share_of_others(before, granted()) == pytest.approx(0, abs=1e-9)
