"""The files of a check: its plan (`check.json`), its report (`report.json`), and what its ranks exchange.

Ranks communicate through files, without open ports, since the network between them is what is checked:

ranks/R.json               what rank R found on its own
assignments/K.json         trial K, which rank 0 assigns to all ranks
events/K-R.jsonl           progress of rank R's process for trial K, and how it ended
logs/trial-K-rank-R.log    output of this process
progress                   current activity, for display
"""

import json
import time
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError

from scalestudy.config.settings import StrictModel
from scalestudy.features.check.check_report import (
    REPORT_SCHEMA,
    Line,
    Report,
    Topic,
)
from scalestudy.plugins.engines import DEFAULT
from scalestudy.store.records import Record
from scalestudy.util.errors import RunError
from scalestudy.util.files import without_following, write_atomically

PLAN_FILE, REPORT_FILE = "check.json", "report.json"
POLL = 0.1
TAIL_LINES = 30
STEPS = {
    "": "joining",
    "begun": "joining",
    "joined": "the first sum",
    "summed": "timing",
    "timed": "timing",
}
"""Current step of a trial, by its last event."""
SIZES = (2**10, 2**25)
"""Message sizes in bytes: 1 KiB for the latency; 32 MiB, about a bucket of gradients, for the bandwidth."""
State = Literal["done", "stalled", "failed"]
"""How a trial ended."""
Content = TypeVar("Content", bound=Record)


class CheckPlan(StrictModel):
    """The plan that every rank follows. Limits are in seconds; anything slower counts as stalled."""

    schema_version: Literal[4] = REPORT_SCHEMA
    engine: str = DEFAULT
    """Engine whose processes are tried."""
    workers: Annotated[int, Field(gt=0)]
    device: Literal["auto", "cpu", "gpu"] = "auto"
    gpus_per_node: int = 0
    """Number of GPUs per node that the site states; 0 if it states none."""
    cpus_per_worker: Annotated[int, Field(gt=0)] = 1
    needs: tuple[str, ...] | None = None
    """What the study's collectives must support, as in `Collective.needs`. None without a study: then all
    collectives are tried."""
    libraries: tuple[str, ...] = ()
    """Libraries that the study's strategies need in addition to the engine."""
    folders: dict[str, str] = Field(default_factory=dict)
    """Purposes of the folders that the study will write to, by their paths. These are absolute, and may
    contain `~` and $VARIABLES of the node."""
    skip: tuple[Topic, ...] = ()
    sizes: tuple[int, ...] = SIZES
    """Message sizes in bytes."""
    start_limit: float = 120.0
    """Limit for a rank to appear, and for the first import of a framework."""
    limit: float = 60.0
    """Limit between two events of a collective."""
    slack: float = 15.0
    """Extra time for a rank to notice an assignment."""

    def wants(self, topic: Topic) -> bool:
        """Return whether a topic is checked."""
        return topic not in self.skip


class Facts(Record):
    """Properties that a rank found on its own."""

    rank: int
    host: str
    """Host name, from `socket.gethostname`."""
    local_rank: int
    gpus: int
    """Number of visible GPUs."""
    uuids: tuple[str, ...] = ()
    """UUIDs of these GPUs, if NVML reports them."""
    no_gpus: tuple[str, str] | None = None
    """Why no GPU is visible, and what to do; None if there are GPUs or none are wanted."""
    lines: tuple[Line, ...] = ()


class Assignment(Record):
    """A trial of all ranks."""

    number: int
    collective: str | None = None
    """Name of the collective to try; None to report only how the framework was built."""
    last: bool = False
    """Whether the check ends, without a trial."""


class RankAnswer(Record):
    """How a rank's trial ended."""

    rank: int
    state: State
    step: str = ""
    """Last step of its trial."""
    seconds: dict[int, float] = Field(default_factory=dict)
    """Seconds of a sum by message size in bytes."""
    tail: list[str] = Field(default_factory=list)
    """Last lines of its log, unless the state is "done"."""
    build: dict[str, Any] | None = None
    """How the framework and its libraries were built."""


