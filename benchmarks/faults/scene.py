"""A study with one point that faults are planted in: its folder, its processes, what is left of it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from scalestudy.study.run_folder import RunFolder
from scalestudy.study.strategies import traits

T = TypeVar("T")

TASK = Path(__file__).with_name("task.py")
PHASES = ("import", "build", "evaluation", "epoch", "checkpoint", "saving", "end")
"""Where a run can be held, in the order in which it gets there."""
PATIENCE = 240.0
"""Seconds in which what must come has come, however busy the machine."""
STUDY = """
task = "task.py"
[data]
source = "digits"
cache = "cache"
[train]
epochs = 3
batch_size = 128
evaluate_every = 1
[launch]
{launch}
[sweep]
strategy = "{strategy}"
workers = {workers}
seed = 0
"""


class StuckError(Exception):
    """Something that must come has not come."""


def wait_for(found: Callable[[], T], what: str, seconds: float = PATIENCE) -> T:
    """What `found` gives, as soon as it is true.

    Raises:
        StuckError: If it does not become so.
    """
    deadline = time.monotonic() + seconds
    while not (value := found()):
        if time.monotonic() > deadline:
            raise StuckError(what)
        time.sleep(0.02)
    return value


@dataclass(frozen=True)
class Process:
    """A process of a scene, as /proc shows it."""

    pid: int
    parent: int
    command: str
    rank: int | None

    def send(self, number: int) -> None:
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return


@dataclass(frozen=True)
class Standing:
    """How a point stands, as `scalestudy status` says."""

    state: str
    reason: str
    run: RunFolder | None


class Scene:
    """A folder with a study, and what runs in its name.

    Args:
        root: Folder of the scene, new.
        strategy: Of its one point.
        launch: Lines of the section `[launch]`.
    """

    outlives = False
    """Whether runs go on without the command that started them."""

    def __init__(self, root: Path, strategy: str, launch: str = "") -> None:
        self.root, self.strategy = root, strategy
        self.workers = traits(strategy).most_workers or 2
        roles = traits(strategy).roles_of(self.workers)
        self.processes_of_workers = roles.count("worker")
        self.leader = roles.index("coordinator") if "coordinator" in roles else 0
        self.place = root / "place"
        for name in ("place", "tmp", "run"):
            (root / name).mkdir(parents=True)
            (root / name).chmod(0o700)
        (root / "task.py").write_text(TASK.read_text().replace("@PLACE@", str(self.place)))
        self.study = root / "study.toml"
        self.study.write_text(STUDY.format(launch=launch, strategy=strategy, workers=self.workers))
        self.results = root / "studies" / "study"
        self.log = root / "log"
        self.told = 0
        self.environment = os.environ | {
            "SCALESTUDY_SOAK": str(root), "TMPDIR": str(root / "tmp"), "XDG_RUNTIME_DIR": str(root / "run"),
            "COLUMNS": "200",
        }  # fmt: skip

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start our command line; what it prints goes to the scene's log."""
        command = ["env", "--default-signal=INT", sys.executable, "-m", "scalestudy", *arguments]
        self.told = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            return subprocess.Popen(
                command, cwd=self.root, env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def run(self) -> subprocess.Popen[bytes]:
        """Start the study."""
        return self.start("run", str(self.study), "--no-report")

    def ended(self, process: subprocess.Popen[bytes], seconds: float = PATIENCE) -> int:
        """Exit code of what was started.

        Raises:
            StuckError: If it does not end; it is ended then.
        """
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.end_all()
            process.wait()
            raise StuckError("the end of the command") from None

    def said(self) -> str:
        """What the last command has printed."""
        with open(self.log, "rb") as log:
            log.seek(self.told)
            return log.read().decode(errors="replace")

    def situation(self) -> str:
        """What there is of processes, logs and signs, for whoever looks into it."""
        lines = [
            f"{each.pid} (rank {each.rank}, below {each.parent}): {each.command}" for each in self.processes()
        ]
        run = self.newest_run()
        files = sorted(run.path.rglob("*")) if run else []
        for file in files:
            if file.suffix in (".log", ".json") and file.parent != (run.path if run else None):
                lines.append(f"{file.name}: {file.read_text(errors='replace')[-600:]}")
        reached = sorted(each.name for each in self.place.iterdir())
        return "\n".join([f"reached {reached}", *lines, self.said()[-600:]])

    def hold(self, phase: str) -> None:
        """Have every run wait in a phase."""
        (self.place / f"hold-{phase}").touch()

    def release(self) -> None:
        """Let all go on, and forget what was reached."""
        for file in self.place.iterdir():
            file.unlink()

    def let_go(self) -> None:
        """Let all go on."""
        for phase in PHASES:
            (self.place / f"hold-{phase}").unlink(missing_ok=True)

    def forget(self) -> None:
        """Remove all results, so that the next run begins anew."""
        shutil.rmtree(self.results, ignore_errors=True)

    def reached(self, phase: str) -> bool:
        """Whether the process that leads the run is there."""
        return (self.place / f"reached-{phase}-{self.leader}").exists()

    def processes(self) -> list[Process]:
        """All that live in the scene's name."""
        return list(_processes(str(self.root)))

    def worker(self, rank: int) -> Process | None:
        """The process that computes for a rank: the one below that which watches over it."""
        found = [
            each
            for each in self.processes()
            if each.rank == rank and "scalestudy.worker" in each.command and "srun" not in each.command
        ]
        below = [each for each in found if each.parent in {other.pid for other in found}]
        return below[0] if below else None

    def end_all(self) -> None:
        """End what is left."""
        for process in self.processes():
            process.send(signal.SIGKILL)

    def status(self) -> Standing | None:
        """How the point stands, as every command sees it; None if there is none."""
        if not self.results.exists():
            return None
        command = [sys.executable, "-m", "scalestudy", "status", str(self.results), "--format", "json"]
        told = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        if told.returncode:
            raise RuntimeError(told.stderr.strip())
        (point,) = json.loads(told.stdout)["points"]
        run = RunFolder(point["run"]) if point["run"] else None
        return Standing(point["state"], point["reason"] or "", run)

    def learnt(self) -> tuple[str, list[tuple[int, int, float]]]:
        """What the finished run has learnt: digest of its weights, and epochs, samples, losses.

        Of workers that take no steps together only what does not depend on who came first.
        """
        run = self.newest_run()
        result = run.result() if run else None
        assert run
        assert result
        if not traits(self.strategy).synchronous:
            return "", [(each.epoch, each.samples, 0.0) for each in run.epochs()]
        return result.weights_digest, [(each.epoch, each.samples, each.loss) for each in run.epochs()]

    def newest_run(self) -> RunFolder | None:
        """The run folder that was made last."""
        runs = sorted(self.results.glob("points/*/run-*"), key=lambda path: path.stat().st_mtime)
        return RunFolder(runs[-1]) if runs else None

    def left_processes(self) -> list[str]:
        """Processes that outlive their run; they are ended now."""
        try:
            wait_for(lambda: not self.processes(), "the end of all processes", 15)
        except StuckError:
            left = [f"process {each.pid}: {each.command[:80]}" for each in self.processes()]
            self.end_all()
            return left
        return []

    def leftovers(self) -> list[str]:
        """Temporary files that outlive their run."""
        files = [str(path) for path in (self.root / "studies").rglob(".*") if path.is_file()]
        files += [str(path) for path in (self.root / "cache").rglob(".*.*") if path.is_file()]
        return [f"file {file}" for file in files if not file.endswith("lock")]

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


def fresh(strategy: str, launch: str = "", parent: Path | None = None) -> Scene:
    """A scene in a new folder."""
    root = Path(tempfile.mkdtemp(prefix="soak-", dir=parent))
    return Scene(root, strategy, launch)


def _processes(mark: str) -> Iterator[Process]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes().decode(errors="replace")
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state in "ZX" or (mark not in environment and mark not in command):
            continue
        yield Process(int(entry.name), int(parent), command, _rank(environment))


def _rank(environment: str) -> int | None:
    values = dict(pair.partition("=")[::2] for pair in environment.split("\0"))
    for name in ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "RANK"):
        if values.get(name, "").isdigit():
            return int(values[name])
    return None
