"""How rank 0 tells the others what to try, and hears of it: by files, which need no open port.

ranks/R.json          what rank R found on its own
assignments/K.json    what to try next
answers/K/R.json      what came of it at rank R
events/K-R.jsonl      how far rank R's collective is
"""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from scalestudy.features.check.report import Line
from scalestudy.study.records import Record
from scalestudy.util.files import write_atomically

POLL = 0.1
Content = TypeVar("Content", bound=Record)


class Facts(Record):
    """What a rank found on its own."""

    rank: int
    host: str
    """Its own name for itself."""
    local_rank: int
    cpus: tuple[int, ...]
    gpus: int
    """GPUs that it sees."""
    uuids: tuple[str, ...] = ()
    """Of these, where NVML says them."""
    no_gpus: tuple[str, str] | None = None
    """Why it sees none though it might be meant to, and what to do."""
    available: int
    """Bytes of memory that are free."""
    limit: int
    """Bytes of memory that may be used."""
    port: int | None
    """Listens here, at one of the run's ports; None if that port is taken."""
    lines: tuple[Line, ...] = ()


class Assignment(Record):
    """What ranks are to try; groups share no rank."""

    number: int
    kind: Literal["reach", "build", "collective", "end"]
    groups: tuple[tuple[int, ...], ...]
    collective: str = ""
    sizes: tuple[int, ...] = ()
    limit: float = 0.0
    """Seconds between two signs of life."""


class AttemptOutcome(Record):
    """How a collective went at one rank."""

    state: Literal["done", "stalled", "failed", "gone"]
    """"gone": the rank itself did not answer."""
    step: str = ""
    """What it was at."""
    seconds: dict[int, float] = Field(default_factory=dict)
    """By message size in bytes."""
    tail: list[str] = Field(default_factory=list)


class RankAnswer(Record):
    """What came of an assignment at one rank."""

    rank: int
    links: dict[int, str] = Field(default_factory=dict)
    """By rank: why it is not reached; "" where it is."""
    build: dict[str, Any] | None = None
    outcome: AttemptOutcome | None = None


class Mailbox:
    """The files of one check."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def facts_path(self, rank: int) -> Path:
        """Where a rank says what it found."""
        return self.folder / "ranks" / f"{rank}.json"

    def tell_facts(self, facts: Facts) -> None:
        """Say what this rank found."""
        self._write(f"ranks/{facts.rank}.json", facts)

    def facts(self, size: int, limit: float) -> dict[int, Facts]:
        """What the ranks found, of those that say so within `limit` seconds."""
        deadline = time.monotonic() + limit
        records: dict[int, Facts] = {}
        while True:
            self._collect("ranks", range(size), records, Facts)
            if len(records) == size or time.monotonic() > deadline:
                return records
            time.sleep(POLL)

    def assign(self, assignment: Assignment) -> None:
        """Hand out an assignment."""
        self._write(f"assignments/{assignment.number}.json", assignment)

    def assignment(self, number: int) -> Assignment | None:
        """The assignment of that number, if it is out."""
        return self._read(f"assignments/{number}.json", Assignment)

    def answer(self, number: int, answer: RankAnswer) -> None:
        """RankAnswer an assignment."""
        self._write(f"answers/{number}/{answer.rank}.json", answer)

    def events(self, number: int, rank: int) -> Path:
        """File that a collective tells its steps to; its folder exists."""
        path = self.folder / "events" / f"{number}-{rank}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def answers(self, number: int, ranks: Iterable[int], silence: float) -> dict[int, RankAnswer]:
        """All answers, or those that there are after `silence` seconds without a sign of life."""
        ranks = list(ranks)
        records: dict[int, RankAnswer] = {}
        seen, since = (-1, -1), time.monotonic()
        while len(records) < len(ranks):
            self._collect(f"answers/{number}", ranks, records, RankAnswer)
            now = len(records), sum(self._size(number, rank) for rank in ranks)
            if now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > silence:
                break
            time.sleep(POLL)
        return records

    def _collect(
        self, folder: str, ranks: Iterable[int], records: dict[int, Content], content: type[Content]
    ) -> None:
        for rank in ranks:
            if rank not in records and (read := self._read(f"{folder}/{rank}.json", content)):
                records[rank] = read

    def _size(self, number: int, rank: int) -> int:
        try:
            return self.events(number, rank).stat().st_size
        except OSError:
            return 0

    def _write(self, name: str, content: Record) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content.model_dump_json(), durable=False)  # of use to this job alone

    def _read(self, name: str, content: type[Content]) -> Content | None:
        try:
            return content.model_validate_json((self.folder / name).read_bytes())
        except (OSError, ValidationError):
            return None