class Exchange:
    """What the ranks of a check exchange, in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def facts_path(self, rank: int) -> Path:
        """Return the path of a rank's facts."""
        return self.folder / "ranks" / f"{rank}.json"

    def write_facts(self, facts: Facts) -> None:
        """Write what this rank found."""
        _write(self.facts_path(facts.rank), facts)

    def facts(self, size: int, limit: float) -> dict[int, Facts]:
        """Return the facts of the ranks that write them within `limit` seconds."""
        deadline = time.monotonic() + limit
        records: dict[int, Facts] = {}
        while True:
            for rank in set(range(size)) - set(records):
                facts = _read(self.facts_path(rank), Facts)
                if facts:
                    records[rank] = facts
            if len(records) == size or time.monotonic() > deadline:
                return records
            time.sleep(POLL)

    def tell(self, text: str) -> None:
        """Write the current activity, for display."""
        write_atomically(self.folder / "progress", text, durable=False)

    def progress(self) -> str:
        """Return the current activity."""
        try:
            return (self.folder / "progress").read_text()
        except OSError:
            return "starting"

    def assign(self, assignment: Assignment) -> None:
        """Write an assignment."""
        _write(self._assignment(assignment.number), assignment)

    def assignment(self, number: int) -> Assignment | None:
        """Return the assignment with this number; None if there is none yet."""
        return _read(self._assignment(number), Assignment)

    def _assignment(self, number: int) -> Path:
        return self.folder / "assignments" / f"{number}.json"

    def events_path(self, number: int, rank: int) -> Path:
        """Return the file to which a rank's trial appends its events as lines of JSON."""
        return self.folder / "events" / f"{number}-{rank}.jsonl"

    def log(self, number: int, rank: int) -> Path:
        """Return the log of a rank's trial."""
        return self.folder / "logs" / f"trial-{number}-rank-{rank}.log"

    def append_event(
        self,
        number: int,
        rank: int,
        **event: Any,
    ) -> None:
        """Append an event of a rank's trial."""
        path = self.events_path(number, rank)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Other accounts may write to a folder that a group shares, and a link there would lead elsewhere.
        with open(path, "a", opener=without_following) as file:
            file.write(json.dumps(event) + "\n")

    def events(self, number: int, rank: int) -> list[dict[str, Any]]:
        """Return the events of a rank's trial so far."""
        try:
            lines = self.events_path(number, rank).read_text().splitlines(keepends=True)
        except OSError:
            return []
        # The last line may still be in the making.
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def answers(
        self,
        number: int,
        size: int,
        limit: float,
        slack: float = 0.0,
    ) -> dict[int, RankAnswer]:
        """Wait for the trial of all ranks, and return how it ended, by rank.

        It has stalled if no event follows another within `limit` seconds. A rank that does not even
        begin within `slack` seconds more has stopped responding: it is left out.
        """
        began = time.monotonic()
        # Of each rank that has not ended: how many events it has written, and when the last of them was seen.
        heard = dict.fromkeys(range(size), (0, began))
        answers: dict[int, RankAnswer] = {}
        while heard:
            for rank, (count, since) in list(heard.items()):
                events = self.events(number, rank)
                # Times of arrival by the clock of rank 0: those of the hosts may differ.
                now = time.monotonic()
                last: dict[str, Any] = {}
                if events:
                    last = events[-1]
                if len(events) > count:
                    heard[rank] = (len(events), now)
                if last.get("step") == "done" or last.get("code") == 0:
                    answers[rank] = self._answer(number, rank, "done", events)
                elif "code" in last:
                    answers[rank] = self._answer(number, rank, "failed", events)
                elif events and len(events) == count and now - since > limit:
                    answers[rank] = self._answer(number, rank, "stalled", events)
                elif events or now - began <= limit + slack:
                    continue
                del heard[rank]
            if heard:
                time.sleep(POLL)
        return answers

    def _answer(
        self,
        number: int,
        rank: int,
        state: State,
        events: list[dict[str, Any]],
    ) -> RankAnswer:
        last = ""
        build = None
        seconds: dict[int, float] = {}
        for event in events:
            step = event["step"]
            if step == "timed":
                seconds[event["bytes"]] = event["seconds"]
            elif step == "built":
                build = event
            # What it was doing when it ended is the step to name.
            if step != "ended":
                last = step
        tail: list[str] = []
        if state != "done":
            tail = _tail(self.log(number, rank))[-TAIL_LINES:]
        return RankAnswer(
            rank=rank,
            state=state,
            step=STEPS.get(last, last),
            seconds=seconds,
            tail=tail,
            build=build,
        )


def _write(path: Path, content: Record) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Only this check needs it, so it need not survive a power cut.
    write_atomically(path, content.model_dump_json(), durable=False)


def _read(path: Path, content: type[Content]) -> Content | None:
    try:
        return content.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def _tail(log: Path) -> list[str]:
    """Return the lines of a log that are not empty; none if it cannot be read."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return list(filter(None, map(str.rstrip, lines)))


def write_plan(folder: Path, plan: CheckPlan) -> None:
    """Write the plan to the file that the workers read."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / PLAN_FILE, plan.model_dump_json(indent=1))


def read_report(folder: Path) -> Report:
    """Read the report of a finished check; raises `RunError` if it is missing or invalid."""
    file = folder / REPORT_FILE
    logs = folder / "logs"
    try:
        return Report.model_validate_json(file.read_bytes())
    except OSError:
        seen = "none, and no logs"
        # Rank 0 writes the report; without a log of its own, the job did not come as far as starting it.
        for name in ("rank-0.log", "job.log"):
            lines = _tail(logs / name)
            if lines:
                seen = f"none; the last of {name}: {lines[-1]}"
                break
        raise RunError(
            f"a report in {file}",
            seen,
            f"Look at the logs in {logs}.",
        ) from None
    except ValueError as error:
        raise RunError(
            f"a report of schema version {REPORT_SCHEMA} in {file}",
            str(error).splitlines()[0],
            "Another version of Scalestudy wrote it. Run the check again.",
        ) from error
