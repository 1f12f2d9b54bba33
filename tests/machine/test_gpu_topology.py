"""The matrix of GPUs from NVML's answers, as `nvidia-smi topo -m` prints it."""

import pytest

from scalestudy.machine.gpu_topology import SWITCH, Gpu, arrange_gpus, seen, set_bits


def bus(index):
    return f"00000000:{index + 6:02X}:00.0"


def gpu(index, *nvlinks):
    return Gpu(index, "Tesla V100-SXM2-16GB", bus(index), (0, 1), (0,), nvlinks)


def levels(count, level):
    return {(i, j): level(i, j) for i in range(count) for j in range(i + 1, count)}


# The wiring of NVIDIA's DGX-1 (V100): a cube mesh of six NVLinks a GPU, two switches of PCIe a socket.
DGX1 = {
    0: [1, 2, 3, 3, 4, 4], 1: [0, 2, 2, 3, 5, 5], 2: [0, 1, 1, 3, 3, 6], 3: [0, 0, 1, 2, 2, 7],
    4: [0, 0, 5, 6, 7, 7], 5: [1, 1, 4, 6, 6, 7], 6: [2, 4, 5, 5, 7, 7], 7: [3, 4, 4, 5, 6, 6],
}  # fmt: skip


def test_nvlinks_are_counted_between_two_gpus_and_pcie_names_the_rest():
    gpus = [gpu(index, *map(bus, others)) for index, others in DGX1.items()]
    found = arrange_gpus(gpus, levels(8, lambda i, j: 50 if i // 4 != j // 4 else 10))
    assert found.links[0] == ("X", "NV1", "NV1", "NV2", "NV2", "SYS", "SYS", "SYS")
    assert all(found.links[i][j] == found.links[j][i] for i in range(8) for j in range(8))
    assert list(found.legend()) == ["NV#", "SYS"]


def test_through_switches_every_pair_has_all_links():
    gpus = [gpu(index, *[SWITCH] * 18) for index in range(8)]
    found = arrange_gpus(gpus, levels(8, lambda i, j: 40))
    assert {link for row in found.links for link in row} == {"X", "NV18"}


def test_a_switched_pair_has_as_many_links_as_the_poorer_of_the_two():
    found = arrange_gpus([gpu(0, *[SWITCH] * 12), gpu(1, *[SWITCH] * 4)], {(0, 1): 50})
    assert found.links[0][1] == "NV4"


@pytest.mark.parametrize(
    ("level", "name"), [(0, "PIX"), (10, "PIX"), (20, "PXB"), (30, "PHB"), (40, "NODE"), (50, "SYS")]
)
def test_without_nvlink_the_nearest_common_ancestor_on_pcie_names_the_link(level, name):
    found = arrange_gpus([gpu(0), gpu(1)], {(0, 1): level})
    assert found.links == (("X", name), (name, "X"))
    assert list(found.legend()) == [name]


def test_units_bring_their_near_cpus_and_numa_nodes():
    unit = arrange_gpus([gpu(3)], {}).units[0]
    assert (unit.name, unit.cpus, unit.numa) == ("GPU 3", (0, 1), (0,))
    assert unit.detail == f"Tesla V100-SXM2-16GB, {bus(3)}"


def test_bits_of_several_words_count_on():
    assert set_bits([0b101, 0, 1]) == (0, 2, 128)
    assert set_bits([]) == ()


UUIDS = {0: "GPU-aa11", 1: "GPU-ab22", 2: "GPU-cc33"}


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, [0, 1, 2]),
        ("2,0", [0, 2]),
        ("GPU-cc33", [2]),
        ("GPU-ab", [1]),
        ("", []),
        ("-1", []),
        ("0,7,2", [0]),
        ("GPU-a", []),
    ],
)
def test_cuda_visible_devices_is_read_as_cuda_reads_it(visible, expected):
    assert seen(UUIDS, visible) == expected
