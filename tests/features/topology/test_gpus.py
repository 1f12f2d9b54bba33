"""The matrix of GPUs from NVML's answers, as `nvidia-smi topo -m` prints it."""

import pytest

from fake_nvml import GPU_IS_LOST, Card, cards
from scalestudy.features.topology.gpus import SWITCH, Links, arrange_gpus, gpu_topology
from scalestudy.machine.devices import Gpu


def bus(index):
    return f"00000000:{index + 6:02X}:00.0"


def gpu(index):
    return Gpu(index, f"GPU-{index}", "Tesla V100-SXM2-16GB", bus(index), cpus=(0, 1), numa=(0,))


def arranged(nvlinks, ancestors):
    return arrange_gpus([gpu(index) for index in nvlinks], Links(nvlinks, ancestors))


def levels(count, level):
    return {(i, j): level(i, j) for i in range(count) for j in range(i + 1, count)}


# The wiring of NVIDIA's DGX-1 (V100): a cube mesh of six NVLinks a GPU, two switches of PCIe a socket.
DGX1 = {
    0: [1, 2, 3, 3, 4, 4], 1: [0, 2, 2, 3, 5, 5], 2: [0, 1, 1, 3, 3, 6], 3: [0, 0, 1, 2, 2, 7],
    4: [0, 0, 5, 6, 7, 7], 5: [1, 1, 4, 6, 6, 7], 6: [2, 4, 5, 5, 7, 7], 7: [3, 4, 4, 5, 6, 6],
}  # fmt: skip


def test_nvlinks_are_counted_between_two_gpus_and_pcie_names_the_rest():
    nvlinks = {index: [bus(other) for other in others] for index, others in DGX1.items()}
    found = arranged(nvlinks, levels(8, lambda i, j: 50 if i // 4 != j // 4 else 10))
    assert found.links[0] == ("X", "NV1", "NV1", "NV2", "NV2", "SYS", "SYS", "SYS")
    assert all(found.links[i][j] == found.links[j][i] for i in range(8) for j in range(8))
    assert list(found.legend()) == ["NV#", "SYS"]


def test_through_switches_every_pair_has_all_links():
    found = arranged({index: [SWITCH] * 18 for index in range(8)}, levels(8, lambda i, j: 40))
    assert {link for row in found.links for link in row} == {"X", "NV18"}


def test_a_switched_pair_has_as_many_links_as_the_poorer_of_the_two():
    found = arranged({0: [SWITCH] * 12, 1: [SWITCH] * 4}, {(0, 1): 50})
    assert found.links[0][1] == "NV4"


@pytest.mark.parametrize(
    ("level", "name"), [(0, "PIX"), (10, "PIX"), (20, "PXB"), (30, "PHB"), (40, "NODE"), (50, "SYS")]
)
def test_without_nvlink_the_nearest_common_ancestor_on_pcie_names_the_link(level, name):
    found = arranged({0: [], 1: []}, {(0, 1): level})
    assert found.links == (("X", name), (name, "X"))
    assert list(found.legend()) == [name]


def test_units_bring_their_near_cpus_and_numa_nodes():
    unit = arranged({3: []}, {}).units[0]
    assert (unit.name, unit.cpus, unit.numa) == ("GPU 3", (0, 1), (0,))
    assert unit.uuid == "GPU-3"
    assert unit.detail == f"Tesla V100-SXM2-16GB, {bus(3)}"


def test_a_link_that_nvml_does_not_know_is_shown_as_the_farthest_and_said():
    found = arranged({0: [], 1: [], 2: []}, {(0, 1): 10, (0, 2): 40})
    assert found.links[1] == ("PIX", "X", "SYS")
    assert found.remarks == ("NVML does not say what is between GPU 1 and GPU 2: shown as SYS",)


def test_only_visible_gpus_are_shown_in_the_order_of_their_numbers(nvml, tmp_path):
    nvml(*cards(3), levels={(0, 2): 40})
    found = gpu_topology({"CUDA_VISIBLE_DEVICES": "2,0"}, tmp_path)
    assert [unit.uuid for unit in found.units] == ["GPU-a0", "GPU-c2"]
    assert found.links == (("X", "NODE"), ("NODE", "X"))


def test_links_are_read_from_the_driver(nvml, tmp_path):
    one, two = cards(2)
    one.links, two.links = {0: two.bus, 3: two.bus}, {1: one.bus, 2: one.bus}
    nvml(one, two)
    found = gpu_topology({}, tmp_path)
    assert found.links == (("X", "NV2"), ("NV2", "X")) and found.remarks == ()
    one.links, two.links = dict.fromkeys(range(4), "switch"), dict.fromkeys(range(4), "switch")
    assert gpu_topology({}, tmp_path).links[0] == ("X", "NV4")


def test_a_lost_gpu_does_not_lose_the_others(nvml, tmp_path):
    one, two, three = cards(3)
    two.fails = {"*": GPU_IS_LOST}
    nvml(one, two, three, levels={(0, 2): 50})
    assert [unit.name for unit in gpu_topology({}, tmp_path).units] == ["GPU 0", "GPU 2"]


def test_a_gpu_that_is_divided_is_shown_as_a_whole(nvml, tmp_path):
    nvml(Card(uuid="GPU-mig", instances=[Card(uuid="MIG-1"), Card(uuid="MIG-2")]))
    found = gpu_topology({"CUDA_VISIBLE_DEVICES": "MIG-2,MIG-1"}, tmp_path)
    assert [unit.uuid for unit in found.units] == ["GPU-mig"]


def test_without_a_gpu_there_is_no_topology_of_gpus(nvml):
    nvml()
    assert gpu_topology({}) is None
    nvml(*cards(1))
    assert gpu_topology({"CUDA_VISIBLE_DEVICES": "-1"}) is None
