import pytest

from scalestudy.features.check.report import AllReduce
from scalestudy.features.check.topology import Node, NodeBandwidth
from scalestudy.hardware.devices import Gpu


@pytest.fixture
def node():
    """Two GPUs with links between them."""
    gpus = tuple(
        Gpu(index, f"GPU-{index}", "V100 <1>", "0000:1", numa=(index,), cpus=(0, 1, 2, 8)) for index in (0, 1)
    )
    links = "\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2\t X \n"
    return Node("n<1>", gpus, (0, 1), links, "Vendor ID: GenuineIntel\n", "Machine (15GB total)\n")


@pytest.fixture
def measured():
    """Measurements on the node."""
    sums = [
        AllReduce(collective=name, ranks=2, bytes=size, seconds=size / 1e9, algorithm_bandwidth=1e9,
                  bus_bandwidth=1e9)
        for name in ("ring", "horovod-gloo")
        for size in (1024, 2**20)
    ]  # fmt: skip
    return NodeBandwidth(((None, 48e9), (9.5e9, None)), tuple(sums), ("a note",))
