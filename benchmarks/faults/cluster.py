"""Faults of jobs, nodes and the controller on the project's own Slurm cluster."""

import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from faults.chain import Learnt, finish, said, struck
from faults.fault import Fault, Outcome
from faults.scene import PHASES, Scene, wait_for

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

from clusters import Cluster

STRATEGIES = ("single", "multiworker", "horovod", "ddp")
CHAIN = 5
SITE = """
account = "research"
cpus_per_node = 4
tasks_per_node = 1
time_limit = "00:10:00"
"""


class ClusterScene(Scene):
    """A scene whose runs are Slurm jobs; every node sees its folder."""

    outlives = True

    def __init__(self, cluster: Cluster, strategy: str, launch: str) -> None:
        lines = f'on = "slurm"\nsite = "site.toml"\n{launch}'
        super().__init__(cluster.folder(f"soak-{strategy}"), strategy, lines)
        self.cluster = cluster
        (self.root / "site.toml").write_text(SITE)
        self.environment = cluster.env | {"SCALESTUDY_SOAK": str(self.root)}
        cluster.scalestudy("data", "prepare", self.study)

    def job(self) -> str:
        """Id of the run's job."""
        run = wait_for(self.newest_run, "a run folder")
        return wait_for(run.job, "its job").job

    def end_all(self) -> None:
        self.cluster.run(
            "scancel", "--user=root", f"--name=study-{self.strategy}", check=False
        )
        super().end_all()


def _of(scene: Scene) -> ClusterScene:
    assert isinstance(scene, ClusterScene)
    return scene


def _rank(number: signal.Signals, words: str | None = None) -> Fault:
    def plant(scene: Scene, draw: random.Random) -> str:
        rank = draw.randrange(scene.processes_of_workers)
        wait_for(lambda: scene.worker(rank), f"rank {rank}").send(number)
        return words or rf"rank {rank}\b.*{number.name}"

    return Fault(f"Slurm: rank {number.name}", plant)


def _stop(scene: Scene, draw: random.Random) -> str:
    rank = draw.randrange(scene.processes_of_workers)
    wait_for(lambda: scene.worker(rank), f"rank {rank}").send(signal.SIGSTOP)
    return rf"rank {rank}\b"


def _scancel(scene: Scene, draw: random.Random) -> str:
    _of(scene).cluster.run("scancel", _of(scene).job())
    return r"cancelled"


def _requeue(scene: Scene, draw: random.Random) -> str:
    """Requeue the job, as when its node is taken away."""
    _of(scene).cluster.run("scontrol", "requeue", _of(scene).job(), check=False)
    return ""


def _node(scene: Scene, draw: random.Random) -> str:
    """Kill a node; Slurm requeues the job, and it continues on another node."""
    cluster = _of(scene).cluster
    name = cluster.run(
        "squeue", "-h", "-j", _of(scene).job(), "-o", "%B"
    ).stdout.strip()
    cluster.kill_node(name)
    _KILLED[scene.root] = name
    return r"node failed|"


def _node_back(scene: Scene) -> None:
    if name := _KILLED.pop(scene.root, ""):
        _of(scene).cluster.start_node(name)


_KILLED: dict[Path, str] = {}


def _controller(scene: Scene, draw: random.Random) -> str:
    """Stop the controller for some seconds while the run ends."""
    cluster = _of(scene).cluster
    cluster.stop_controller()
    threading.Timer(draw.uniform(1, 8), cluster.start_controller).start()
    return "|"


def _launcher(scene: Scene, draw: random.Random) -> str:
    """Kill the command that watches; the job continues without it."""
    for process in scene.processes():
        if " -m scalestudy run" in process.command:
            process.send(signal.SIGKILL)
    return "|"


def _written(words: str, expected: str, name: str) -> Fault:
    def plant(scene: Scene, draw: random.Random) -> str:
        phase = next(each for each in PHASES if (scene.place / f"hold-{each}").exists())
        (scene.place / f"do-{phase}-0").write_text(words)
        return expected

    return Fault(f"Slurm: {name}", plant)


def _removed(scene: Scene, draw: random.Random) -> str:
    import shutil

    run = wait_for(scene.newest_run, "a run folder")
    shutil.rmtree(run.path, ignore_errors=True)
    return r"(?i)removed|no such file|gone|missing|"


FAULTS = [
    _rank(signal.SIGKILL),
    _rank(signal.SIGSEGV),
    Fault("Slurm: rank stopped", _stop, phases=("epoch",)),
    Fault("Slurm: scancel", _scancel),
    Fault("Slurm: requeued", _requeue),
    Fault("Slurm: node killed", _node, _node_back),
    Fault("Slurm: controller away", _controller),
    Fault("Slurm: watcher killed", _launcher, by_launcher=True),
    Fault("Slurm: run folder removed", _removed),
    _written("import sys; sys.exit(3)", r"(?i)exit.*3", "task sys.exit(3)"),
    _written("raise ValueError('planted')", r"planted", "task raises"),
]


def chains_on_slurm(
    faults: int, seed: int, launch: str, reference: Callable[[str], Learnt]
) -> list[Outcome]:
    """Inject that many faults into jobs on a new cluster."""
    draw = random.Random(seed)
    with _cluster() as cluster, ThreadPoolExecutor(2) as pool:
        chains = list(_drawn(faults, draw))
        run = lambda each: _chain(cluster, launch, *each, reference)  # noqa: E731
        return [outcome for outcomes in pool.map(run, chains) for outcome in outcomes]


def _drawn(
    faults: int, draw: random.Random
) -> Iterator[tuple[str, list[tuple[Fault, str]], float]]:
    for first in range(0, faults, CHAIN):
        strategy = STRATEGIES[first // CHAIN % len(STRATEGIES)]
        planted = []
        for _ in range(min(CHAIN, faults - first)):
            phase = draw.choice(PHASES)
            planted.append(
                (
                    draw.choice(
                        [each for each in FAULTS if each.suits(strategy, phase)]
                    ),
                    phase,
                )
            )
        yield strategy, planted, draw.random()


def _chain(
    cluster: Cluster,
    launch: str,
    strategy: str,
    planted: Sequence[tuple[Fault, str]],
    seed: float,
    reference: Callable[[str], Learnt],
) -> list[Outcome]:
    draw, learnt = random.Random(seed), reference(strategy)
    scene = ClusterScene(cluster, strategy, launch)
    outcomes = [
        said(struck(scene, fault, phase, draw, learnt)) for fault, phase in planted
    ]
    whole = Outcome("Slurm: none, to the end", strategy, "all")
    finish(scene, whole, learnt)
    return [*outcomes, said(whole)]


@contextmanager
def _cluster() -> Iterator[Cluster]:
    cluster = Cluster(4, accounting=True)
    try:
        cluster.up()
        yield cluster
    finally:
        cluster.down()
