"""What each strategy is, without a framework: the one table that every room reads.

A strategy of another package adds a row by an entry point in the group "scalestudy.strategies" that names a
`Traits`. How a strategy works stands where `Traits.join` says.
"""

from dataclasses import dataclass
from typing import Literal

from scalestudy.registry import Registry


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
        synchronous: Whether every step waits for all workers' gradients.
        meets: How its processes find each other: by "tensorflow" (TF_CONFIG, gRPC), by "horovod", or not.
        library: Library that it needs beside the engine, by the name of its package.
        engines: Engines that it works with.
        most_workers: Most workers that it can have by its nature; None for any number.
        plain: Whether one worker of it is plain training on one device, which others are held against.
        stands_for: Strategies that do the work where this is a name for several: for one worker, for
            several on one node, and across nodes.
        join: "module:function" that joins the other workers; "" where others do the work.
        aliases: What it is called in names of others' files, in small letters.
        colour: Of its figures, "#RRGGBB".
        shape: Of its marks, as Vega-Lite names it.
    """

    name: str
    summary: str
    processes: Literal["one", "per-worker"] = "one"
    devices: Literal["one", "per-worker"] = "one"
    spans_nodes: bool = False
    timed: bool = True
    synchronous: bool = True
    meets: Literal["tensorflow", "horovod"] | None = None
    library: str | None = None
    engines: tuple[str, ...] = ("tensorflow",)
    most_workers: int | None = None
    plain: bool = False
    stands_for: tuple[str, str, str] | None = None
    join: str = ""
    aliases: tuple[str, ...] = ()
    colour: str | None = None
    shape: str | None = None

    @property
    def one_process(self) -> bool:
        """Whether one process holds all workers."""
        return self.processes == "one"

    @property
    def one_device(self) -> bool:
        """Whether one device computes all workers."""
        return self.one_process and self.devices == "one"

    def processes_of(self, workers: int) -> int:
        """Processes of a run."""
        return 1 if self.one_process else workers

    def workers_at_once(self, workers: int) -> int:
        """Workers of one process that compute at the same time, each on its own device and cores."""
        return workers if self.one_process and not self.one_device else 1

    def implementation(self, workers: int, nodes: int) -> str:
        """Name of the strategy that does the work."""
        if self.stands_for is None:
            return self.name
        one, on_one_node, across = self.stands_for
        return one if workers == 1 else on_one_node if nodes == 1 else across


SINGLE = Traits(
    "single", "one worker, alone", most_workers=1, plain=True,
    join="scalestudy.engines.tensorflow.strategies.single:join", colour="#6E7781", shape="diamond",
)  # fmt: skip
NATIVE = Traits(
    "native", "TensorFlow's own: single, mirrored or multiworker, as the workers ask for",
    plain=True, spans_nodes=True, stands_for=("single", "mirrored", "multiworker"), colour="#0072B2",
    shape="circle",
)  # fmt: skip
MIRRORED = Traits(
    "mirrored", "TensorFlow's MirroredStrategy: the devices of one node, in one process",
    devices="per-worker", join="scalestudy.engines.tensorflow.strategies.mirrored:join", aliases=("mirroredstrategy",),
    colour="#009E73", shape="square",
)  # fmt: skip
MULTIWORKER = Traits(
    "multiworker", "TensorFlow's MultiWorkerMirroredStrategy: a process for each worker",
    processes="per-worker", spans_nodes=True, meets="tensorflow",
    join="scalestudy.engines.tensorflow.strategies.multiworker:join", aliases=("mwms", "multiworkermirrored"),
    colour="#CC79A7", shape="triangle-up",
)  # fmt: skip
HOROVOD = Traits(
    "horovod", "Horovod: a process for each worker, all-reduce by Gloo, NCCL or MPI",
    processes="per-worker", spans_nodes=True, meets="horovod", library="horovod",
    join="scalestudy.engines.tensorflow.strategies.horovod:join", aliases=("hvd",), colour="#D55E00", shape="triangle-down",
)  # fmt: skip
VIRTUAL = Traits(
    "virtual", "any number of workers, computed one after another on one device", timed=False,
    join="scalestudy.engines.tensorflow.strategies.virtual:join", colour="#E69F00", shape="cross",
)  # fmt: skip

REGISTRY: Registry[Traits] = Registry(
    "scalestudy.strategies",
    {
        each.name: f"{__name__}:{each.name.upper()}"
        for each in (SINGLE, NATIVE, MIRRORED, MULTIWORKER, HOROVOD, VIRTUAL)
    },
)
DEFAULT = NATIVE.name
ACROSS = MULTIWORKER.name
"""The strategy by which a check starts a process for each worker."""


def traits(name: str) -> Traits:
    """The row of a strategy.

    Raises:
        KeyError: There is none.
    """
    return REGISTRY.get(name)


def swept_names() -> list[str]:
    """Names that a study file may sweep, in the order in which they are shown."""
    return REGISTRY.names()


def working_names() -> list[str]:
    """Names of those that do the work themselves."""
    return [name for name in REGISTRY.names() if traits(name).stands_for is None]


def references() -> tuple[str, ...]:
    """Strategies whose one worker is plain training on one device, so that others may be held against it."""
    return tuple(name for name in REGISTRY.names() if traits(name).plain)


def is_timed(name: str) -> bool:
    """Whether times of this strategy count; of one that is not installed here, they do."""
    return traits(name).timed if name in REGISTRY else True


def position(name: str) -> int:
    """Place of a strategy in tables and legends; unknown ones come last."""
    names = REGISTRY.names()
    return names.index(name) if name in names else len(names)
