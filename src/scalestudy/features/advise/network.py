"""The network of larger runs, stated or timed by a check, and the costs of all-reduces over its links.

A message of S bytes takes α + S/B over a link (Hockney, "The communication challenge for MPI", 1994). A rank
sends and receives at the same time. Sources of the costs:

- ring: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69
  (2009). With ranks ordered by node, a node sends one chunk per step, so its card carries one ring.
- tree: two binary trees, each with half of the data: Sanders, Speck and Träff, "Two-tree algorithms for
  full bandwidth broadcast, reduction and scan", Parallel Computing 35 (2009). NCCL uses them besides rings.

Cost functions accept and return numbers or arrays of draws, in seconds and bytes.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, exp, log, log2, sqrt
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scalestudy.plugins.engines import engine_traits
from scalestudy.plugins.strategies import traits
from scalestudy.util.errors import UserError
from scalestudy.util.files import contents
from scalestudy.util.units import bandwidth_of, latency_of

Draws = NDArray[np.float64]
"""Shape [draws]."""
NORMAL_95 = 1.959964
"""Half of the standard normal's 95 % interval."""


@dataclass(frozen=True)
class Uncertain:
    """A best guess and its range.

    A "factor" is positive and log-normal, and its range holds 95 %. A "share" is uniform over its range.
    """

    value: float
    low: float
    high: float
    kind: Literal["factor", "share"] = "factor"

    def draws(self, random: np.random.Generator, count: int) -> Draws:
        """Draw `count` values. The state of `random` advances equally for any range, so estimates compare."""
        if self.kind == "share":
            return self.low + (self.high - self.low) * random.random(count)
        normal = random.standard_normal(count)
        if self.value == 0 or self.low == self.high:
            return np.full(count, self.value)
        return self.value * np.exp(normal * log(self.high / self.low) / (2 * NORMAL_95))


def exactly(value: float) -> Uncertain:
    """Return a number without uncertainty."""
    return Uncertain(value, value, value)


def about(value: float, factor: float) -> Uncertain:
    """Return a positive number that is within this factor, up or down, with a probability of 95 %."""
    return Uncertain(value, value / factor, value * factor)


def between(low: float, high: float) -> Uncertain:
    """Return a number of which only the lower and upper ends are known."""
    return Uncertain((low + high) / 2, low, high, "share")


Number = Any
"""A float, or an array of draws."""
BEST_FIT = 1.1
"""Smallest uncertainty factor of a fitted link, because networks change within hours."""


class Link(NamedTuple):
    """A link between two ranks: seconds per step of an all-reduce, and bytes per second in each direction.

    `overhead` is the time of an all-reduce that does not depend on the number of ranks (call, cycle,
    negotiation), in seconds.
    """

    latency: Number
    bandwidth: Number
    overhead: Number = 0.0


@dataclass(frozen=True)
class Fabric:
    """The links of a run on `nodes` nodes with at most `local` workers each.

    All workers of a node share the link between nodes: one network card, or all of them together.
    """

    nodes: int
    local: int
    across: Link
    within: Link

    @property
    def slowest(self) -> Link:
        """The link that limits a step which uses all links at once."""
        if self.nodes == 1:
            return self.within
        if self.local == 1:
            return self.across
        return Link(
            np.maximum(self.across.latency, self.within.latency),
            np.minimum(self.across.bandwidth, self.within.bandwidth),
            np.maximum(self.across.overhead, self.within.overhead),
        )


def ring(size: Number, ranks: int, fabric: Fabric) -> Number:
    """Return the seconds of a ring all-reduce: 2(n − 1) steps of S/n bytes each."""
    if ranks < 2:
        return 0.0
    link, steps = fabric.slowest, 2 * (ranks - 1)
    return link.overhead + steps * link.latency + steps / ranks * size / link.bandwidth


def tree(size: Number, ranks: int, fabric: Fabric) -> Number:
    """Return the seconds for two binary trees over nodes and within them: 2 log n latencies, 2 S per link."""
    if ranks < 2:
        return 0.0
    link = fabric.slowest
    across = _levels(fabric.nodes) * fabric.across.latency
    within = _levels(min(fabric.local, ranks)) * fabric.within.latency
    return link.overhead + 2 * (across + within) + 2 * size / link.bandwidth


def ring_or_tree(size: Number, ranks: int, fabric: Fabric) -> Number:
    """Return the faster of the two, as NCCL (`NCCL_ALGO`) and MPI choose with their own models."""
    return np.minimum(ring(size, ranks, fabric), tree(size, ranks, fabric))


def _levels(count: int) -> int:
    return ceil(log2(count)) if count > 1 else 0


ALGORITHMS: dict[str, Callable[[Number, int, Fabric], Number]] = {
    "ring": ring,
    "tree": tree,
    "ring-or-tree": ring_or_tree,
}


