"""A network of a run's own: a network namespace, whose loopback only its own processes reach (Linux).

`python -m scalestudy.hardware.private_network` creates one, prints "ready", and keeps it until its standard
input is closed. It needs no privileges if users may create user namespaces; root does not need one.
See namespaces(7), user_namespaces(7), setns(2).
"""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

READY = "ready"
# From <linux/sched.h>, <linux/sockios.h>, <linux/if.h> and <linux/capability.h>: Python 3.11 has none of them.
NEW_USER, NEW_NET = 0x10000000, 0x40000000
SET_INTERFACE_FLAGS, UP_AND_RUNNING = 0x8914, 0x41
CAPABILITY_VERSION = 0x20080522
NAMESPACES = {"user": NEW_USER, "net": NEW_NET}


class PrivateNetwork(NamedTuple):
    """The process that holds a network; None if there is none, and why."""

    holder: int | None
    why_none: str = ""


@contextmanager
def private_network() -> Iterator[PrivateNetwork]:
    """Create a network, which ends with the block and the processes that have entered it.

    If this machine does not allow one, the reason is yielded instead.
    """
    # In its own session, since Ctrl-C must not end it before the workers.
    with subprocess.Popen(
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as holder:
        assert holder.stdout is not None
        said = holder.stdout.readline().strip()
        if said == READY:
            yield PrivateNetwork(holder.pid)
        else:
            yield PrivateNetwork(None, said or "the process that creates it ended")


def create_network() -> None:
    """Move this process, which must have one thread, into a new network with a loopback.

    Raises:
        OSError: If this machine does not allow it.
    """
    # Before `unshare`, after which both are 65534 until the maps are written.
    user, group = os.geteuid(), os.getegid()
    try:
        _call("unshare", NEW_NET)
    except PermissionError:
        _call("unshare", NEW_USER | NEW_NET)
        # Without privileges, a map of groups is accepted only after this; see user_namespaces(7).
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    # A new network has a loopback that is down.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(
            any_socket,
            SET_INTERFACE_FLAGS,
            struct.pack("16sH22x", b"lo", UP_AND_RUNNING),
        )


def enter_network(process: int) -> None:
    """Move this process, which must have one thread, into the network of another process of this user.

    It keeps its user and groups, and gains no privileges.

    Raises:
        OSError: If that process has ended or belongs to another user.
    """
    # The user's comes first: it gives the right to enter the network; see setns(2).
    opened = {}
    for kind in NAMESPACES:
        there, here = f"/proc/{process}/ns/{kind}", f"/proc/self/ns/{kind}"
        # Entering the user namespace that a process is in is refused.
        if not os.path.samefile(there, here):
            opened[kind] = os.open(there, os.O_RDONLY | os.O_CLOEXEC)
    for kind, handle in opened.items():
        _call("setns", handle, NAMESPACES[kind])
        os.close(handle)
    # Entering one grants all capabilities in it.
    if "user" in opened:
        header, none = struct.pack("Ii", CAPABILITY_VERSION, 0), bytes(24)
        _call("capset", header, none)


def _call(name: str, *arguments: int | bytes) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments) != 0:
        code = ctypes.get_errno()
        if not code:
            raise OSError(f"{name} failed")
        raise OSError(code, os.strerror(code))


def main() -> int:
    """Create a network and keep it until standard input is closed."""
    try:
        create_network()
    # AttributeError: not on Linux.
    except (OSError, AttributeError) as error:
        print(getattr(error, "strerror", None) or error, flush=True)
        return 1
    print(READY, flush=True)
    sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
