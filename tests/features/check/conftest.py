import pytest

from scalestudy.features.check.topology import Links, Node, Unit
from scalestudy.features.check.topology_bandwidth import AllReduce, Bandwidth, Pairs


@pytest.fixture
def node():
    """Two GPUs with links between them."""
    units = tuple(Unit(f"GPU{index}", "V100 <1>", (0, 1, 2, 8), (index,), f"GPU-{index}") for index in (0, 1))
    links = Links(("GPU0", "GPU1"), (("X", "NV2"), ("NV2", "X")), {"NV#": "a bonded set of # NVLinks"})
    return Node("n<1>", "gpu", units, links, "Machine (15GB total)\n")


@pytest.fixture
def measured():
    """What was measured on it."""
    pairs = Pairs(((None, 48e9), (9.5e9, None)), 2**25, "a copy")
    sums = [AllReduce(name, 2, size, size / 1e9) for name in ("RING", "Gloo") for size in (1024, 2**20)]
    return Bandwidth(pairs, tuple(sums), ("a note",))