@dataclass(frozen=True)
class KnownLink:
    """A link whose properties are known within ranges.

    Attributes:
        small: Seconds of an all-reduce of zero bytes over `ranks` ranks.
        ranks: Number of ranks of `small`; 0 if `small` is the latency of a single step.
        hops: Share of `small` that grows with the number of steps; the rest is constant.
        bandwidth: Bytes per second.
        source: Where the numbers are from, for display.
    """

    small: Uncertain
    ranks: int
    hops: Uncertain
    bandwidth: Uncertain
    source: str

    def of(self, small: Number, hops: Number, bandwidth: Number) -> Link:
        """Return the link for draws of its three numbers."""
        if self.ranks == 0:
            return Link(small, bandwidth)
        return Link(hops * small / (2 * (self.ranks - 1)), bandwidth, (1 - hops) * small)


class TimedAllReduce(NamedTuple):
    """An all-reduce timed by `scalestudy check`."""

    collective: str
    ranks: int
    hosts: int | None
    bytes: int
    seconds: float


def fit_link(rows: Sequence[TimedAllReduce], source: str, near: float | None = None) -> KnownLink | None:
    """Fit a link to timed all-reduces; None if there are fewer than two sizes or no bandwidth can be fitted.

    The fit of t(S) = c + 2(n − 1) α + 2(n − 1)/n S/B minimises squared relative errors, with non-negative
    parts. A single number of ranks cannot separate c from α. Then the share that grows with the ranks is
    anywhere between zero and all of the time of the smallest message. `source` is where the rows are from,
    for display. Sizes weigh less, the more factors of 4 they are away from `near`, the bytes of typical
    messages; if it is None, all weigh the same.
    """
    from scipy.optimize import nnls

    used = [row for row in rows if row.ranks > 1 and row.seconds > 0]
    if len({row.bytes for row in used}) < 2:
        return None
    ranks = np.array([float(row.ranks) for row in used])
    sizes = np.array([float(row.bytes) for row in used])
    seconds = np.array([row.seconds for row in used])
    weights = np.ones(len(used)) if near is None else 1 / (1 + np.abs(np.log(sizes / near)) / log(4))
    several = len(set(ranks)) > 1
    columns = [2 * (ranks - 1), 2 * (ranks - 1) / ranks * sizes, *([np.ones(len(used))] * several)]
    table = np.stack(columns, axis=1) / seconds[:, None]
    scales, roots = table.max(axis=0), np.sqrt(weights)
    parts = nnls(table / scales * roots[:, None], roots)[0] / scales
    latency, rate = float(parts[0]), float(parts[1])
    if rate <= 0:
        return None
    residuals = np.log(np.maximum(table @ parts, 1e-6))
    squares = float((weights * residuals) @ residuals / weights.sum() * len(used))
    factor = max(BEST_FIT, exp(NORMAL_95 * sqrt(squares / max(1, len(used) - len(columns)))))
    most = int(ranks.max())
    growing = 2 * (most - 1) * latency
    small = growing + (float(parts[2]) if several else 0.0)
    hops = exactly(growing / small if small else 0.0) if several else between(0.0, 1.0)
    return KnownLink(about(small, factor), most, hops, about(1 / rate, factor), source)


CHOOSES = ("nccl", "horovod-nccl", "horovod-mpi")
"""Collectives that use the faster of a ring and a tree. TensorFlow's own collectives and Gloo use rings."""
STATED_SHARE = (0.7, 1.0)
"""Share of a network card's nominal bandwidth that collectives reach (headers, protocols, other traffic)."""
STATED_LATENCY = 2.0
"""Factor within which a stated latency is accurate."""
GRPC = Uncertain(1.0e9, 0.5e9, 2.0e9)
SOFTWARE = {"ring": GRPC, "auto": GRPC, "horovod-gloo": Uncertain(1.5e9, 0.5e9, 4.5e9)}
"""Maximum bytes per second of a collective's own code, used if no check has timed it. gRPC and Gloo copy
every message through TCP with one thread or a few."""
SOFTWARE_LATENCY = {
    "ring": 1e-4,
    "auto": 1e-4,
    "horovod-gloo": 5e-5,
    "horovod-mpi": 1e-5,
    "nccl": 1e-5,
    "horovod-nccl": 1e-5,
}
"""Seconds of a collective's own code per step, used likewise."""
FORMS = (
    'a network as "100Gbit,2us,per_node=4" (bandwidth and latency between nodes; node_bandwidth=300GB and'
    " node_latency=5us within one), or a file of `scalestudy check --format json`"
)


class StatedLink(NamedTuple):
    """A stated link: bytes per second, and seconds for the smallest message."""

    bandwidth: float
    latency: float


