"""This process: the memory that it may use, its network, and its end.

`python -m scalestudy.hardware.own_process` creates a private network (a network namespace whose loopback only
its own processes can reach; Linux), prints "ready", and keeps it until its standard input is closed. It needs
no privileges if users may create user namespaces; root does not need one.
See namespaces(7), user_namespaces(7), setns(2).
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import signal
import socket
import struct
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

import psutil


def memory_limit() -> int:
    """Return the bytes that this process may use: the machine's memory or its cgroup's limit."""
    limits = [int(psutil.virtual_memory().total)]
    for folder in _cgroups():
        for name in ("memory.max", "memory.limit_in_bytes"):
            with contextlib.suppress(OSError, ValueError):
                limits.append(int((folder / name).read_text()))
    return min(limits)


def oom_kills() -> int | None:
    """Return how many processes of this process's cgroup the out-of-memory killer has ended so far.

    The count is in `memory.events` (cgroup version 2) or `memory.oom_control` (version 1), both since Linux
    4.13; without such a cgroup, that of the whole machine in `/proc/vmstat` is used. The kernel counts before
    it kills. None if there is no count.
    """
    files = [folder / name for folder in _cgroups() for name in ("memory.events", "memory.oom_control")]
    for file in (*files, Path("/proc/vmstat")):
        with contextlib.suppress(OSError):
            if (count := count_oom_kills(file.read_text())) is not None:
                return count
    return None


def count_oom_kills(text: str) -> int | None:
    """Return the number after `oom_kill` in a list of counts from the kernel; None without one."""
    for line in text.splitlines():
        match line.split():
            case ["oom_kill", number] if number.isdigit():
                return int(number)
    return None


def full_for(error: BaseException) -> str:
    """Name the full file systems for a "No space left on device" error without a file name; else ""."""
    if not isinstance(error, OSError) or error.errno != errno.ENOSPC or error.filename is not None:
        return ""
    full = []
    for folder in ("/dev/shm", tempfile.gettempdir(), os.getcwd()):
        with contextlib.suppress(OSError):
            if os.statvfs(folder).f_bavail == 0:
                full.append(folder)
    return f" ({', '.join(full)} {'is' if len(full) == 1 else 'are'} full)" if full else ""


def _cgroups() -> list[Path]:
    """Return the folders of this process's cgroups and their parents, version 1 and 2."""
    found = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers in ("", "memory"):
                root = Path("/sys/fs/cgroup", controllers)
                own = root / path.lstrip("/")
                found += [own, *(parent for parent in own.parents if parent.is_relative_to(root))]
    return found


def end_with(parent: int) -> None:
    """Make the kernel kill this process when its parent ends (Linux only; elsewhere no effect)."""
    if sys.platform != "linux":
        return
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended already
        os.kill(os.getpid(), signal.SIGKILL)


def leave(code: int) -> NoReturn:
    """End this process at once: threads of a framework may still wait for peers that have already left."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


NETWORK_READY = "ready"
NEW_USER, NEW_NET = 0x10000000, 0x40000000
SET_INTERFACE_FLAGS, UP_AND_RUNNING = 0x8914, 0x41
CAPABILITY_VERSION = 0x20080522
NAMESPACES = {"user": NEW_USER, "net": NEW_NET}


def create_network() -> None:
    """Move this process, which must have one thread, into a new network with a loopback.

    Raises:
        OSError: If this machine does not allow it.
    """
    user, group = os.geteuid(), os.getegid()
    try:
        _call("unshare", NEW_NET)
    except PermissionError:
        _call("unshare", NEW_USER | NEW_NET)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SET_INTERFACE_FLAGS, struct.pack("16sH22x", b"lo", UP_AND_RUNNING))


def enter_network(process: int) -> None:
    """Move this process, which must have one thread, into the network of another process of this user.

    It keeps its user and groups, and gains no privileges.

    Raises:
        OSError: If that process has ended or belongs to another user.
    """
    opened = {}
    for kind in NAMESPACES:
        there, here = f"/proc/{process}/ns/{kind}", f"/proc/self/ns/{kind}"
        if not os.path.samefile(there, here):
            opened[kind] = os.open(there, os.O_RDONLY | os.O_CLOEXEC)
    for kind, handle in opened.items():
        _call("setns", handle, NAMESPACES[kind])
        os.close(handle)
    if "user" in opened:  # entering one grants all capabilities in it
        header, none = struct.pack("Ii", CAPABILITY_VERSION, 0), bytes(24)
        _call("capset", header, none)


def _call(name: str, *arguments: int | bytes) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code)) if code else OSError(f"{name} failed")


def main() -> int:
    """Create a network and keep it until standard input is closed."""
    try:
        create_network()
    except (OSError, AttributeError) as error:  # AttributeError: not on Linux
        print(getattr(error, "strerror", None) or error, flush=True)
        return 1
    print(NETWORK_READY, flush=True)
    sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
