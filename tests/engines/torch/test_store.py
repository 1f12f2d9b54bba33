"""PyTorch's processes meet at a store of rank 0, at the address that rank 0 writes."""

import datetime
import os
import pickle
import socket
import subprocess
import sys

import numpy as np
import pytest

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.private_files import MEETING
from scalestudy.engines.group import to_json

pytestmark = pytest.mark.engine
MEET = """
import sys
import numpy as np
from scalestudy.cluster.placement import Placement
from scalestudy.engines import rendezvous
from scalestudy.engines.torch.torch_group import join_ddp

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
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, MEETING: str(tmp_path)},
        )
        for rank in range(2)
    ]
    for rank in ranks:
        output, errors = rank.communicate(timeout=300)
        assert output.split() == ["3"], errors


class Evil:
    """Unpickled, it makes a folder."""

    def __init__(self, folder) -> None:
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def test_what_a_stranger_writes_into_the_store_runs_no_code(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    from scalestudy.engines.torch.torch_script import StoreGroup

    limit = datetime.timedelta(seconds=60)
    store = torch.distributed.TCPStore("127.0.0.1", 0, None, True, limit, wait_for_workers=False)
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    group = StoreGroup(Placement(1, 2, 1, 2, 0, ("localhost",) * 2, "test", store.port))
    store.set("scalestudy/1", pickle.dumps(Evil(str(tmp_path / "made"))))
    with pytest.raises(ValueError, match="decode"):
        group.share_object(None)
    store.set("scalestudy/2/0", pickle.dumps(Evil(str(tmp_path / "made"))))
    with pytest.raises(ValueError, match="size"):
        group.host_sum(np.zeros(1))
    assert not (tmp_path / "made").exists()


def test_numbers_and_lists_are_shared_and_arrays_summed_through_the_store(monkeypatch):
    torch = pytest.importorskip("torch")
    from scalestudy.engines.torch.torch_script import StoreGroup

    limit = datetime.timedelta(seconds=60)
    store = torch.distributed.TCPStore("127.0.0.1", 0, None, True, limit, wait_for_workers=False)
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    group = StoreGroup(Placement(1, 2, 1, 2, 0, ("localhost",) * 2, "test", store.port))
    store.set("scalestudy/1", to_json({"loss": [np.float32(0.5), float("nan")], "at": np.arange(2)}))
    shared = group.share_object(None)
    assert shared["loss"][0] == 0.5 and np.isnan(shared["loss"][1]) and shared["at"] == [0, 1]
    store.set("scalestudy/2/0", np.full((2, 1), 3.0).tobytes())
    assert group.host_sum(np.ones((2, 1))).tolist() == [[4.0], [4.0]]
