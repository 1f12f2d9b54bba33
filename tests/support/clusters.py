"""A Slurm cluster that tests start, use and break."""

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeVar

T = TypeVar("T")

SCRIPT = Path(__file__).parent / "cluster.sh"
PROJECT = Path(__file__).parents[2]
SLOTS = 8
"""Maximum of clusters on this machine; each slot has its own network, ports and folder."""
COMMANDS = (
    "slurmctld",
    "slurmd",
    "sbatch",
    "slurmdbd",
    "mariadbd",
    "munged",
    "ip",
    "ss",
    "unshare",
)


def missing() -> str | None:
    """Reason why no cluster can be started here; None if one can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "a Slurm cluster needs root on Linux"
    absent = [command for command in COMMANDS if shutil.which(command) is None]
    if absent:
        return f"a Slurm cluster needs {', '.join(absent)}: `make test-tools` installs them on Debian"
    probe = [
        "unshare",
        "--net",
        "--uts",
        "--mount",
        "--pid",
        "--fork",
        "ip",
        "link",
        "add",
        "type",
        "bridge",
    ]
    refused = subprocess.run(probe, capture_output=True, text=True, check=False)
    if refused.returncode:
        return f"a Slurm cluster needs namespaces of its own: {refused.stderr.strip()}"
    return None


class Cluster:
    """A running cluster of `nodes` nodes (node1, node2, …) with 4 CPUs and 2 fake GPUs each.

    Attributes:
        root: A folder that all nodes see. (They do not see pytest's `tmp_path`, which is in /tmp.)
        env: The environment of a login shell on it.
        prepared: Data sets prepared so far, as keys of `studies.write_study`.
    """

    def __init__(self, nodes: int, *, accounting: bool) -> None:
        self.prepared: set[tuple[str, ...]] = set()
        self.nodes = [f"node{number}" for number in range(1, nodes + 1)]
        slot, self._lock = _free_slot()
        self.root = _root(slot)
        inherited = {
            name: value for name, value in os.environ.items() if not _foreign(name)
        }
        settings = _settings(slot) | {
            "CLUSTER_NODES": str(nodes),
            "CLUSTER_ACCOUNTING": str(int(accounting)),
            "CLUSTER_SHARED": ":".join(
                map(str, (PROJECT, sys.prefix, sys.base_prefix))
            ),
        }
        self.env = (
            inherited
            | settings
            | {
                "SLURM_CONF": str(self.root / "slurm.conf"),
                "PYTHONPATH": str(PROJECT / "src"),
                "XDG_CONFIG_HOME": str(self.root / "config"),
                "COLUMNS": "200",
            }
        )

    def up(self) -> None:
        self.root.mkdir(exist_ok=True)
        self._script("up")

    def down(self) -> None:
        self._script("down")
        shutil.rmtree(self.root, ignore_errors=True)
        self._lock.close()

    def kill_node(self, name: str) -> None:
        self._script("kill-node", name)

    def start_node(self, name: str) -> None:
        self._script("start-node", name)
        self.wait_for(
            lambda: self.node_state(name) in ("idle", "mixed", "allocated"),
            f"{name} to be back",
        )

    def stop_controller(self) -> None:
        """Suspend slurmctld, so that it answers no requests."""
        self._script("stop-controller")

    def start_controller(self) -> None:
        self._script("start-controller")

    def run(
        self,
        *command: object,
        check: bool = True,
        timeout: float = 300,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as on the login node; standard output and errors are merged."""
        done = subprocess.run(
            [str(each) for each in command],
            cwd=cwd or self.root,
            env=self.env,
            text=True,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert not check or done.returncode == 0, (
            f"{command} -> {done.returncode}\n{done.stdout}"
        )
        return done

    def scalestudy(
        self,
        *arguments: object,
        check: bool = True,
        timeout: float = 900,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a Scalestudy command as on the login node."""
        command = (sys.executable, "-m", "scalestudy", *arguments)
        return self.run(*command, check=check, timeout=timeout, cwd=cwd)

    def run_here(self, study: Path, timeout: float = 900) -> None:
        """Run a study locally, with its own network and reservations, because other tests run theirs."""
        own = self.root / "login"
        own.mkdir(exist_ok=True)
        loopback = ("sh", "-c", 'ip link set lo up && exec "$@"', "sh")
        apart = ("unshare", "--net", "env", f"TMPDIR={own}", *loopback)
        self.run(
            *apart,
            sys.executable,
            "-m",
            "scalestudy",
            "run",
            study,
            "--no-report",
            timeout=timeout,
        )

    def run_quietly(self, *arguments: object) -> str:
        """Return only the standard output of a Scalestudy command."""
        command = [sys.executable, "-m", "scalestudy", *map(str, arguments)]
        done = subprocess.run(
            command,
            env=self.env,
            text=True,
            capture_output=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, (
            f"{command} -> {done.returncode}\n{done.stdout}{done.stderr}"
        )
        return done.stdout

    def sbatch(self, *options: object, script: str) -> str:
        """Submit a script with sbatch and return its job id."""
        file = self.folder("by-hand") / "job.sh"
        file.write_text(f"#!/bin/bash\n{script}")
        return self.run(
            "sbatch", "--parsable", *options, file, cwd=file.parent
        ).stdout.strip()

    def states(self, job: str) -> list[str]:
        """Slurm's states of a job, or of all tasks of an array."""
        told = self.run(
            "scontrol", "--oneliner", "show", "job", job, check=False
        ).stdout
        return [
            word.partition("=")[2]
            for word in told.split()
            if word.startswith("JobState=")
        ]

    def node_state(self, name: str) -> str:
        return self.run(
            "sinfo", "-h", "-p", "debug", "-n", name, "-o", "%T"
        ).stdout.strip()

    def wait_for(self, look: Callable[[], T], what: str, seconds: float = 600) -> T:
        """Return the first true value of `look()`; fail after `seconds`.

        Calling `look` slows down the awaited process, so each call is followed by a pause of the same length.
        """
        deadline = time.monotonic() + seconds
        began = time.monotonic()
        while not (found := look()):
            now = time.monotonic()
            assert now < deadline, f"waited in vain for {what}\n{self._situation()}"
            time.sleep(max(0.2, now - began))
            began = time.monotonic()
        return found

    def folder(self, name: str) -> Path:
        """Create a folder that all nodes see."""
        parent = self.root / "work"
        parent.mkdir(exist_ok=True)
        number = len(list(parent.iterdir()))
        path = parent / f"{number:03}-{name}"
        path.mkdir()
        return path

    def _situation(self) -> str:
        """The queue, the nodes, Slurm's errors, and the ends of the newest job logs."""
        commands = (
            ("squeue", "-t", "all", "-o", "%i %j %T %r %N"),
            ("sinfo", "-N", "-p", "debug"),
            ("sh", "-c", f"grep -h error {self.root}/log/slurm*.log | tail -n 20"),
        )
        printed = [
            self.run("timeout", "5", *command, check=False).stdout
            for command in commands
        ]
        logs = sorted(
            (self.root / "work").rglob("job.log"), key=lambda log: log.stat().st_mtime
        )
        ends = [
            f"{log}:\n{log.read_text(errors='replace')[-1500:]}" for log in logs[-4:]
        ]
        return "\n".join((*printed, *ends))

    def _script(self, *arguments: str) -> None:
        done = subprocess.run(
            [str(SCRIPT), *arguments],
            env=self.env,
            text=True,
            timeout=1800,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, f"cluster.sh {arguments}: {done.stdout}"


def _free_slot() -> tuple[int, IO[str]]:
    """Lock a slot that no other session uses, and remove what dead sessions left behind."""
    mine = None
    for slot in range(SLOTS):
        lock = open(f"{_root(slot)}.lock", "w")  # noqa: SIM115 (kept as long as the cluster)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        if _root(slot).exists():
            subprocess.run(
                [str(SCRIPT), "down"], env=os.environ | _settings(slot), check=True
            )
            shutil.rmtree(_root(slot))
        if mine is None:
            mine = slot, lock
        else:
            lock.close()
    assert mine, f"{SLOTS} clusters run on this machine already"
    return mine


def _root(slot: int) -> Path:
    return Path(f"/tmp/scalestudy-slurm-{slot}")


def _settings(slot: int) -> dict[str, str]:
    return {
        "CLUSTER_ROOT": str(_root(slot)),
        "CLUSTER_NETWORK": f"198.18.{slot}",
        "CLUSTER_BRIDGE": f"slurmtest{slot}",
        "CLUSTER_PORT": str(17800 + 2 * slot),
    }


def _foreign(name: str) -> bool:
    """Whether a variable belongs to another cluster, on which this session may run."""
    return name.startswith(
        ("SLURM", "SBATCH", "SQUEUE", "SINFO", "SACCT", "OMPI_", "PMI")
    )
