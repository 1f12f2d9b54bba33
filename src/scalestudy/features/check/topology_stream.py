"""One end of a stream between two pinned processes, started with the CPUs that it may run on.

Obeys lines on its standard input, and answers each with a line: `receive BYTES REPEATS` answers with the
port it listens at; `send PORT BYTES REPEATS` with the seconds of each repeat, as JSON.
Only the standard library, so that a process starts in little time.
"""

import json
import os
import socket
import sys
import time

HOST = "127.0.0.1"
CHUNK = 1 << 20
LIMIT = 20.0
"""Seconds without a byte after which an end gives up."""


def main(cpus: str) -> None:
    """Pin this process, then obey."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [int(cpu) for cpu in cpus.split(",")])
    for line in sys.stdin:
        word, *numbers = line.split()
        if word == "receive":
            _receive(*map(int, numbers))
        else:
            print(json.dumps(_send(*map(int, numbers))), flush=True)


def _receive(size: int, repeats: int) -> None:
    with socket.create_server((HOST, 0)) as server:
        server.settimeout(LIMIT)
        print(server.getsockname()[1], flush=True)
        stream, _ = server.accept()
        buffer = bytearray(CHUNK)
        with stream:
            stream.settimeout(LIMIT)
            for _ in range(repeats):
                left = size
                while left:
                    got = stream.recv_into(buffer, min(left, CHUNK))
                    if not got:
                        return
                    left -= got
                stream.sendall(b"!")


def _send(port: int, size: int, repeats: int) -> list[float]:
    chunk = memoryview(bytes(os.urandom(CHUNK)))
    seconds = []
    with socket.create_connection((HOST, port), timeout=LIMIT) as stream:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(repeats):
            started = time.perf_counter()
            left = size
            while left:
                part = chunk[: min(left, CHUNK)]
                stream.sendall(part)
                left -= len(part)
            stream.recv(1)  # the other end has it all
            seconds.append(time.perf_counter() - started)
    return seconds


if __name__ == "__main__":
    main(sys.argv[1])
