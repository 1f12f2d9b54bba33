"""A connection to the agent on a host, by SSH, and the processes of a run on several hosts."""

import contextlib
import os
import queue
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Annotated, BinaryIO, Literal

from pydantic import Field, TypeAdapter, ValidationError

from scalestudy.launch.worker_processes import GRACE, KILLED_WITHIN, ProcessGroup
from scalestudy.store.records import Record
from scalestudy.util import modules
from scalestudy.util.errors import RunError, UserError
from scalestudy.util.own_package import own_source

PREFIX = "scalestudy-agent "
BEAT = 5.0
"""Seconds between two signs of life of the launcher."""
SILENCE = 60.0
"""Seconds without a sign of life after which an agent ends its workers."""
CONNECTS_WITHIN, ALIVE_EVERY, ALIVE_MISSED = 15, 5, 3
SSH = (
    "ssh",
    "-T",
    *("-o", "BatchMode=yes"),
    *("-o", f"ConnectTimeout={CONNECTS_WITHIN}"),
    *("-o", f"ServerAliveInterval={ALIVE_EVERY}"),
    *("-o", f"ServerAliveCountMax={ALIVE_MISSED}"),
)
"""Never asks for a password, and ends within 20 s when the host has died."""
ANSWERS_WITHIN = 120.0
"""Seconds for Python to start on a busy host with a slow file system."""
STOPS_WITHIN = 2 * GRACE + KILLED_WITHIN + (ALIVE_MISSED + 1) * ALIVE_EVERY
"""Seconds for an agent to end its workers, or for ssh to find that the host has died."""
SSH_FAILED = 255
PASSED_ON = (
    "GLOO_",
    "HOROVOD_",
    "KERAS_",
    "NCCL_",
    "OMP_",
    "TF_",
    "TORCH_",
    "UCX_",
    "XLA_",
    "PYTHONPATH",
)


class HostRequest(Record):
    """What to describe and reserve."""

    paths: tuple[str, ...] = ()
    """Files and folders that the host must see."""
    workers: int = 0
    """Number of workers to reserve cores for."""
    cpus_per_worker: int = 1
    gpus: int = 0
    """Number of GPUs to reserve, if the host has that many."""


class HostFacts(Record):
    """Answer to a request."""

    kind: Literal["facts"] = "facts"
    host: str
    """Host name, from `socket.gethostname`."""
    version: str
    cores: int
    """Number of cores that processes may use."""
    gpus: tuple[tuple[int, int] | None, ...] = ()
    """CUDA compute capability of each GPU that processes may use; None if unknown."""
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
    private: bool = False
    """Whether workers get a network of their own if all are on one host."""
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


Answer = HostFacts | WorkerEnded | AllEnded


ANSWER: TypeAdapter[Answer] = TypeAdapter(
    Annotated[Answer, Field(discriminator="kind")]
)