@dataclass(frozen=True)
class KnownNetwork:
    """Known properties of the network: timed all-reduces with their sources, and stated links."""

    measured: tuple[TimedAllReduce, ...] = ()
    across: StatedLink | None = None
    within: StatedLink | None = None
    per_node: int | None = None
    sources: tuple[str, ...] = ()

    @property
    def workers_per_node(self) -> int:
        """The stated number, else the largest number of ranks per host of the checks, else one."""
        if self.per_node is not None:
            return self.per_node
        return max((row.ranks // row.hosts for row in self.measured if row.hosts), default=1)


class Route(NamedTuple):
    """How a strategy's workers exchange gradients: collective (as named by checks), algorithm and links.

    `across` is the link between nodes and `within` the one within a node; None if unknown.
    """

    collective: str
    algorithm: str
    across: KnownLink | None
    within: KnownLink | None

    @property
    def known(self) -> bool:
        """Whether at least one link is known."""
        return bool(self.across or self.within)


def route_of(network: KnownNetwork, collectives: Iterable[str], near: float | None = None) -> Route:
    """Return the links that a strategy will use.

    `collectives` are those that it may use, best first; the first timed one is chosen. `near` are the bytes
    of the messages to exchange, if known.
    """
    names = list(collectives)
    timed = {row.collective for row in network.measured}
    name = next((name for name in names if name in timed), names[0])
    rows = [row for row in network.measured if row.collective == name]
    source = " and ".join(network.sources)
    across = fit_link([row for row in rows if (row.hosts or 1) > 1], source, near)
    within = fit_link([row for row in rows if (row.hosts or 1) == 1], source, near)
    if network.across is not None:
        across = _link(network.across, name)
    if network.within is not None:
        within = _link(network.within, name)
    return Route(name, "ring-or-tree" if name in CHOOSES else "ring", across, within)


def _link(stated: StatedLink, collective: str) -> KnownLink:
    low, high = (share * stated.bandwidth for share in STATED_SHARE)
    wire = Uncertain((low + high) / 2, low, high)
    cap = SOFTWARE.get(collective)
    bandwidth = cap if cap is not None and cap.value < wire.value else wire
    step = about(stated.latency + SOFTWARE_LATENCY.get(collective, 0.0), STATED_LATENCY)
    return KnownLink(step, 0, exactly(1.0), bandwidth, "stated with --network")


def collectives_of(implementation: str, communication: str | None, *, gpu: bool) -> tuple[str, ...]:
    """Return the collectives that a strategy's workers may use, best first.

    Workers within one process are assumed to use those of their engine's processes, as no timings exist.
    `implementation` is the strategy that does the work, `communication` that of [launch] or the value that a
    run recorded.
    """
    engine = engine_traits(traits(implementation).engine)
    usable = [collective for collective in engine.collectives if collective.of_use(gpu=gpu)]
    sums = [collective for collective in usable if collective.strategy.name == implementation]
    sums = sums or [collective for collective in usable if collective.strategy.name == engine.across]
    asked = [
        collective
        for collective in sums
        if communication in (collective.communication, *collective.also, *collective.built_with)
    ]
    # The engine's table lists preferred collectives later; those that need their own launcher come last.
    rest = list(reversed(sums))
    rest.sort(key=lambda collective: bool(collective.launcher))
    return tuple(dict.fromkeys(collective.name for collective in (*reversed(asked), *rest)))


def network_of(texts: Sequence[str]) -> KnownNetwork:
    """Return the network from the values of `--network`. Stated links take precedence over timed ones.

    The values are in one of the forms in `FORMS`.

    Raises:
        UserError: A value cannot be read.
    """
    measured: list[TimedAllReduce] = []
    stated: dict[str, Any] = {}
    sources = []
    for text in texts:
        if text.endswith(".json") or Path(text).is_dir():
            measured += _timings(Path(text))
            sources.append(Path(text).name)
        else:
            stated |= _stated(text)
    return KnownNetwork(tuple(measured), sources=tuple(sources), **stated)


def _stated(text: str) -> dict[str, Any]:
    names = ("bandwidth", "latency")
    parts = [part.strip().rpartition("=") for part in text.split(",")]
    values = {name or names[min(place, 1)]: value for place, (name, _, value) in enumerate(parts)}
    try:
        stated: dict[str, Any] = {}
        if (count := values.pop("per_node", None)) is not None:
            stated["per_node"] = int(count)
        for link, prefix in (("across", ""), ("within", "node_")):
            pair = values.pop(f"{prefix}bandwidth", None), values.pop(f"{prefix}latency", None)
            if None not in pair:
                stated[link] = StatedLink(bandwidth_of(str(pair[0])), latency_of(str(pair[1])))
            elif any(pair):
                raise ValueError(f"a bandwidth and a latency, not {pair[0] or pair[1]} alone")
        if values or stated.get("per_node", 1) < 1:
            raise ValueError("keys per_node (from 1), node_bandwidth and node_latency")
    except ValueError as error:
        raise UserError(FORMS, f"{text!r} ({error})", "Correct --network.") from None
    return stated


def _timings(path: Path) -> list[TimedAllReduce]:
    """Read the all-reduces timed by a check."""
    file = path / "report.json" if path.is_dir() else path
    try:
        timings = [
            TimedAllReduce(
                str(row["collective"]),
                int(row["ranks"]),
                None if row.get("hosts") is None else int(row["hosts"]),
                int(row["bytes"]),
                float(row["seconds"]),
            )
            for row in json.loads(contents(file))["bandwidth"]
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        raise UserError(FORMS, f"{file}: {reason}", "Correct --network.") from error
    if not timings:
        raise UserError(
            "a check with timed all-reduces",
            f"{file}, without any",
            "Check again with two ranks or more, and without --skip bandwidth.",
        )
    return timings
