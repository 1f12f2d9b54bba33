"""The lines of a check, by topic and status, and the report that they make."""

from collections import Counter
from collections.abc import Iterable
from typing import Literal, get_args

from scalestudy.store.records import Record

REPORT_SCHEMA: Literal[4] = 4
Status = Literal["pass", "warn", "fail"]
Topic = Literal[
    "versions",
    "slurm",
    "folders",
    "devices",
    "ranks",
    "builds",
    "collectives",
    "bandwidth",
]
TOPICS: tuple[Topic, ...] = get_args(Topic)


class Line(Record):
    """The result of one check."""

    topic: Topic
    status: Status
    where: str
    """Hosts, or "here"."""
    seen: str
    action: str = ""
    """What to do; empty only if the check passed."""


class Report(Record):
    """All lines of a check."""

    schema_version: Literal[4] = REPORT_SCHEMA
    lines: tuple[Line, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether any line has the status "fail"."""
        return any(line.status == "fail" for line in self.lines)

    @property
    def verdict(self) -> str:
        """Summary in one sentence."""
        count = Counter(line.status for line in self.lines)
        numbers = (
            f"{count['pass']} passed, {count['warn']} warnings, {count['fail']} failed"
        )
        if self.failed:
            return f"Not ready: {numbers}."
        return f"Ready: {numbers}."

    def joined(self, other: "Report") -> "Report":
        """Return this report followed by another."""
        return Report(lines=self.lines + other.lines)


def report_pass(topic: Topic, where: str, seen: str) -> Line:
    """Return a line that requires no action."""
    return Line(
        topic=topic,
        status="pass",
        where=where,
        seen=seen,
    )


def report_warning(
    topic: Topic,
    where: str,
    seen: str,
    action: str,
) -> Line:
    """Return a line about a problem that does not prevent the study from running."""
    return Line(
        topic=topic,
        status="warn",
        where=where,
        seen=seen,
        action=action,
    )


def report_failure(
    topic: Topic,
    where: str,
    seen: str,
    action: str,
) -> Line:
    """Return a line about a problem that prevents the study from running."""
    return Line(
        topic=topic,
        status="fail",
        where=where,
        seen=seen,
        action=action,
    )


def merge(lines: Iterable[Line]) -> list[Line]:
    """Sort lines by topic, and merge equal lines of several hosts."""
    # Nodes that agree are one line, however many they are.
    places: dict[Line, dict[str, None]] = {}
    for line in lines:
        anywhere = line.model_copy(update={"where": ""})
        hosts = places.setdefault(anywhere, {})
        hosts[line.where] = None
    together = []
    for line, hosts in places.items():
        together.append(line.model_copy(update={"where": names_together(hosts)}))
    return sorted(together, key=lambda line: TOPICS.index(line.topic))


def names_together(given: Iterable[str]) -> str:
    """Return names as a list, of more than four the first three."""
    names = list(given)
    if len(names) <= 4:
        return ", ".join(names)
    return f"{', '.join(names[:3])} and {len(names) - 3} more"
