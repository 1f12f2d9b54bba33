"""Exchange of assignments and answers between rank 0 and the others through files, without open ports.

ranks/R.json          what rank R found on its own
assignments/K.json    assignment K of rank 0
answers/K/R.json      answer of rank R to assignment K
events/K-R.jsonl      progress of rank R's trial, which runs in its own process
progress              current activity, for display
"""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from scalestudy.cluster.environment import own_gpus, process_environment
from scalestudy.cluster.placement import Placement
from scalestudy.features.check.check_report import Line
from scalestudy.hardware.devices import Gpu
from scalestudy.measure.bandwidth import largest, repeats
from scalestudy.plugins.engines import Collective, EngineTraits
from scalestudy.store.records import Record
from scalestudy.util.files import write_atomically

POLL = 0.1
TAIL_LINES = 30
STEPS = {"": "joining", "joined": "the first sum", "summed": "timing", "timed": "timing"}
"""Current step of a trial, by its last event."""
Content = TypeVar("Content", bound=Record)


class Facts(Record):
    """Properties that a rank found on its own."""

    rank: int
    host: str
    """Host name, from `socket.gethostname`."""
    local_rank: int
    cpus: tuple[int, ...]
    gpus: int
    """Number of visible GPUs."""
    uuids: tuple[str, ...] = ()
    """UUIDs of these GPUs, if NVML reports them."""
    no_gpus: tuple[str, str] | None = None
    """Why no GPU is visible, and what to do; None if there are GPUs or none are wanted."""
    lines: tuple[Line, ...] = ()


class Assignment(Record):
    """A trial for groups of ranks, which share no rank."""

    number: int
    kind: Literal["build", "collective", "end"]
    groups: tuple[tuple[int, ...], ...] = ()
    collective: str = ""
    sizes: tuple[int, ...] = ()
    limit: float = 0.0
    """Maximum seconds between two events of a trial."""


class RankAnswer(Record):
    """A rank's answer to an assignment."""

    rank: int
    state: Literal["done", "stalled", "failed"]
    step: str = ""
    """Last step of its trial."""
    seconds: dict[int, float] = Field(default_factory=dict)
    """Seconds of a sum by message size in bytes."""
    tail: list[str] = Field(default_factory=list)
    """Last lines of its log, unless the state is "done"."""
    build: dict[str, Any] | None = None
    """How the framework and its libraries were built."""


class Exchange:
    """The files of a check."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def facts_path(self, rank: int) -> Path:
        """Return the path of a rank's facts."""
        return self.folder / "ranks" / f"{rank}.json"

    def write_facts(self, facts: Facts) -> None:
        """Write what this rank found."""
        self._write(self.facts_path(facts.rank), facts)

    def facts(self, size: int, limit: float) -> dict[int, Facts]:
        """Return the facts of the ranks that write them within `limit` seconds."""
        deadline = time.monotonic() + limit
        records: dict[int, Facts] = {}
        while True:
            self._collect("ranks", range(size), records, Facts)
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
        self._write(self.folder / "assignments" / f"{assignment.number}.json", assignment)

    def assignment(self, number: int) -> Assignment | None:
        """Return the assignment with this number; None if there is none yet."""
        return self._read(f"assignments/{number}.json", Assignment)

    def answer(self, number: int, answer: RankAnswer) -> None:
        """Write this rank's answer to an assignment."""
        self._write(self.folder / "answers" / str(number) / f"{answer.rank}.json", answer)

    def answers(self, number: int, ranks: Sequence[int], silence: float) -> dict[int, RankAnswer]:
        """Return all answers, or those present once no answer or event has arrived for `silence` seconds."""
        records: dict[int, RankAnswer] = {}
        state, since = (-1, -1), time.monotonic()
        while len(records) < len(ranks):
            self._collect(f"answers/{number}", ranks, records, RankAnswer)
            now = len(records), sum(self._told(number, rank) for rank in ranks)
            if now != state:
                state, since = now, time.monotonic()
            elif time.monotonic() - since > silence:
                break
            time.sleep(POLL)
        return records

    def events(self, number: int, rank: int) -> Path:
        """Return the file to which a trial writes its events, and create its folder."""
        path = self.folder / "events" / f"{number}-{rank}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _collect(
        self, folder: str, ranks: Iterable[int], records: dict[int, Content], content: type[Content]
    ) -> None:
        for rank in ranks:
            if rank not in records and (record := self._read(f"{folder}/{rank}.json", content)):
                records[rank] = record

    def _told(self, number: int, rank: int) -> int:
        """Return the number of bytes that a rank's trial has written so far."""
        try:
            return self.events(number, rank).stat().st_size
        except OSError:
            return 0

    @staticmethod
    def _write(path: Path, content: Record) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content.model_dump_json(), durable=False)  # only this job needs it

    def _read(self, name: str, content: type[Content]) -> Content | None:
        try:
            return content.model_validate_json((self.folder / name).read_bytes())
        except (OSError, ValidationError):
            return None


