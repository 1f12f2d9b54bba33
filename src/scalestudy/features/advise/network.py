"""The network that larger runs will use: as stated, as a site's profile states it, or as a check timed it."""

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
"""Collectives that sum by the faster of a ring and a tree; TensorFlow's own and Gloo use rings."""
STATED_SHARE = (0.7, 1.0)
"""What collectives reach of the bandwidth that a card's name promises (headers, protocols, other traffic)."""
STATED_LATENCY = 2.0
"""Factor within which a stated latency holds."""
GRPC = Uncertain(1.0e9, 0.5e9, 2.0e9)
SOFTWARE = {"ring": GRPC, "auto": GRPC, "horovod-gloo": Uncertain(1.5e9, 0.5e9, 4.5e9)}
"""Bytes per second that a collective's own code moves at most, where no check has measured it: gRPC and Gloo
copy every message through TCP by one thread or a few."""
SOFTWARE_LATENCY = {"ring": 1e-4, "auto": 1e-4, "horovod-gloo": 5e-5, "horovod-mpi": 1e-5, "nccl": 1e-5,
                    "horovod-nccl": 1e-5}  # fmt: skip
"""Seconds of the code of a step, likewise."""
FORMS = (
    'a network as "100Gbit,2us,per_node=4" (bandwidth and latency between nodes; node_bandwidth=300GB and'
    " node_latency=5us within one), the name of a site profile that states it, or a file of `scalestudy"
    " check --format json`"
)


class StatedLink(NamedTuple):
    """A link as somebody states it: bytes per second, seconds of the smallest message."""

    bandwidth: float
    latency: float
    source: str


@dataclass(frozen=True)
class KnownNetwork:
    """What is known of the network: all-reduces that were timed, and from where; what somebody stated."""

    measured: tuple[TimedAllReduce, ...] = ()
    across: StatedLink | None = None
    within: StatedLink | None = None
    per_node: int | None = None
    sources: tuple[str, ...] = ()

    @property
    def workers_per_node(self) -> int:
        """As stated; else as many as the check had on each host; else one."""
        if self.per_node is not None:
            return self.per_node
        return max((row.ranks // row.hosts for row in self.measured if row.hosts), default=1)


class Route(NamedTuple):
    """How a strategy's workers will exchange: by which collective (as checks name it) and algorithm.

    Over links between nodes and within one; None where nothing is known of it.
    """

    collective: str
    algorithm: str
    across: KnownLink | None
    within: KnownLink | None

    @property
    def known(self) -> bool:
        """Whether at least one of its links is."""
        return bool(self.across or self.within)


def route_of(network: KnownNetwork, collectives: Iterable[str], near: float | None = None) -> Route:
    """The links that a strategy will use.

    Args:
        network: What is known.
        collectives: Those that it may use, best first: the first that was measured counts.
        near: Bytes of the messages that will be exchanged; None where they are not known.
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
    """Collectives by which a strategy's workers may sum, best first.

    Workers of one process are taken to sum as their engine's own processes do, for want of timings of them.

    Args:
        implementation: The strategy that does the work.
        communication: `launch.communication`, or what a run has recorded.
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
    # Of one need, what is preferred comes later in the table; what needs a launcher of its own comes last.
    rest = list(reversed(sums))
    rest.sort(key=lambda collective: bool(collective.launcher))
    return tuple(dict.fromkeys(collective.name for collective in (*reversed(asked), *rest)))


def network_of(texts: Sequence[str], base: Path) -> KnownNetwork:
    """The network, from the values of `--network`; what is stated counts before what was timed.

    Args:
        texts: As `FORMS` says.
        base: Folder that a site's relative path is seen from.

    Raises:
        UserError: One of them cannot be read, or a site's profile states no network.
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
    """All-reduces that a check, or `check --topology`, has timed."""
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
