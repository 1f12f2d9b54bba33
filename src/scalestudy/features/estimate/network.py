"""What is known of the network that larger runs will use: measured by a check, or as the site states it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from scalestudy.features.estimate.cost import OF_COLLECTIVE
from scalestudy.features.estimate.fit_link import KnownLink, Timed, fit_link
from scalestudy.features.estimate.uncertain import Uncertain, about, exactly
from scalestudy.strategies.collective_table import COLLECTIVES
from scalestudy.study.strategies import ACROSS

STATED_SHARE = Uncertain(0.85, 0.7, 1.0)
"""What collectives reach of the bandwidth that a card's name promises (headers, protocols, other traffic)."""
STATED_LATENCY = 2.0
"""Factor within which a stated latency holds."""
SOFTWARE = {
    "ring": Uncertain(1.0e9, 0.5e9, 2.0e9),
    "auto": Uncertain(1.0e9, 0.5e9, 2.0e9),
    "horovod-gloo": Uncertain(1.5e9, 0.5e9, 4.5e9),
}
"""Bytes per second that a collective's own code moves at most, where no check has measured it: gRPC and Gloo
copy every message through TCP by one thread or a few."""
SOFTWARE_LATENCY = {"ring": 1e-4, "auto": 1e-4, "horovod-gloo": 5e-5, "horovod-mpi": 1e-5, "nccl": 1e-5,
                    "horovod-nccl": 1e-5}  # fmt: skip
"""Seconds of the code of a step, likewise."""


@dataclass(frozen=True)
class Measured:
    """An all-reduce as a check or `topology` has timed it."""

    collective: str
    ranks: int
    hosts: int | None
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Stated:
    """A link as somebody states it: bytes per second, seconds of the smallest message."""

    bandwidth: float
    latency: float
    source: str


@dataclass(frozen=True)
class Network:
    """What is known of it.

    Attributes:
        measured: All-reduces that were timed.
        across: Between nodes, as stated.
        within: Within a node, as stated.
        per_node: Workers of a node.
        storage: Bytes per second of the shared file system; None where nobody says.
        sources: Where the timings are from, for people.
    """

    measured: tuple[Measured, ...] = ()
    across: Stated | None = None
    within: Stated | None = None
    per_node: int | None = None
    storage: float | None = None
    sources: tuple[str, ...] = ()

    @property
    def workers_of_a_node(self) -> int:
        """As said; else as many as the check had on each host; else one."""
        if self.per_node is not None:
            return self.per_node
        known = [row.ranks // row.hosts for row in self.measured if row.hosts]
        return max(known, default=1)


@dataclass(frozen=True)
class Path:
    """How a strategy's workers will exchange.

    Attributes:
        collective: As checks name it.
        algorithm: As `cost.ALGORITHMS` names it.
        across: Between nodes; None where nothing is known of it.
        within: Within a node; likewise.
        notes: What had to stand for what.
    """

    collective: str
    algorithm: str
    across: KnownLink | None
    within: KnownLink | None
    notes: tuple[str, ...] = field(default=())

    @property
    def known(self) -> bool:
        """Whether at least one of its links is."""
        return self.across is not None or self.within is not None


def path_of(
    network: Network, collectives: Iterable[str], algorithm: str | None = None, near: float | None = None
) -> Path:
    """The links that a strategy will use.

    Args:
        network: What is known.
        collectives: Those that it may use, best first: the first that was measured counts.
        algorithm: Of all-reduces; the collective's own when None.
        near: Bytes of the messages that will be exchanged; None where they are not known.
    """
    names = list(collectives)
    seen = {row.collective for row in network.measured}
    name = next((each for each in names if each in seen), names[0])
    rows = [row for row in network.measured if row.collective == name]
    source = " and ".join(network.sources)
    across, within = (
        _fitted([row for row in rows if (row.hosts or 1) > 1], source, near),
        _fitted([row for row in rows if (row.hosts or 1) == 1], source, near),
    )
    if network.across is not None:
        across = _stated(network.across, name)
    if network.within is not None:
        within = _stated(network.within, name)
    notes = []
    if rows == [] and seen:
        notes.append(f"no check has timed {name}")
    return Path(name, algorithm or OF_COLLECTIVE.get(name, "ring"), across, within, tuple(notes))


def _fitted(rows: list[Measured], source: str, near: float | None) -> KnownLink | None:
    return fit_link([Timed(row.ranks, row.bytes, row.seconds) for row in rows], source, near)


def _stated(stated: Stated, collective: str) -> KnownLink:
    wire = Uncertain(
        stated.bandwidth * STATED_SHARE.value,
        stated.bandwidth * STATED_SHARE.low,
        stated.bandwidth * STATED_SHARE.high,
    )
    cap = SOFTWARE.get(collective)
    bandwidth = cap if cap is not None and cap.value < wire.value else wire
    step = about(stated.latency + SOFTWARE_LATENCY.get(collective, 0.0), STATED_LATENCY)
    return KnownLink(step, 0, exactly(1.0), bandwidth, stated.source, measured=False)


def collectives_of(implementation: str, communication: str | None, *, gpu: bool) -> tuple[str, ...]:
    """Collectives that a strategy's workers may sum by, best first.

    Workers of one process are taken to sum as TensorFlow's own processes do, for want of timings of them.

    Args:
        implementation: The strategy that does the work.
        communication: `launch.communication`, or what a run has recorded.
        gpu: Whether workers compute on GPUs.
    """
    usable = [each for each in COLLECTIVES if each.of_use(gpu=gpu)]
    own = [each for each in usable if each.strategy == implementation]
    own = own or [each for each in usable if each.strategy == ACROSS]
    asked = [each for each in own if communication in (each.communication, *each.also, *each.built_with)]
    # Of one need, what is preferred comes later in the table; what needs a launcher of its own comes last.
    latest = own[::-1]
    rest = sorted(latest, key=lambda each: bool(each.launcher))
    return tuple(dict.fromkeys(each.name for each in (*reversed(asked), *rest)))