def among(placement: Placement, ranks: Sequence[int]) -> Placement:
    """Return the placement of a rank within a group of ranks."""
    hosts = tuple(placement.hosts[rank] for rank in ranks)
    rank = ranks.index(placement.rank)
    local = [index for index, host in enumerate(hosts) if host == hosts[rank]]
    nodes = list(dict.fromkeys(hosts))
    return Placement(
        rank,
        len(ranks),
        local.index(rank),
        len(local),
        nodes.index(hosts[rank]),
        hosts,
        placement.source,
        placement.port,
    )


def trial_environment(
    way: Collective | None,
    engine: EngineTraits,
    placement: Placement,
    variables: Mapping[str, str],
    *,
    device: str,
    local_rank: int,
    gpus: Sequence[Gpu] = (),
) -> dict[str, str]:
    """Return the variables of a trial's process. Without a collective, the trial only reports the build.

    `placement` is the placement in the group, `local_rank` the index of this rank's GPU among the visible
    ones, and `gpus` the GPUs that it may use according to NVML.
    """
    shown: Sequence[str] | None = ()
    if device != "cpu":
        # For its build report, the framework must see all GPUs.
        shown = None if way is None else own_gpus(variables, gpus, local_rank=local_rank)
    rendezvous = None if way is None else way.rendezvous
    changes = process_environment(variables, engine, gpus=shown, rendezvous=rendezvous, placement=placement)
    return changes.applied(variables) | {"PYTHONUNBUFFERED": "1"}


def errand(
    way: Collective | None,
    placement: Placement,
    *,
    device: str,
    sizes: Sequence[int],
    events: Path,
    memory: int | None = None,
) -> dict[str, Any]:
    """Return the task of a trial's process; see the module `EngineTraits.trial_module`."""
    source = placement.source
    if way is not None and way.rendezvous and way.rendezvous.launcher:
        # With Gloo, processes meet at rank 0 even under mpirun; with MPI, mpirun connects them.
        source = way.launcher or "check"
    return {
        "collective": None if way is None else way.name,
        "placement": asdict(replace(placement, source=source)),
        "device": device,
        "sizes": list(sizes),
        "largest": largest(device, memory),
        "repeats": [repeats(size, device) for size in sizes],
        "events": str(events),
    }


class Trial:
    """A collective in its own process, which can be ended if it stalls.

    The process stays alive after it is done. Call `end` once all ranks are done. It belongs to the caller's
    process group, so that a signal to the group ends it too.
    """

    def __init__(
        self, module: str, errand: Mapping[str, Any], variables: Mapping[str, str], log: Path
    ) -> None:
        self._events_file, self._log = Path(errand["events"]), log
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, json.dumps(errand)],
                env=dict(variables),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def events(self) -> list[dict[str, Any]]:
        """Return its events so far."""
        try:
            lines = self._events_file.read_text().splitlines(keepends=True)
        except OSError:
            return []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def answer(self, rank: int, limit: float) -> RankAnswer:
        """Wait until it is done or has failed; kill it after `limit` seconds without an event."""
        count, since = 0, time.monotonic()
        while True:
            code = self._process.poll()
            events = self.events()
            if events and events[-1]["step"] in ("done", "built"):
                return self._answer(rank, "done", events)
            if code is not None:
                return self._answer(rank, "failed", events)
            if len(events) > count:
                count, since = len(events), time.monotonic()
            elif time.monotonic() - since > limit:
                self.end()
                return self._answer(rank, "stalled", events)
            time.sleep(POLL)

    def end(self) -> None:
        """Kill the process, and wait for it."""
        self._process.kill()
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()

    def _answer(
        self, rank: int, state: Literal["done", "failed", "stalled"], events: list[dict[str, Any]]
    ) -> RankAnswer:
        step, tail = events[-1]["step"] if events else "", []
        if state != "done":
            with contextlib.suppress(OSError):
                lines = self._log.read_text(errors="replace").splitlines()
                tail = [line.rstrip() for line in lines if line.strip()][-TAIL_LINES:]
        return RankAnswer(
            rank=rank,
            state=state,
            step=STEPS.get(step, step),
            seconds={event["bytes"]: event["seconds"] for event in events if event["step"] == "timed"},
            tail=tail,
            build=next((event for event in events if event["step"] == "built"), None),
        )
