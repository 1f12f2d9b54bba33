"""Network namespaces joined by links with a latency and a bandwidth, on kernels without netem.

`python benchmarks/far_network.py SECONDS NAMESPACE…` creates a TUN device "slow" in each namespace and relays
packets between them, each delayed by SECONDS, until its standard input is closed. Needs root.
"""

import contextlib
import ctypes
import fcntl
import os
import queue
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from overlap import NETWORK, slow_network, tool

PACKET = 65000
TUN, WITHOUT_HEADER, SET_INTERFACE = 0x0001, 0x1000, 0x400454CA
READY = "ready"


@contextmanager
def far_network(nodes: int, rate: int, delay: float) -> Iterator[list[str]]:
    """Yield the names of `nodes` network namespaces, joined with `rate` Mbit/s each, `delay` s one way."""
    if not delay:
        with slow_network(nodes, rate) as names:
            yield names
        return
    names = [f"far-{os.getpid()}-{rank}" for rank in range(nodes)]
    with ExitStack() as left:
        for name in names:
            tool("ip", "netns", "add", name)
            left.callback(tool, "ip", "netns", "del", name)
        relay = subprocess.Popen(
            [sys.executable, __file__, str(delay), *names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        left.callback(relay.communicate)  # closes its input
        if not relay.stdout or relay.stdout.readline().strip() != READY:
            sys.exit(
                "expected TUN devices in the namespaces; received the message above. Load the module tun."
            )
        for rank, name in enumerate(names):
            tool(
                "ip",
                "-n",
                name,
                "address",
                "add",
                f"{NETWORK}.{rank + 1}/24",
                "dev",
                "slow",
            )
            tool("ip", "-n", name, "link", "set", "lo", "up")
            tool("ip", "-n", name, "link", "set", "slow", "mtu", str(PACKET), "up")
            shape = ["rate", f"{rate}mbit", "burst", "256k", "latency", "50ms"]
            tool("tc", "-n", name, "qdisc", "add", "dev", "slow", "root", "tbf", *shape)
        yield names


def relay(delay: float, names: list[str]) -> None:
    """Relay each packet, delayed, to the device with its destination address."""
    with contextlib.suppress(OSError):
        os.setpriority(
            os.PRIO_PROCESS, 0, -10
        )  # so that packets are not later than `delay`
    devices = [_device(name) for name in names]
    lines: list[queue.SimpleQueue[tuple[float, bytes]]] = [
        queue.SimpleQueue() for _ in names
    ]

    def take(device: int) -> None:
        while True:
            packet = os.read(device, PACKET + 64)
            place = packet[19] - 1  # last byte of the destination address
            if packet[0] >> 4 == 4 and 0 <= place < len(lines):
                lines[place].put((time.perf_counter() + delay, packet))

    def give(device: int, line: "queue.SimpleQueue[tuple[float, bytes]]") -> None:
        while True:
            due, packet = line.get()
            time.sleep(max(0.0, due - time.perf_counter()))
            with contextlib.suppress(OSError):
                os.write(device, packet)

    for device, line in zip(devices, lines, strict=True):
        threading.Thread(target=take, args=(device,), daemon=True).start()
        threading.Thread(target=give, args=(device, line), daemon=True).start()
    print(READY, flush=True)
    sys.stdin.read()
    os._exit(0)  # its threads still wait for packets


def _device(namespace: str) -> int:
    """Create a TUN device "slow" in a network namespace, held open by this process."""
    library = ctypes.CDLL(None, use_errno=True)
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(Path("/var/run/netns") / namespace, os.O_RDONLY)
    try:
        _enter(library, there)
        device = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(
            device, SET_INTERFACE, struct.pack("16sH22x", b"slow", TUN | WITHOUT_HEADER)
        )
        return device
    finally:
        _enter(library, here)
        os.close(here)
        os.close(there)


def _enter(library: ctypes.CDLL, namespace: int) -> None:
    if library.setns(namespace, 0) != 0:
        raise OSError(ctypes.get_errno(), "setns failed")


if __name__ == "__main__":
    relay(float(sys.argv[1]), sys.argv[2:])
