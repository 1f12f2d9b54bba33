"""A study with one point into which faults are injected: its folder, its processes, its remains."""

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

from scalestudy.plugins.strategies import traits
from scalestudy.store.run_folder import RunFolder

T = TypeVar("T")

TASK = Path(__file__).with_name("task.py")
PHASES = ("import", "build", "evaluation", "epoch", "checkpoint", "saving", "end")
"""Phases in which a run can be paused, in the order in which it reaches them."""
PATIENCE = 240.0
"""Time limit in seconds for awaited events, long enough for a busy machine."""
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
    """An awaited event did not happen in time."""


def wait_for(found: Callable[[], T], what: str, seconds: float = PATIENCE) -> T:
    """Return the first true value of `found()`.

    Raises:
        StuckError: If there is none within `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not (value := found()):
        if time.monotonic() > deadline:
            raise StuckError(what)
        time.sleep(0.02)
    return value


@dataclass(frozen=True)
class Process:
    """A process of a scene, as shown by /proc."""

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
    """State of a point, as `scalestudy status` reports it."""

    state: str
    reason: str
    run: RunFolder | None


class Scene:
    """A folder with a study, and the processes that run for it.

    Args:
        root: A new folder for the scene.
        strategy: Strategy of its one point.
        launch: Lines of the section `[launch]`.
    """

    outlives = False
    """Whether runs continue without the command that started them."""

    def __init__(self, root: Path, strategy: str, launch: str = "") -> None:
        self.root, self.strategy = root, strategy
        self.workers = traits(strategy).most_workers or 2
        self.processes_of_workers = traits(strategy).processes_of(self.workers)
        self.place = root / "place"
        for name in ("place", "tmp", "run"):
            (root / name).mkdir(parents=True)
            (root / name).chmod(0o700)
        (root / "task.py").write_text(
            TASK.read_text().replace("@PLACE@", str(self.place))
        )
        self.study = root / "study.toml"
        self.study.write_text(
            STUDY.format(launch=launch, strategy=strategy, workers=self.workers)
        )
        self.results = root / "studies" / "study"
        self.log = root / "log"
        self.told = 0
        self.environment = os.environ | {
            "SCALESTUDY_SOAK": str(root),
            "TMPDIR": str(root / "tmp"),
            "XDG_RUNTIME_DIR": str(root / "run"),
            "COLUMNS": "200",
        }

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a Scalestudy command; its output goes to the scene's log."""
        command = [
            "env",
            "--default-signal=INT",
            sys.executable,
            "-m",
            "scalestudy",
            *arguments,
        ]
        self.told = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.root,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def run(self) -> subprocess.Popen[bytes]:
        return self.start("run", str(self.study), "--no-report")

    def ended(self, process: subprocess.Popen[bytes], seconds: float = PATIENCE) -> int:
        """Wait for a command and return its exit code.

        Raises:
            StuckError: If it does not end in time; all processes are killed then.
        """
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.end_all()
            process.wait()
            raise StuckError("the end of the command") from None

    def said(self) -> str:
        """Output of the last command."""
        with open(self.log, "rb") as log:
            log.seek(self.told)
            return log.read().decode(errors="replace")

    def situation(self) -> str:
        """Processes, logs and reached phases, for debugging."""
        lines = [
            f"{each.pid} (rank {each.rank}, below {each.parent}): {each.command}"
            for each in self.processes()
        ]
        run = self.newest_run()
        files = sorted(run.path.rglob("*")) if run else []
        for file in files:
            if file.suffix in (".log", ".json") and file.parent != (
                run.path if run else None
            ):
                lines.append(f"{file.name}: {file.read_text(errors='replace')[-600:]}")
        reached = sorted(each.name for each in self.place.iterdir())
        return "\n".join([f"reached {reached}", *lines, self.said()[-600:]])

    def hold(self, phase: str) -> None:
        """Make every run pause in a phase."""
        (self.place / f"hold-{phase}").touch()

    def release(self) -> None:
        """Resume all runs, and forget the phases reached."""
        for file in self.place.iterdir():
            file.unlink()

    def let_go(self) -> None:
        """Resume all runs."""
        for phase in PHASES:
            (self.place / f"hold-{phase}").unlink(missing_ok=True)

    def forget(self) -> None:
        """Remove all results, so that the next run starts from the beginning."""
        shutil.rmtree(self.results, ignore_errors=True)

    def reached(self, phase: str) -> bool:
        """Whether the process that leads the run has reached a phase."""
        return (self.place / f"reached-{phase}-0").exists()

    def processes(self) -> list[Process]:
        """All living processes of the scene."""
        return list(_processes(str(self.root)))

    def worker(self, rank: int) -> Process | None:
        """The process that computes for a rank: the child of its supervisor."""
        found = [
            each
            for each in self.processes()
            if each.rank == rank
            and "scalestudy.worker" in each.command
            and "srun" not in each.command
        ]
        below = [
            each for each in found if each.parent in {other.pid for other in found}
        ]
        return below[0] if below else None

    def end_all(self) -> None:
        """Kill the processes that are left."""
        for process in self.processes():
            process.send(signal.SIGKILL)

    def status(self) -> Standing | None:
        """State of the point as reported by `status`; None if there is no study folder."""
        if not self.results.exists():
            return None
        command = [
            sys.executable,
            "-m",
            "scalestudy",
            "status",
            str(self.results),
            "--format",
            "json",
        ]
        told = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False
        )
        if told.returncode:
            raise RuntimeError(told.stderr.strip())
        (point,) = json.loads(told.stdout)["points"]
        run = RunFolder(point["run"]) if point["run"] else None
        return Standing(point["state"], point["reason"] or "", run)

    def learnt(self) -> tuple[str, list[tuple[int, int, float]]]:
        """Result of the finished run: digest of its weights, and epochs, samples and losses."""
        run = self.newest_run()
        result = run.result() if run else None
        assert run
        assert result
        return result.weights_digest, [
            (each.epoch, each.samples, each.loss) for each in run.epochs()
        ]

    def newest_run(self) -> RunFolder | None:
        """The most recent run folder."""
        runs = sorted(
            self.results.glob("points/*/run-*"), key=lambda path: path.stat().st_mtime
        )
        return RunFolder(runs[-1]) if runs else None

    def left_processes(self) -> list[str]:
        """Processes that outlive their run; they are killed."""
        try:
            wait_for(lambda: not self.processes(), "the end of all processes", 15)
        except StuckError:
            left = [
                f"process {each.pid}: {each.command[:80]}" for each in self.processes()
            ]
            self.end_all()
            return left
        return []

    def leftovers(self) -> list[str]:
        """Temporary files that outlive their run."""
        files = [
            str(path) for path in (self.root / "studies").rglob(".*") if path.is_file()
        ]
        files += [
            str(path) for path in (self.root / "cache").rglob(".*.*") if path.is_file()
        ]
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
            command = (
                (entry / "cmdline")
                .read_bytes()
                .replace(b"\0", b" ")
                .decode(errors="replace")
            )
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
