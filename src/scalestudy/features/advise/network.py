"""The network of larger runs: stated by the user, stated by a site profile, or timed by a check."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from scalestudy.features.advise.all_reduce import KnownLink, TimedAllReduce, fit_link
from scalestudy.features.advise.uncertain import Uncertain, about, exactly
from scalestudy.study.engines import all_collectives, engine_traits
from scalestudy.study.strategies import traits
from scalestudy.util.errors import UserError
from scalestudy.util.files import contents
from scalestudy.util.units import bandwidth_of, latency_of

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
SOFTWARE_LATENCY = {"ring": 1e-4, "auto": 1e-4, "horovod-gloo": 5e-5, "horovod-mpi": 1e-5, "nccl": 1e-5,
                    "horovod-nccl": 1e-5}  # fmt: skip
"""Seconds of a collective's own code per step, used likewise."""
FORMS = (
    'a network as "100Gbit,2us,per_node=4" (bandwidth and latency between nodes; node_bandwidth=300GB and'
    " node_latency=5us within one), the name of a site profile that states it, or a file of `scalestudy"
    " check --format json`"
)


class StatedLink(NamedTuple):
    """A stated link: bytes per second, and seconds for the smallest message."""

    bandwidth: float
    latency: float
    source: str


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

    Args:
        network: The known network.
        collectives: Collectives that it may use, best first. The first timed one is chosen.
        near: Bytes of the messages to exchange; None if unknown.
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
    return KnownLink(step, 0, exactly(1.0), bandwidth, stated.source)


def collectives_of(implementation: str, communication: str | None, *, gpu: bool) -> tuple[str, ...]:
    """Return the collectives that a strategy's workers may use, best first.

    Workers within one process are assumed to use those of their engine's processes, as no timings exist.

    Args:
        implementation: Strategy that does the work.
        communication: `launch.communication`, or the value that a run recorded.
        gpu: Whether workers compute on GPUs.
    """
    engine = engine_traits(traits(implementation).engine)
    usable = [collective for collective in engine.collectives if collective.of_use(gpu=gpu)]
    sums = [collective for collective in usable if collective.strategy == implementation]
    sums = sums or [collective for collective in usable if collective.strategy == engine.across]
    asked = [
        collective
        for collective in sums
        if communication in (collective.communication, *collective.also, *collective.built_with)
    ]
    # The engine's table lists preferred collectives later; those that need their own launcher come last.
    rest = list(reversed(sums))
    rest.sort(key=lambda collective: bool(collective.launcher))
    return tuple(dict.fromkeys(collective.name for collective in (*reversed(asked), *rest)))


def network_of(texts: Sequence[str], base: Path) -> KnownNetwork:
    """Return the network from the values of `--network`. Stated links take precedence over timed ones.

    Args:
        texts: Values in one of the forms in `FORMS`.
        base: Folder to which a site's relative path refers.

    Raises:
        UserError: A value cannot be read, or a site profile states no network.
    """
    measured: list[TimedAllReduce] = []
    stated: dict[str, Any] = {}
    sources = []
    for text in texts:
        if text.endswith(".json") or Path(text).is_dir():
            measured += _timings(Path(text))
            sources.append(Path(text).name)
        elif "," in text or "=" in text or text[:1].isdigit():
            stated |= _stated(text)
        else:
            stated |= _of_site(text, base)
    return KnownNetwork(tuple(measured), sources=tuple(sources), **stated)


def _of_site(name: str, base: Path) -> dict[str, Any]:
    from scalestudy.launch.queue.site import find_site

    site = find_site(name, base)
    source = f"stated by the site profile {site.name}"
    stated: dict[str, Any] = {"per_node": site.machine().workers_per_node(1)}
    for link, bandwidth, latency in (
        ("across", site.network_bandwidth, site.network_latency),
        ("within", site.node_bandwidth, site.node_latency),
    ):
        if bandwidth and latency:
            stated[link] = StatedLink(bandwidth_of(bandwidth), latency_of(latency), source)
    if len(stated) == 1:
        raise UserError(
            "a site profile with network_bandwidth and network_latency",
            f"{site.name} without them",
            'Add them, or describe the network here: --network "100Gbit,2us".',
        )
    return stated


def _stated(text: str) -> dict[str, Any]:
    names = ("bandwidth", "latency")
    parts = [part.strip().rpartition("=") for part in text.split(",")]
    values = {name or names[min(place, 1)]: value for place, (name, _, value) in enumerate(parts)}
    source = "stated with --network"
    try:
        stated: dict[str, Any] = {}
        if (count := values.pop("per_node", None)) is not None:
            stated["per_node"] = int(count)
        for link, prefix in (("across", ""), ("within", "node_")):
            pair = values.pop(f"{prefix}bandwidth", None), values.pop(f"{prefix}latency", None)
            if None not in pair:
                stated[link] = StatedLink(bandwidth_of(str(pair[0])), latency_of(str(pair[1])), source)
            elif any(pair):
                raise ValueError(f"a bandwidth and a latency, not {pair[0] or pair[1]} alone")
        if values or stated.get("per_node", 1) < 1:
            raise ValueError("keys per_node (from 1), node_bandwidth and node_latency")
    except ValueError as error:
        raise UserError(FORMS, f"{text!r} ({error})", "Correct --network.") from None
    return stated


def _timings(path: Path) -> list[TimedAllReduce]:
    """Read the all-reduces timed by a check or by `check --topology`."""
    file = path / "report.json" if path.is_dir() else path
    names = {collective.label: collective.name for collective in all_collectives()}
    try:
        table = json.loads(contents(file))
        if "all_reduce" in table:
            rows = [row | {"hosts": 1, "collective": names[row["collective"]]} for row in table["all_reduce"]]
        else:
            rows = table["bandwidth"]
        timings = [
            TimedAllReduce(
                str(row["collective"]), int(row["ranks"]),
                None if row.get("hosts") is None else int(row["hosts"]),
                int(row["bytes"]), float(row["seconds"]),
            )
            for row in rows
        ]  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        raise UserError(FORMS, f"{file}: {reason}", "Correct --network.") from error
    if not timings:
        raise UserError(
            "a check with timed all-reduces", f"{file}, without any",
            "Check again with two ranks or more, and without --skip bandwidth.",
        )  # fmt: skip
    return timings
