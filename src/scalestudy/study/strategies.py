"""What each strategy is, without a framework: the rows of every engine (`EngineTraits.strategies`).

Another package adds a strategy to an engine by an entry point in the group "scalestudy.strategies".
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from scalestudy.util.registry import Registry

Role = Literal["worker", "parameter-server", "coordinator"]


@dataclass(frozen=True)
class Rendezvous:
    """How the processes of a strategy find each other.

    Attributes:
        name: As its engine knows it.
        secret: Whether they know each other by the run's secret, which it asks for.
        unproxied: Whether their traffic would go to the HTTP proxies of the environment.
        launcher: The launcher that starts processes for this way alone; "" where there is none.
    """

    name: str
    secret: bool = False
    unproxied: bool = False
    launcher: str = ""


@dataclass(frozen=True)
class Traits:
    """What there is to know of a strategy before any framework is imported.

    Attributes:
        name: As written in a study file.
        summary: What it is, in a few words.
        processes: "one" that holds all workers, or one "per-worker".
        devices: Devices that one process computes on: "one", or one "per-worker" of those it holds.
        spans_nodes: Whether its workers may be on several nodes.
        timed: Whether its times say something about speed-up. Not where one device computes all workers.
        synchronous: Whether all workers take a step together. Where they do not, more workers compute other
            updates, not the same ones sooner: there is no speed-up.
        summed_by: What moves gradients between workers, for people; "" where nothing does.
        xla: Whether XLA can compile what a worker computes.
        serve: "module:function" by which a process of a run without common steps lets its coordinator compute
            in it; "" where workers take steps together.
        loop: "module:function" that computes a process's part of a run, as `training.run.run` does: another
            one where there is no step that all workers take together.
        roles: Roles of its processes that are no workers; they have the last ranks.
        rendezvous: How its processes find each other; None where there is one.
        accumulates: Whether its workers can compute a slice in micro-batches (`train.accumulate`).
        averages_weights: Whether its workers can have weights of their own (`train.local_steps`).
        compressions: Values of `launch.compression`, beside "none", in which it can sum gradients.
        library: Library that it needs beside the engine, by the name of its package.
        engine: The engine that it belongs to.
        most_workers: Most workers that it can have by its nature; None for any number.
        plain: Whether one worker of it is plain training on one device, which others are held against.
        stands_for: Strategies that do the work where this is a name for several: for one worker, for
            several on one node, and across nodes.
        join: "module:function" that joins the other workers; "" where others do the work.
        aliases: What it is called in names of others' files, in small letters.
        colour: Of its figures, "#RRGGBB".
        shape: Of its marks, as Vega-Lite names it.
        common_name: What else a study that names the engine may call it: engines share these.
    """

    name: str
    summary: str
    engine: str
    processes: Literal["one", "per-worker"] = "one"
    devices: Literal["one", "per-worker"] = "one"
    spans_nodes: bool = False
    timed: bool = True
    synchronous: bool = True
    summed_by: str = ""
    xla: bool = True
    serve: str = ""
    loop: str = "scalestudy.training.run:run"
    roles: tuple[Role, ...] = ()
    rendezvous: Rendezvous | None = None
    accumulates: bool = False
    averages_weights: bool = False
    compressions: tuple[str, ...] = ()
    library: str | None = None
    most_workers: int | None = None
    plain: bool = False
    stands_for: tuple[str, str, str] | None = None
    join: str = ""
    aliases: tuple[str, ...] = ()
    colour: str | None = None
    shape: str | None = None
    common_name: str = ""

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
        """Processes of a run."""
        return len(self.roles_of(workers))

    def roles_of(self, workers: int) -> tuple[Role, ...]:
        """Role of each process of a run, by its rank."""
        worker: Role = "worker"
        return (*[worker] * (1 if self.one_process else workers), *self.roles)

    def workers_at_once(self, workers: int) -> int:
        """Workers of one process that compute at the same time, each on its own device and cores."""
        return workers if self.one_process and not self.one_device else 1

    def implementation(self, workers: int, nodes: int) -> str:
        """Name of the strategy that does the work."""
        if self.stands_for is None:
            return self.name
        one, on_one_node, across = self.stands_for
        return one if workers == 1 else on_one_node if nodes == 1 else across


def _of_engines() -> dict[str, Traits]:
    from scalestudy.study.engines import REGISTRY as ENGINES  # which know strategies

    return {row.name: row for name in ENGINES.names() for row in ENGINES.get(name).strategies}


REGISTRY: Registry[Traits] = Registry("scalestudy.strategies", _of_engines)
DEFAULT = "native"


def traits(name: str) -> Traits:
    """The row of a strategy; raises KeyError."""
    return REGISTRY.get(name)


def swept_names() -> list[str]:
    """Names that a study file may sweep, in the order in which they are shown."""
    return REGISTRY.names()


def swept_words() -> list[str]:
    """What a study file may call them: names, then common names that are nobody's name."""
    common = (traits(name).common_name for name in REGISTRY.names())
    return list(filter(None, dict.fromkeys((*REGISTRY.names(), *common))))


def of_engine(engine: str) -> list[Traits]:
    """The strategies of an engine, whoever brought them, in the order in which they are shown."""
    return [row for row in map(traits, REGISTRY.names()) if row.engine == engine]


def named(word: str, engines: Iterable[str]) -> dict[str, str]:
    """What a word of a study file means under each of these engines that knows it: strategies by engine."""
    found = {}
    for engine in engines:
        rows = of_engine(engine)
        names = {row.common_name: row.name for row in reversed(rows)} | {row.name: row.name for row in rows}
        if word in names:
            found[engine] = names[word]
    return found


def working_names() -> list[str]:
    """Names of those that do the work themselves."""
    return [name for name in REGISTRY.names() if traits(name).stands_for is None]


def references(engine: str | None) -> tuple[str, ...]:
    """Strategies of an engine whose one worker is plain training on one device: others' baseline.

    Args:
        engine: Its name; None, of numbers that were measured elsewhere, takes those of every engine.
    """
    rows = [traits(name) for name in REGISTRY.names()]
    return tuple(row.name for row in rows if row.plain and engine in (None, row.engine))


def is_timed(name: str) -> bool:
    """Whether times of this strategy count; of one that is not installed here, they do."""
    return traits(name).timed if name in REGISTRY else True


def is_synchronous(name: str) -> bool:
    """Whether workers of this strategy take steps together; of one that is not installed here, they do."""
    return traits(name).synchronous if name in REGISTRY else True


def position(name: str) -> int:
    """Place of a strategy in tables and legends; unknown ones come last."""
    names = REGISTRY.names()
    return names.index(name) if name in names else len(names)
