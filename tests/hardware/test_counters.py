"""Kernel counters from synthetic files: bytes on the network and the power of processors."""

import socket
import threading

import pytest

from scalestudy.hardware.counters import CpuEnergy, Network, Traffic
from trees import write

SENT = 10**6
HEAD = "Inter-|   Receive\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets"


def network(root, **moved):
    """Write interfaces by name, each with (received, sent) bytes."""
    lines = [
        f"{name:>6}: {received} 1 0 0 0 0 0 0 {sent} 1 0 0 0 0 0 0"
        for name, (received, sent) in moved.items()
    ]
    write(root / "proc/self/net/dev", "\n".join([HEAD, *lines]))
    return root


def interface(root, name, *, device=False, over=(), kind=1):
    folder = root / "sys/class/net" / name
    write(folder / "type", kind)
    for each in (*(f"lower_{lower}" for lower in over), *["device"] * device):
        (folder / each).mkdir()


def port(root, received, sent):
    counters = root / "sys/class/infiniband/mlx5_0/ports/1/counters"
    write(counters / "port_rcv_data", received)
    write(counters / "port_xmit_data", sent)
    return counters


def test_hardware_counts_once_and_what_lies_over_it_not_again(tmp_path):
    network(tmp_path, lo=(7, 7), eth0=(1, 2), eth1=(10, 20), bond0=(11, 22), docker0=(5, 5), veth1=(5, 5))
    for name in ("eth0", "eth1"):
        interface(tmp_path, name, device=True)
    interface(tmp_path, "bond0", over=("eth0", "eth1"))
    interface(tmp_path, "docker0", over=("veth1",))
    interface(tmp_path, "veth1")
    assert Network(tmp_path).look() == Traffic(sent=22, received=11, loopback=7)


def test_in_a_namespace_without_hardware_the_lowest_interfaces_count(tmp_path):
    network(tmp_path, lo=(0, 0), eth0=(3, 4), vlan=(3, 4))
    interface(tmp_path, "eth0")
    interface(tmp_path, "vlan", over=("eth0",))
    assert Network(tmp_path).look() == Traffic(4, 3, 0)
    network(tmp_path, lo=(9, 9))
    assert Network(tmp_path).look() == Traffic(0, 0, 9)


def test_infiniband_ports_count_in_words_and_ip_over_them_is_theirs(tmp_path):
    network(tmp_path, lo=(0, 0), eth0=(1, 2), ib0=(100, 200))
    interface(tmp_path, "eth0", device=True)
    interface(tmp_path, "ib0", device=True, kind=32)
    counters = port(tmp_path, 1000, 3000)
    assert Network(tmp_path).look() == Traffic(12002, 4001, 0)
    found = Network(tmp_path)
    (counters / "port_rcv_data").unlink()
    assert found.look() == Traffic(None, None, 0)


def test_an_interface_that_vanishes_leaves_a_blank_and_not_less(tmp_path):
    found = Network(network(tmp_path, lo=(0, 0), eth0=(1, 2), eth1=(10, 20)))
    network(tmp_path, lo=(5, 5), eth0=(1, 2))
    assert found.look() == Traffic(None, None, 5)


@pytest.mark.parametrize("text", [None, f"{HEAD}\n eth0: many"])
def test_what_cannot_be_read_is_a_blank(tmp_path, text):
    if text:
        write(tmp_path / "proc/self/net/dev", text)
    assert Network(tmp_path).look() == Traffic(None, None, None)


def test_this_machine_tells_its_loopback():
    with socket.create_server(("127.0.0.1", 0)) as server:
        before = Network().look()
        client, other = socket.create_connection(server.getsockname()), server.accept()[0]
        with client, other:
            threading.Thread(target=client.sendall, args=(bytes(SENT),)).start()
            got = 0
            while got < SENT:
                got += len(other.recv(SENT))
        assert Network().look().loopback - before.loopback >= SENT


def domain(root, name, zone, energy, wrap=1_000_000):
    folder = root / zone
    for file, value in (("name", name), ("energy_uj", energy), ("max_energy_range_uj", wrap)):
        write(folder / file, value)
    return folder


@pytest.fixture
def two(tmp_path):
    """Two packages with their parts, the first one again through another driver, and the whole platform."""
    packages = [domain(tmp_path, f"package-{n}", f"intel-rapl:{n}", 900_000) for n in range(2)]
    domain(tmp_path, "core", "intel-rapl:0:0", 5)
    domain(tmp_path, "dram", "intel-rapl:1:1", 5)
    domain(tmp_path, "psys", "intel-rapl:2", 5)
    domain(tmp_path, "package-0", "intel-rapl-mmio:0", 900_000)
    return packages


def test_packages_add_up_once_and_without_their_parts(two, tmp_path):
    found = CpuEnergy(tmp_path)
    assert found.look() == 0
    write(two[0] / "energy_uj", 950_000)
    write(two[1] / "energy_uj", 901_000)
    assert found.look() == pytest.approx(0.051)


def test_a_counter_that_wraps_goes_on(two, tmp_path):
    found = CpuEnergy(tmp_path)
    for value in (999_000, 1_000, 400_000, 100):
        write(two[0] / "energy_uj", value)
        joules = found.look()
    assert joules == pytest.approx(0.1 + 1 + 0.0001)


def test_a_counter_that_vanishes_leaves_a_blank_for_good_and_says_why(two, tmp_path):
    found = CpuEnergy(tmp_path)
    (two[1] / "energy_uj").unlink()
    assert found.look() is None and "energy_uj cannot be read" in found.reason
    write(two[1] / "energy_uj", 950_000)
    assert found.look() is None


def test_counters_that_are_roots_alone_are_a_blank_with_that_reason(two, tmp_path, monkeypatch):
    read = type(tmp_path).read_text

    def closed(path, *given, **more):
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path, *given, **more)

    monkeypatch.setattr(type(tmp_path), "read_text", closed)
    found = CpuEnergy(tmp_path)
    assert found.look() is None
    assert found.reason == f"{two[0] / 'energy_uj'} can be read only by root; the site can make it readable"


def test_a_machine_without_counters_says_so(tmp_path):
    found = CpuEnergy(tmp_path / "none")
    assert found.look() is None and "no package of RAPL" in found.reason
