"""What a Python that is to be started needs, and how a fork server (`fork_server.py`) receives it."""

import dataclasses
import json
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

LENGTH = struct.Struct("!I")


@dataclass(frozen=True)
class PythonStart:
    """A Python that is to be started.

    Attributes:
        python: Its path.
        safe: Whether the working folder stays off the path of modules (-P).
        module: The module to run, or "".
        file: The file to run, or "".
        arguments: What follows in `sys.argv`.
        environment: All environment variables.
        folder: Working folder.
        new_session: Whether it leads a session of its own.
        cores: Cores that it may run on.
    """

    python: str
    safe: bool
    module: str
    file: str
    arguments: Sequence[str]
    environment: dict[str, str]
    folder: str
    new_session: bool
    cores: Sequence[int]

    @property
    def command(self) -> list[str]:
        """The whole command line."""
        options = ["-P"] if self.safe else []
        program = ["-m", self.module] if self.module else [self.file]
        return [self.python, *options, *program, *self.arguments]


def send(channel: socket.socket, start: PythonStart, streams: Sequence[int]) -> None:
    """Send what to start, with the descriptors of its standard streams."""
    text = json.dumps(dataclasses.asdict(start)).encode()
    socket.send_fds(channel, [LENGTH.pack(len(text))], [*streams])
    channel.sendall(text)


def receive(channel: socket.socket) -> tuple[PythonStart, list[int]] | None:
    """Receive what to start, and the descriptors; None once the other end is closed."""
    head, streams, _, _ = socket.recv_fds(channel, LENGTH.size, 3)
    if not head:
        return None
    (length,) = LENGTH.unpack(head)
    text = b""
    while len(text) < length:
        text += channel.recv(length - len(text))
    return PythonStart(**json.loads(text)), streams