class Connection:
    """An agent on a host, which ends its workers when the connection ends."""

    def __init__(self, host: str) -> None:
        self.host = host
        python = [sys.executable, "-P", "-m", modules.HOST_AGENT]
        if source := own_source():
            python = ["env", f"PYTHONPATH={source}", *python]
        arguments = python
        if not is_here(host):
            # exec: the host's shell would stay between ssh and the agent.
            arguments = [*SSH, host, "exec " + shlex.join(python)]
        try:
            self._process = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            action = "Install OpenSSH's client (Debian: openssh-client)."
            raise UserError(
                f"ssh, to reach {host}",
                "no such program",
                action,
            ) from error
        assert self._process.stdin is not None
        self._input = self._process.stdin
        self._answers: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
        self._errors: deque[str] = deque(maxlen=20)
        self._reader = threading.Thread(
            target=self._read,
            args=(self._process.stdout,),
            daemon=True,
        )
        self._complaints = threading.Thread(
            target=self._listen,
            args=(self._process.stderr,),
            daemon=True,
        )
        self._closed = threading.Event()
        for thread in (
            self._reader,
            self._complaints,
            threading.Thread(target=self._beat, daemon=True),
        ):
            thread.start()

    def _read(self, output: BinaryIO) -> None:
        for line in output:
            text = line.decode(errors="replace")
            # Other lines come from start-up files of the host's shell.
            if text.startswith(PREFIX):
                with contextlib.suppress(ValidationError):
                    self._answers.put(ANSWER.validate_json(text.removeprefix(PREFIX)))
        self._answers.put(None)

    def _listen(self, output: BinaryIO) -> None:
        # Read to the end: an agent that writes into a full pipe would wait for ever.
        for raw in output:
            line = raw.decode(errors="replace").strip()
            if line:
                self._errors.append(line)

    def _beat(self) -> None:
        # An agent cannot see that this machine has lost its power: TCP keeps such a connection open.
        while not self._closed.wait(BEAT):
            self._write(b"\n")

    def send(self, message: HostRequest | WorkersStart) -> None:
        """Send a message; if the connection has ended, `answer` returns None."""
        self._write(message.model_dump_json().encode() + b"\n")

    def _write(self, data: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):  # ended or closed
            self._input.write(data)
            self._input.flush()

    def answer(self, within: float | None = None) -> Answer | None:
        """Return the next answer; None if the connection has ended, or none came within these seconds."""
        try:
            return self._answers.get(timeout=within)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Let the agent end its workers."""
        self._closed.set()
        with contextlib.suppress(OSError):
            self._input.close()

    def end(self, deadline: float) -> None:
        """Wait until the agent has ended, and kill the connection at `deadline` (monotonic)."""
        self.close()
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(GRACE)

    def failure(self) -> RunError:
        """Return why there is no answer, ending the connection."""
        self.end(time.monotonic() + KILLED_WITHIN)
        self._complaints.join(GRACE)
        code = self._process.returncode
        words = f"no answer within {ANSWERS_WITHIN:.0f} s"
        if self._errors:
            words = self._errors[-1]
        # ssh ends with the exit code of its command, or with 255 for an error of its own.
        if code == SSH_FAILED and not is_here(self.host):
            action = f"Set up passwordless SSH to {self.host}, or take the host out of launch.hosts."
            return RunError(f"{self.host} to be reached by SSH", words, action)
        return RunError(
            f"Scalestudy on {self.host} as here, with {sys.executable}",
            words,
            "Install the same environment at the same path on every host, best on a shared file system.",
        )


def is_here(host: str) -> bool:
    """Whether a host is this machine, where no SSH is needed."""
    own = socket.gethostname()
    return host in ("localhost", own, own.partition(".")[0])


def connect(
    held: contextlib.ExitStack, requests: Sequence[tuple[str, HostRequest]]
) -> list[tuple[Connection, HostFacts | RunError]]:
    """Connect to hosts until `held` exits; return each connection and its host's facts, or the error."""
    connections = []
    # All at once: each host may take seconds to start Python from a slow file system.
    for host, request in requests:
        connection = Connection(host)
        held.callback(connection.end, time.monotonic())
        connections.append(connection)
        connection.send(request)
    deadline = time.monotonic() + ANSWERS_WITHIN
    answers: list[tuple[Connection, HostFacts | RunError]] = []
    for connection in connections:
        answer = connection.answer(max(0.0, deadline - time.monotonic()))
        if isinstance(answer, HostFacts):
            answers.append((connection, answer))
        else:
            answers.append((connection, connection.failure()))
    return answers


class HostProcesses(ProcessGroup):
    """The workers of a run on several hosts."""

    def __init__(self, starts: Sequence[tuple[Connection, WorkersStart]]) -> None:
        super().__init__(sum(len(start.ranks) for _, start in starts))
        self._starts = starts
        self._lost: dict[str, str] = {}
        self._over: dict[str, AllEnded] = {}
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the workers of all hosts."""
        for connection, start in self._starts:
            connection.send(start)
            thread = threading.Thread(
                target=self._follow,
                args=(connection, start.ranks),
                daemon=True,
            )
            thread.start()
            self._threads.append(thread)

    def _follow(self, connection: Connection, ranks: Sequence[int]) -> None:
        while (answer := connection.answer()) is not None:
            if isinstance(answer, WorkerEnded):
                self._end(answer.rank, answer.code)
            elif isinstance(answer, AllEnded):
                self._over[connection.host] = answer
        if connection.host not in self._over:
            error = connection.failure()
            self._lost[connection.host] = (
                f"host {connection.host} was lost ({error.received})"
            )
        # Nobody will ever tell how these have ended.
        for rank in ranks:
            if not self.ended(rank):
                self._end(rank, SSH_FAILED)

    def stop(self) -> None:
        """End all workers; a host that does not confirm it within `STOPS_WITHIN` seconds is lost."""
        # All are closed before any is waited for, so that hosts end their workers at the same time.
        for connection, _ in self._starts:
            connection.close()
        deadline = time.monotonic() + STOPS_WITHIN
        for connection, _ in self._starts:
            connection.end(deadline)
        for thread in self._threads:
            thread.join()

    def lost(self) -> str:
        """Return which hosts were lost, and why."""
        return "; ".join(self._lost.values())

    def others(self) -> float:
        """Return the share that other programs used on the host on which they used the most."""
        return max(end.share for end in self._over.values())


def passed_on() -> dict[str, str]:
    """Return the variables of this process that the workers of other hosts get too: those of libraries."""
    passed = {}
    for name, value in os.environ.items():
        if name.startswith(PASSED_ON):
            passed[name] = value
    return passed
