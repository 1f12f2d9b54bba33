"""Lines of JSON between the launcher and its agent on each host: `HostRequest` and `WorkersStart` go there.

An empty line is a sign of life. Lines of the agent have a prefix, since a user's shell may print too.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from scalestudy.store.records import Record

PREFIX = "scalestudy-agent "
BEAT = 5.0
"""Seconds between two signs of life of the launcher."""
SILENCE = 60.0
"""Seconds without a sign of life after which an agent ends its workers."""


class HostRequest(Record):
    """What to describe and reserve."""

    paths: tuple[str, ...] = ()
    """Files and folders that the host must see."""
    workers: int = 0
    """Number of workers to reserve cores for."""
    cpus_per_worker: int = 1
    gpus: int = 0
    """Number of GPUs to reserve, if the host has that many."""


class HostGpu(Record):
    """A GPU that processes may use."""

    name: str
    capability: tuple[int, int] | None = None


class HostFacts(Record):
    """Answer to a request."""

    kind: Literal["facts"] = "facts"
    host: str
    """Host name, from `socket.gethostname`."""
    version: str
    cores: int
    """Number of cores that processes may use."""
    gpus: tuple[HostGpu, ...] = ()
    unseen: tuple[str, ...] = ()
    """Paths of the request that this host does not see."""
    alone: bool = True
    """Whether the reserved cores are exclusive."""
    holders: tuple[str, ...] = ()
    """UUIDs of GPUs that other runs hold, if too few were left to reserve."""


class WorkersStart(Record):
    """The workers to start, with what was reserved."""

    run: str
    """Folder of the run, or of a check."""
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    """Host of every rank, by rank."""
    port: int
    environment: str | None = None
    """Virtual environment of the workers; None for that of the agent."""
    variables: dict[str, str]


class WorkerEnded(Record):
    """A worker has ended."""

    kind: Literal["ended"] = "ended"
    rank: int
    code: int
    """Exit code; negative for a signal."""


class AllEnded(Record):
    """All workers have ended, by themselves or by the agent; its last line."""

    kind: Literal["over"] = "over"
    share: float
    """Share of the reserved cores that other programs used."""
    programs: str


Answer = HostFacts | WorkerEnded | AllEnded
ANSWER: TypeAdapter[Answer] = TypeAdapter(Annotated[Answer, Field(discriminator="kind")])
