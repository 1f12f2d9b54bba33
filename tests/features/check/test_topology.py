"""Units and links from what lscpu, nvidia-smi and the driver say."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_nvml import Card, cards
from scalestudy.features.check import topology as node
from scalestudy.features.check.topology import parse_links, ranges, read_node

# A DGX-like node as its driver prints it: terminal codes in the heading, network interfaces among the names,
# an empty field before the last column.
TOPO = (
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tSYS\tPXB\t0-55,112-167\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tSYS\tNODE\t0-55,112-167\t0\t\tN/A\n"
    "GPU2\tSYS\tSYS\t X \tSYS\t56-111\t1\t\tN/A\n"
    "NIC0\tPXB\tNODE\tSYS\t X \t\t\t\t\n"
    "\nLegend:\n\n"
    "  X    = Self\n"
    "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)\n"
    "  NODE = Connection traversing PCIe as well as the interconnect within a NUMA node\n"
    "  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)\n"
    "  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)\n"
    "  NV#  = Connection traversing a bonded set of # NVLinks\n"
    "\nNIC Legend:\n\n  NIC0: mlx5_0\n\n"
)


def test_the_matrix_of_nvidia_smi_is_read_with_its_network_interfaces():
    links = parse_links(TOPO)
    assert links.names == ("GPU0", "GPU1", "GPU2", "NIC0")
    assert links.rows[0] == ("X", "NV18", "SYS", "PXB")
    assert links.rows[3] == ("PXB", "NODE", "SYS", "X")
    assert list(links.legend) == ["SYS", "NODE", "PXB", "NV#", "NIC0"]
    assert links.legend["NIC0"] == "mlx5_0" and links.legend["NV#"].endswith("NVLinks")


@pytest.mark.parametrize("text", ["", "No devices were found\n", "Failed to initialize NVML\n"])
def test_without_a_matrix_there_are_no_links(text):
    assert parse_links(text) is None


def test_one_gpu_has_a_matrix_of_itself():
    links = parse_links("\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-31\t0\n")
    assert (links.names, links.rows) == (("GPU0",), (("X",),))


def test_gpus_that_may_be_used_are_units_by_nvidia_smis_names(nvml, monkeypatch):
    monkeypatch.setattr(node, "output_of", lambda *command: TOPO if command[0] == "nvidia-smi" else "")
    nvml(*cards(3))
    found = read_node({"CUDA_VISIBLE_DEVICES": "2,0"})
    assert [(gpu.index, gpu.uuid) for gpu in found.gpus] == [(0, "GPU-a0"), (2, "GPU-c2")]
    assert found.links.rows[0][2] == "SYS"


def test_a_gpu_that_is_divided_is_one_unit(nvml, monkeypatch):
    monkeypatch.setattr(node, "output_of", lambda *command: "")
    nvml(Card(uuid="GPU-mig", instances=[Card(uuid="MIG-1"), Card(uuid="MIG-2")]))
    found = read_node({"CUDA_VISIBLE_DEVICES": "MIG-2,MIG-1"})
    assert [gpu.uuid for gpu in found.gpus] == ["GPU-mig"] and found.links is None


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="Linux only")
def test_without_gpus_the_granted_cores_are_told(nvml):
    nvml()
    found = read_node({})
    assert found.gpus == () and found.links is None
    assert set(found.cores) == os.sched_getaffinity(0)


def test_a_program_that_is_missing_or_fails_says_nothing():
    assert node.output_of("no-such-program") == node.output_of("false") == ""


@given(st.sets(st.integers(0, 300), min_size=1))
def test_ranges_hold_every_number(cpus):
    ends = [part.split("-") for part in ranges(cpus).split(",")]
    assert {cpu for pair in ends for cpu in range(int(pair[0]), int(pair[-1]) + 1)} == cpus


def test_ranges_are_written_as_the_kernel_does():
    assert ranges([0, 1, 2, 3, 8]) == "0-3,8"
