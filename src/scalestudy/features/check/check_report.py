"""The plan of a check, which every rank reads (`check.json`), and its report (`report.json`)."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field

from scalestudy.config.settings import StrictModel
from scalestudy.launch.failures import TAIL_LINES
from scalestudy.measure.bandwidth import SIZES
from scalestudy.plugins.engines import DEFAULT
from scalestudy.store.records import Record
from scalestudy.util.errors import RunError
from scalestudy.util.files import write_atomically

PLAN_FILE, REPORT_FILE = "check.json", "report.json"
REPORT_SCHEMA: Literal[3] = 3
Status = Literal["pass", "warn", "fail"]
Topic = Literal[
    "versions",
    "site",
    "slurm",
    "folders",
    "devices",
    "cores",
    "network",
    "ranks",
    "builds",
    "collectives",
    "bandwidth",
]
TOPICS: tuple[Topic, ...] = get_args(Topic)
QUEUE_TOPIC: Topic = "slurm"
"""Topic for the queue's answer about the study's jobs."""


class Line(Record):
    """The result of one check."""

    topic: Topic
    status: Status
    where: str
    """Host, pair of hosts, or "here"."""
    seen: str
    action: str = ""
    """What to do; empty only if the check passed."""


class AllReduce(Record):
    """The time of an all-reduce for one message size and collective, with the definitions of nccl-tests."""

    collective: str
    ranks: int
    bytes: int
    seconds: float
    """Seconds per sum (for small messages, the latency): median of calls of several sums, mean of ranks."""
    algorithm_bandwidth: float
    """Bytes per second: S / t."""
    bus_bandwidth: float
    """Bytes per second: (S / t) × 2(n − 1) / n."""
    hosts: int | None = None
    """Number of hosts of the ranks."""


class Report(Record):
    """All lines of a check."""

    schema_version: Literal[3] = REPORT_SCHEMA
    lines: tuple[Line, ...] = ()
    bandwidth: tuple[AllReduce, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether any line has the status "fail"."""
        return any(line.status == "fail" for line in self.lines)

    @property
    def verdict(self) -> str:
        """Summary in one sentence."""
        count = {status: sum(line.status == status for line in self.lines) for status in get_args(Status)}
        numbers = f"{count['pass']} passed, {count['warn']} warnings, {count['fail']} failed"
        return f"{'Not ready' if self.failed else 'Ready'}: {numbers}."

    def joined(self, other: "Report") -> "Report":
        """Return this report followed by another."""
        return Report(lines=self.lines + other.lines, bandwidth=self.bandwidth + other.bandwidth)


def passed(topic: Topic, where: str, seen: str) -> Line:
    """Return a line that requires no action."""
    return Line(topic=topic, status="pass", where=where, seen=seen)


def warned(topic: Topic, where: str, seen: str, action: str) -> Line:
    """Return a line about a problem that does not prevent the study from running."""
    return Line(topic=topic, status="warn", where=where, seen=seen, action=action)


def failed(topic: Topic, where: str, seen: str, action: str) -> Line:
    """Return a line about a problem that prevents the study from running."""
    return Line(topic=topic, status="fail", where=where, seen=seen, action=action)


def merged(lines: Iterable[Line]) -> list[Line]:
    """Sort lines by topic, and merge equal lines of several hosts."""
    places: dict[Line, list[str]] = {}
    for line in lines:
        places.setdefault(line.model_copy(update={"where": ""}), []).append(line.where)
    together = [line.model_copy(update={"where": _listed(where)}) for line, where in places.items()]
    return sorted(together, key=lambda line: TOPICS.index(line.topic))


def _listed(places: Sequence[str]) -> str:
    names = list(dict.fromkeys(places))
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


class WritableFolder(StrictModel):
    """A folder that the study will write to."""

    path: str
    """Absolute path; may contain `~` and $VARIABLES of the node."""
    purpose: str


class Plan(StrictModel):
    """The plan that every rank follows. Limits are in seconds; anything slower counts as stalled."""

    schema_version: Literal[3] = REPORT_SCHEMA
    engine: str = DEFAULT
    """Engine whose processes are tried."""
    workers: Annotated[int, Field(gt=0)]
    device: Literal["auto", "cpu", "gpu"] = "auto"
    gpus_per_node: int = 0
    """Number of GPUs per node that the site states; 0 if it states none."""
    cpus_per_worker: Annotated[int, Field(gt=0)] = 1
    needs: tuple[str, ...] | None = None
    """What the study's collectives must support, as in `Collective.needs`. None without a study: then every
    collective that does not work is a failure."""
    libraries: tuple[str, ...] = ()
    """Libraries that the study's strategies need in addition to the engine."""
    folders: tuple[WritableFolder, ...] = ()
    skip: tuple[Topic, ...] = ()
    sizes: tuple[int, ...] = SIZES
    """Message sizes in bytes."""
    start_limit: float = 120.0
    """Limit for a rank to appear, and for the first import of a framework."""
    limit: float = 60.0
    """Limit between two events of a collective."""
    slack: float = 15.0
    """Extra time for ranks to notice an assignment and to answer."""

    def wants(self, topic: Topic) -> bool:
        """Return whether a topic is checked."""
        return topic not in self.skip


def write_plan(folder: Path, plan: Plan) -> None:
    """Write the plan to the file that the workers read."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / PLAN_FILE, plan.model_dump_json(indent=1))


def read_report(folder: Path) -> Report:
    """Read the report of a finished check; raises `RunError` if it is missing or invalid."""
    file = folder / REPORT_FILE
    try:
        return Report.model_validate_json(file.read_bytes())
    except OSError:
        action = f"Look at the logs in {folder / 'logs'}."
        raise RunError(f"a report in {file}", _end_of_log(folder), action) from None
    except ValueError as error:
        raise RunError(
            f"a report of schema version {REPORT_SCHEMA} in {file}",
            str(error).splitlines()[0],
            "Another version of Scalestudy wrote it. Run the check again.",
        ) from error


def _end_of_log(folder: Path) -> str:
    for name in ("rank-0.log", "job.log"):
        try:
            lines = (folder / "logs" / name).read_text(errors="replace").splitlines()
        except OSError:
            continue
        if tail := [line for line in lines if line.strip()][-TAIL_LINES:]:
            return f"none; the last of {name}: {tail[-1]}"
    return "none, and no logs"
