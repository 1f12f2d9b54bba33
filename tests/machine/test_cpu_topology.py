"""Groups of cores and what they share, from the kernel's tree."""

import os

import pytest
from trees import tree, write

from scalestudy.machine.cpu_topology import cpu_topology, read_cpus, read_distances


def names(topology):
    return [unit.name for unit in topology.units]


def test_a_small_machine_is_shown_core_by_core(tmp_path):
    root = tree(tmp_path, packages=1, nodes=1, caches=1, cores=2, threads=2)
    found = cpu_topology(range(4), root)
    assert names(found) == ["core 0", "core 1"]
    assert [unit.cpus for unit in found.units] == [(0, 2), (1, 3)]
    assert found.links == (("X", "L3"), ("L3", "X"))
    assert "2 threads a core (SMT)" in found.remarks


def test_links_tell_cache_node_package_and_the_way_between_packages(tmp_path):
    root = tree(tmp_path, packages=2, nodes=2, caches=2, cores=2, threads=1)
    found = cpu_topology(range(16), root)
    assert found.links[0] == ("X", "L3", "NODE", "NODE", *["PKG"] * 4, *["SYS"] * 8)
    assert list(found.legend()) == ["L3", "NODE", "PKG", "SYS"]
    assert [found.units[cpu].numa for cpu in (0, 4, 8, 12)] == [(0,), (1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ({"packages": 2, "nodes": 1, "caches": 4, "cores": 8, "threads": 2}, ("L3", 8)),
        ({"packages": 2, "nodes": 4, "caches": 4, "cores": 2, "threads": 1}, ("NUMA", 8)),
        ({"packages": 2, "nodes": 16, "caches": 1, "cores": 1, "threads": 1}, ("package", 2)),
    ],
)
def test_more_units_than_can_be_read_become_larger_groups(tmp_path, shape, expected):
    cpus = shape["packages"] * shape["nodes"] * shape["caches"] * shape["cores"] * shape["threads"]
    found = cpu_topology(range(cpus), tree(tmp_path, **shape))
    assert (found.units[0].name.split()[0], len(found.units)) == expected
    assert sorted(cpu for unit in found.units for cpu in unit.cpus) == list(range(cpus))


def test_only_granted_cpus_are_shown(tmp_path):
    root = tree(tmp_path, packages=2, nodes=1, caches=1, cores=4, threads=1)
    found = cpu_topology({1, 6}, root)
    assert names(found) == ["core 1", "core 6"]
    assert found.links[0][1] == "SYS"


def test_a_cpu_that_is_switched_off_is_left_out(tmp_path):
    root = tree(tmp_path, packages=1, nodes=1, caches=1, cores=4, threads=1)
    write(root / "cpu" / "cpu2" / "online", 0)
    assert [cpu.number for cpu in read_cpus(root)] == [0, 1, 3]


def test_cpus_come_in_the_order_of_their_numbers(tmp_path):
    root = tree(tmp_path, packages=1, nodes=1, caches=1, cores=12, threads=1)
    assert [cpu.number for cpu in read_cpus(root)] == list(range(12))


def test_distances_are_the_firmwares(tmp_path):
    root = tree(tmp_path, packages=2, nodes=1, caches=1, cores=1, threads=1)
    assert read_distances(root) == ((0, 1), ((10, 32), (32, 10)))


def test_a_tree_without_nodes_or_caches_is_one_node_of_lone_cores(tmp_path):
    for cpu in (0, 1):
        write(tmp_path / "cpu" / f"cpu{cpu}" / "topology" / "physical_package_id", -1)
    found = cpu_topology({0, 1}, tmp_path)
    assert found.links == (("X", "NODE"), ("NODE", "X"))
    assert (found.numa, found.distances) == ((), ())


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="Linux only")
def test_this_machines_own_tree_holds_every_granted_cpu():
    granted = os.sched_getaffinity(0)
    found = cpu_topology(granted)
    assert {cpu for unit in found.units for cpu in unit.cpus} == granted
