"""Give one bad input to the command line in a forked process, and classify the result."""

import ctypes
import hashlib
import os
import resource
import select
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from hostile.case import Case

VERDICTS = (
    "refused",
    "accepted",
    "taken",
    "unclear",
    "traceback",
    "hung",
    "left behind",
)
"""Refused properly; accepted where allowed; taken although it must be refused; a message without three parts;
a traceback, a bug message or a signal; a timeout; partial or temporary files left."""
FAULTS = VERDICTS[2:]
MEMORY = 8 * 2**30
LASTS = (".lock", "lock")
"""Endings of lock files, which stay."""


@dataclass(frozen=True)
class Outcome:
    case: Case
    verdict: str
    told: str
    seconds: float


def judge(case: Case, folder: Path, limit: float) -> Outcome:
    """Create the input in `folder` and run the command line on it for at most `limit` seconds."""
    work, home = folder / "work", folder / "home"
    work.mkdir(parents=True)
    home.mkdir()
    arguments = case.build(work)
    before = listing(work)
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _child(case, arguments, folder)
    status = _waited(pid, started + limit)
    seconds = time.monotonic() - started
    told = (
        (folder / "told").read_text(errors="replace")
        if (folder / "told").exists()
        else ""
    )
    verdict = (
        "hung"
        if status is None
        else _verdict(case, status, told, before, listing(work))
    )
    return Outcome(case, verdict, told, seconds)


def listing(folder: Path) -> dict[str, str]:
    """Every file below a folder with a digest of its content, or "other" for anything unreadable."""
    found = {}
    for root, _, files in os.walk(folder):
        for name in files:
            path = Path(root, name)
            inside = os.fsencode(path.relative_to(folder)).decode(
                errors="backslashreplace"
            )
            if path.is_symlink() or not path.is_file() or path.stat().st_size > 2**24:
                found[inside] = "other"
            else:
                found[inside] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _verdict(
    case: Case, status: int, told: str, before: dict[str, str], after: dict[str, str]
) -> str:
    code = os.waitstatus_to_exitcode(status)
    if (
        "Traceback (most recent" in told
        or "a bug in scalestudy" in told
        or code < 0
        or code == 70
    ):
        return "traceback"
    new = {
        name
        for name in after
        if after[name] != before.get(name) and not name.endswith(LASTS)
    }
    gone = set(before) - set(after)
    temporary = {
        name for name in new if Path(name).name.startswith(".") or ".tmp-" in name
    }
    if temporary or (code == 2 and (new or gone)):
        return "left behind"
    if code == 0:
        return "taken" if case.must else "accepted"
    parts = "Expected" in told and "Received" in told
    usage = code == 2 and "Error: " in told  # the option parser prints one sentence
    verified = code == 1 and " not sound." in told
    return "refused" if (parts or usage or verified) and code in (1, 2) else "unclear"


def _waited(pid: int, deadline: float) -> int | None:
    """Wait status of the process; None after killing it at the deadline."""
    handle = os.pidfd_open(pid)
    try:
        ready, _, _ = select.select(
            [handle], [], [], max(0.0, deadline - time.monotonic())
        )
        if not ready:
            os.killpg(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        return status if ready else None
    finally:
        os.close(handle)


def _child(case: Case, arguments: list[str], folder: Path) -> None:
    """Start a process group, isolate the user's environment, and run the command line."""
    os.setsid()
    try:
        told = os.open(folder / "told", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        silent = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((silent, 0), (told, 1), (told, 2)):
            os.dup2(source, target)
        # The importing program may have replaced these streams.
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
        home = str(folder / "home")
        os.environ |= {"HOME": home, "TMPDIR": str(folder / "work"), "COLUMNS": "200"}
        os.environ |= {
            f"XDG_{name}_HOME": f"{home}/{name}" for name in ("CONFIG", "STATE")
        }
        os.chdir(folder / "work")
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if case.ordinary:
            _renounce()
        from scalestudy.cli import main

        main(arguments)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        _leave(code)
    except BaseException:
        import traceback

        traceback.print_exc()
        _leave(99)
    _leave(0)


def _leave(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _renounce() -> None:
    """Drop the superuser's right to bypass file modes (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH)."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capget(header, data) != 0:
        return
    for index in (0, 1):
        data[index] &= ~0b110
    libc.capset(header, data)
