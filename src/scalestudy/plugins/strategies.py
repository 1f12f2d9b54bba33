"""The strategies of all engines (`EngineTraits.strategies`), described without importing a framework.

A package adds a strategy to an engine by an entry point in the group "scalestudy.strategies".
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from scalestudy.util.registry import Registry

if TYPE_CHECKING:
    from scalestudy.plugins.engines import EngineTraits

ENGINES: "Registry[EngineTraits]" = Registry("scalestudy.engines")
REGISTRY: "Registry[Traits]" = Registry("scalestudy.strategies", lambda: _of_engines())  # noqa: PLW0108 (defined below)
SCRIPT_STRATEGY = "ddp"
"""Strategy under which scripts run and are recorded; a script itself combines the gradients."""
DEFAULT = "native"


@dataclass(frozen=True)
class Rendezvous:
    """How the processes of a strategy find each other.

    Attributes:
        name: Name by which its engine knows it.
        secret: Whether the processes authenticate with the run's secret, so that one is needed.
        unproxied: Whether their traffic must bypass the HTTP proxies of the environment.
        obeys: Whether a process does what anybody asks who reaches its port, so that it must not be reached.
    """

    name: str
    secret: bool = False
    unproxied: bool = False
    obeys: bool = False


@dataclass(frozen=True)
class Traits:
    """What is known about a strategy without importing a framework.

    Attributes:
        name: Name in a study file.
        summary: A short description.
        processes: "one" for all workers, or one "per-worker".
        devices: Devices that one process computes on: "one", or one "per-worker" of its workers.
        spans_nodes: Whether its workers may be on several nodes.
        timed: Whether its times count for speed-up; False if one device computes all workers.
        synchronous: Whether all workers take a step together. Otherwise more workers compute different
            updates, not the same ones sooner, and there is no speed-up.
        serve: "module:function" with which the other processes serve rank 0 if it is not synchronous.
        summed_by: Library that moves gradients between workers, for people; "" if none does.
        xla: Whether XLA can compile a worker's computation.
        rendezvous: How its processes find each other; None for a single process.
        compressions: Values of `launch.compression` that it supports, besides "none".
        library: Package of the library that it needs besides the engine.
        engine: The engine that it belongs to.
        most_workers: Largest number of workers that it supports; None for any number.
        plain: Whether its one worker is plain training on one device, the baseline of other strategies.
        stands_for: The strategies that do the work if this is a name for several: for one worker, for
            several on one node, and across nodes.
        join: "module:function" that joins the other workers; "" if other strategies do the work.
        aliases: Names that other tools have for it, in lower-case letters alone; see `named`.
        script_classes: Classes that a script names to use it.
        starts_scripts: Whether `launch` can start a script that uses it.
        share_line: What a script writes to give each worker its share of the samples; "" if none does.
        join_line: What it writes to combine the gradients of the workers.
        joined_by: Ends of other names than its classes and library, of which such a script has one.
        mark: Colour ("#RRGGBB") and shape (as named in Vega-Lite) of its points in figures.
    """

    name: str
    summary: str
    engine: str
    processes: Literal["one", "per-worker"] = "one"
    devices: Literal["one", "per-worker"] = "one"
    spans_nodes: bool = False
    timed: bool = True
    synchronous: bool = True
    serve: str = ""
    summed_by: str = ""
    xla: bool = True
    rendezvous: Rendezvous | None = None
    compressions: tuple[str, ...] = ()
    library: str | None = None
    most_workers: int | None = None
    plain: bool = False
    stands_for: tuple[str, str, str] | None = None
    join: str = ""
    aliases: tuple[str, ...] = ()
    script_classes: tuple[str, ...] = ()
    starts_scripts: bool = False
    share_line: str = ""
    join_line: str = ""
    joined_by: tuple[str, ...] = ()
    mark: tuple[str, str] | None = None

    @property
    def one_process(self) -> bool:
        """Whether one process holds all workers."""
        return self.processes == "one"

    @property
    def one_device(self) -> bool:
        """Whether one device computes all workers."""
        return self.one_process and self.devices == "one"

    @property
    def has_speed_up(self) -> bool:
        """Whether more workers do the same work sooner."""
        return self.timed and self.synchronous

    def processes_of(self, workers: int) -> int:
        """Number of processes of a run."""
        return 1 if self.one_process else workers

    def workers_at_once(self, workers: int) -> int:
        """Workers of one process that compute at the same time, each on its own device and cores."""
        return workers if self.one_process and not self.one_device else 1

    def implementation(self, workers: int, nodes: int) -> str:
        """Name of the strategy that does the work."""
        if self.stands_for is None:
            return self.name
        one, on_one_node, across = self.stands_for
        if workers == 1:
            return one
        return on_one_node if nodes == 1 else across


def _of_engines() -> dict[str, Traits]:
    rows = {}
    for engine in ENGINES.items():
        for row in engine.strategies:
            rows[row.name] = row
    return rows


def traits(name: str) -> Traits:
    """Traits of a strategy; raises KeyError."""
    return REGISTRY.get(name)


def swept_names() -> list[str]:
    """Names that a study file may sweep, in the order in which they are shown."""
    return REGISTRY.names()


def of_engine(engine: str) -> list[Traits]:
    """The strategies of an engine from any package, in the order in which they are shown."""
    return [row for row in REGISTRY.items() if row.engine == engine]


def named(word: str) -> str | None:
    """The strategy that other tools call `word`, as `tf.distribute.MirroredStrategy`; None if there is none.

    The class of a strategy is its name in Keras, TensorFlow, Horovod and PyTorch.
    """
    last = word.rpartition(".")[2].partition("(")[0]
    letters = re.sub(r"[^a-z]", "", last.lower()).removesuffix("strategy")
    for row in REGISTRY.items():
        if letters in (row.name.replace("-", ""), *row.aliases):
            return row.name
    return None


def working_names() -> list[str]:
    """Names of the strategies that do the work themselves."""
    return [row.name for row in REGISTRY.items() if row.stands_for is None]


def references(engine: str | None) -> tuple[str, ...]:
    """Strategies of an engine whose one worker is plain training on one device, the common baseline.

    None, for numbers from other tools, stands for every engine.
    """
    names = []
    for row in REGISTRY.items():
        if row.plain and engine in (None, row.engine):
            names.append(row.name)
    return tuple(names)


def is_timed(name: str) -> bool:
    """Whether times of this strategy count for speed-up; True for a strategy that is not installed here."""
    return name not in REGISTRY or traits(name).timed


def is_synchronous(name: str) -> bool:
    """Whether workers of this strategy take steps together; True for one that is not installed here."""
    return name not in REGISTRY or traits(name).synchronous


def position(name: str) -> int:
    """Place of a strategy in tables and legends; unknown ones come last."""
    names = REGISTRY.names()
    return names.index(name) if name in names else len(names)
