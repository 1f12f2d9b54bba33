"""What a check reports: lines, times of all-reduces, and both together."""

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from scalestudy.study.records import Record

REPORT_SCHEMA: Literal[2] = 2
Status = Literal["pass", "warn", "fail"]
Topic = Literal[
    "versions", "site", "slurm", "folders", "data", "memory", "devices", "cores", "ranks", "ports",
    "builds", "collectives", "bandwidth",
]  # fmt: skip
TOPICS: tuple[Topic, ...] = get_args(Topic)
QUEUE_TOPIC: Topic = "slurm"
"""What the queue itself says of the site."""


class Line(Record):
    """One thing that was looked at."""

    topic: Topic
    status: Status
    where: str
    """Host, pair of hosts, or "here"."""
    seen: str
    action: str = ""
    """What to do; never empty unless it passed."""


class AllReduce(Record):
    """One message size of an all-reduce by one collective, in nccl-tests' terms."""

    collective: str
    ranks: int
    bytes: int
    seconds: float
    """Of one sum: the median of calls that chain several, averaged over ranks; of small ones the latency."""
    algorithm_bandwidth: float
    """Bytes per second: S / t."""
    bus_bandwidth: float
    """Bytes per second: (S / t) × 2(n − 1) / n."""
    hosts: int | None = None
    """On how many hosts the ranks were; None in reports that did not record it."""


class Report(Record):
    """All lines of a check."""

    schema_version: Literal[2] = REPORT_SCHEMA
    lines: tuple[Line, ...] = ()
    bandwidth: tuple[AllReduce, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether a line says fail."""
        return any(line.status == "fail" for line in self.lines)

    def joined(self, other: "Report") -> "Report":
        """This report, then the other."""
        return Report(lines=self.lines + other.lines, bandwidth=self.bandwidth + other.bandwidth)


def passed(topic: Topic, where: str, seen: str) -> Line:
    """A line that asks for nothing."""
    return Line(topic=topic, status="pass", where=where, seen=seen)


def warned(topic: Topic, where: str, seen: str, action: str) -> Line:
    """A line about what costs time or trust, but keeps nothing from running."""
    return Line(topic=topic, status="warn", where=where, seen=seen, action=action)


def failed(topic: Topic, where: str, seen: str, action: str) -> Line:
    """A line about what keeps the study from running."""
    return Line(topic=topic, status="fail", where=where, seen=seen, action=action)


def merged(lines: Iterable[Line]) -> list[Line]:
    """Lines by topic, those that say the same of several hosts as one."""
    places: dict[Line, list[str]] = {}
    for line in lines:
        places.setdefault(line.model_copy(update={"where": ""}), []).append(line.where)
    together = [line.model_copy(update={"where": _several(where)}) for line, where in places.items()]
    return sorted(together, key=lambda line: TOPICS.index(line.topic))


def _several(places: Sequence[str]) -> str:
    names = list(dict.fromkeys(places))
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
