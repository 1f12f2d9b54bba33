"""Faults of local runs, injected while they run."""

import errno
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from faults.fault import Fault
from faults.scene import PHASES, Scene, wait_for

SEVERAL = ("multiworker", "horovod", "ddp")
HOLDABLE = ("import", "build")
"""Phases in which every rank can be paused; most later phases pause only the leading rank."""


def signalled(number: signal.Signals) -> Fault:
    """Send a signal to a random worker."""

    def plant(scene: Scene, draw: random.Random) -> str:
        rank = draw.randrange(scene.processes_of_workers)
        wait_for(lambda: scene.worker(rank), f"rank {rank}").send(number)
        return (
            rf"rank {rank}\b"
            if number == signal.SIGSTOP
            else rf"rank {rank}\b.*{number.name}"
        )

    phases = ("evaluation", "epoch", "checkpoint") if number == signal.SIGSTOP else ()
    return Fault(f"rank {number.name}", plant, phases=phases)


def launcher(number: signal.Signals, words: str) -> Fault:
    """Send a signal to the launcher."""

    def plant(scene: Scene, draw: random.Random) -> str:
        for process in scene.processes():
            if " -m scalestudy run" in process.command and process.rank is None:
                process.send(number)
        return words

    return Fault(f"launcher {number.name}", plant, by_launcher=True)


def written(words: str, expected: str, name: str) -> Fault:
    """Execute a line of Python in the task of the leading rank."""

    def plant(scene: Scene, draw: random.Random) -> str:
        phase = next(each for each in PHASES if (scene.place / f"hold-{each}").exists())
        (scene.place / f"do-{phase}-0").write_text(words)
        return expected

    return Fault(name, plant, phases=PHASES)


def _fill(scene: Scene, draw: random.Random) -> str:
    """Fill the file system of the study to the last byte."""
    with open(scene.root / "studies" / "filler", "wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
    return r"(?i)no space left|disk is full|full"


def _empty(scene: Scene) -> None:
    (scene.root / "studies" / "filler").unlink(missing_ok=True)


def _remount(scene: Scene, how: str) -> None:
    subprocess.run(
        ["mount", "-o", f"remount,{how}", str(scene.root / "studies")], check=True
    )


def _read_only(scene: Scene, draw: random.Random) -> str:
    # A file system with files open for writing cannot be remounted read-only: bind it over itself.
    studies = str(scene.root / "studies")
    subprocess.run(["mount", "--bind", studies, studies], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", studies], check=True)
    return r"(?i)read-only|cannot be written"


def _writable(scene: Scene) -> None:
    subprocess.run(["umount", "-l", str(scene.root / "studies")], check=True)


def removed(what: str, expected: str) -> Fault:
    """Remove a folder during the run."""

    def plant(scene: Scene, draw: random.Random) -> str:
        run = scene.newest_run()
        path = {
            "run": run.path if run else scene.results / "points",
            "points": scene.results / "points",
            "study": scene.results,
            "logs": run.path / "logs" if run else scene.results / "points",
            "cache": scene.root / "cache",
        }[what]
        shutil.rmtree(path, ignore_errors=True)
        return expected

    return Fault(f"{what} folder removed", plant)


_THIEF = """
import socket, sys, time
taken = []
for port in map(int, sys.argv[1:]):
    taken.append(socket.socket())
    taken[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken[-1].bind(("127.0.0.1", port))
        taken[-1].listen()
    except OSError:
        pass
print("ready", flush=True)
sys.stdin.read()
"""


def _steal(scene: Scene, draw: random.Random) -> str:
    """Listen at the ports that the run has reserved but not used yet, in its network namespace."""
    worker = wait_for(lambda: scene.worker(0), "rank 0")
    environment = Path(f"/proc/{worker.pid}/environ").read_bytes().split(b"\0")
    port = next(
        int(each[12:]) for each in environment if each.startswith(b"MASTER_PORT=")
    )
    network = f"--net=/proc/{worker.pid}/ns/net"
    thief = subprocess.Popen(
        ["nsenter", network, sys.executable, "-c", _THIEF, str(port), str(port + 1)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert thief.stdout is not None
    thief.stdout.readline()
    _THIEVES[scene.root] = thief
    return r"(?i)port|address already in use|in use|"


def _give_back(scene: Scene) -> None:
    if thief := _THIEVES.pop(scene.root, None):
        thief.communicate()


_THIEVES: dict[Path, "subprocess.Popen[str]"] = {}

FAULTS = [
    signalled(signal.SIGKILL),
    signalled(signal.SIGTERM),
    signalled(signal.SIGSEGV),
    signalled(signal.SIGABRT),
    signalled(signal.SIGSTOP),
    launcher(signal.SIGKILL, r"launcher was killed"),
    launcher(signal.SIGTERM, r"stopped by SIGTERM; run it again to continue"),
    launcher(signal.SIGINT, r"interrupted by the user|SIGINT"),
    launcher(signal.SIGHUP, r"interrupted by the user|SIGHUP"),
    written(
        "import sys; sys.exit(3)", r"sys\.exit\(3\)|exit code 3", "task sys.exit(3)"
    ),
    written("raise SystemExit('enough')", r"enough", "task sys.exit(words)"),
    written("os._exit(7)", r"rank 0\b.*\b7\b", "task os._exit"),
    written("raise ValueError('planted')", r"planted", "task raises"),
    written("raise MemoryError", r"MemoryError", "task MemoryError"),
    written(
        "import ctypes; ctypes.string_at(0)", r"rank 0\b.*SIGSEGV", "task segfault"
    ),
    Fault("disk full", _fill, _empty),
    Fault("read-only", _read_only, _writable),
    removed("run", r"(?i)removed|no such file|gone|missing"),
    removed("points", r"(?i)removed|no such file|gone|missing|"),
    removed("study", r"(?i)removed|no such file|gone|missing|"),
    removed("logs", r"(?i)|"),
    removed("cache", r"(?i)cache|prepared|no such file|missing|"),
    Fault("port stolen", _steal, _give_back, phases=HOLDABLE, strategies=SEVERAL),
]
