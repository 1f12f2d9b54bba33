"""PyTorch's processes meet at a store of rank 0, at the address that rank 0 writes."""

import os
import socket
import subprocess
import sys

import pytest

from scalestudy.cluster.meeting import MEETING

pytestmark = pytest.mark.engine
MEET = """
import sys
import numpy as np
from scalestudy.cluster.placement import Placement
from scalestudy.engines import rendezvous
from scalestudy.engines.torch.group import join_ddp

rank, port, address = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rendezvous.outward_addresses = lambda: [address]
rendezvous.addresses_of = lambda host: [host] if host == address else []
place = Placement(rank, 2, 0, 1, rank, ("first.invalid", "second.invalid"), "slurm", port)
group, _ = join_ddp(place, workers=2, device="cpu", communication="auto")
print(int(group.host_sum(np.array([rank + 1]))[0]))
group.close()
"""


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_two_hosts_without_names_sum_by_ipv4_and_by_ipv6(tmp_path, address):
    pytest.importorskip("torch")
    try:
        with socket.create_server(
            (address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET
        ) as probe:
            port = probe.getsockname()[1]
    except OSError:
        pytest.skip(f"this kernel has no {address}")
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", MEET, str(rank), str(port), address],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, MEETING: str(tmp_path)},
        )
        for rank in range(2)
    ]  # fmt: skip
    for rank in ranks:
        output, errors = rank.communicate(timeout=300)
        assert output.split() == ["3"], errors
