"""Small values between the processes of a script, beside whatever the script itself exchanges."""

import contextlib
import json
import os
import threading
import time
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

import numpy as np

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.ports import PORT_BLOCK
from scalestudy.cluster.private_files import SECRET
from scalestudy.engines.group import Group
from scalestudy.engines.rendezvous import find_address, start_within
from scalestudy.util.errors import RunError, UserError

AGAIN = 0.1
"""Seconds between two attempts to connect."""
_held: list[str] = []


class OneProcess(Group):
    """A single process."""

    def share_object(self, value: Any) -> Any:
        return value

    def to_first(self, value: Any) -> list[Any] | None:
        return [value]


def hold_secret() -> str:
    """Return the run's secret, and remember it, since Horovod's rendezvous takes it from the environment."""
    secret = os.environ.get(SECRET, "")
    if secret:
        _held[:] = [secret]
    return next(iter(_held), "")


class SecretGroup(Group):
    """The processes of a script, each connected with rank 0 by a socket that requires the run's secret.

    The processes authenticate each other (HMAC, `multiprocessing.connection`). Values travel as JSON, so that
    none of them can run code.

    Args:
        placement: Placement of this process, with a port.

    Raises:
        UserError: There is no secret or no port.
        RunError: Rank 0 cannot listen, or is not reached in time.
    """

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement.rank, placement.size)
        secret = hold_secret()
        if not secret or placement.port is None:
            raise UserError(
                "processes that `scalestudy launch` has started, with a secret and a port",
                f"{placement.size} processes from {placement.source}",
                "Start the script with scalestudy launch, also under srun.",
            )
        self._address = find_address(placement), _port(placement, placement.port)
        # Who does not know it cannot connect, nor read or send values.
        self._key = bytes.fromhex(secret)
        self._peers: dict[int, Connection] = {}
        self._arrived = threading.Condition()
        if self.rank == 0:
            self._listen()
        else:
            self._peers[0] = self._connect()

    def share_object(self, value: Any) -> Any:
        """Return rank 0's JSON value on every rank."""
        if self.rank:
            return self._receive(0)
        for rank in range(1, self.size):
            self._send(rank, value)
        return value

    def to_first(self, value: Any) -> list[Any] | None:
        """Return all JSON values by rank on rank 0, which waits for them; elsewhere None, without waiting."""
        if self.rank:
            self._send(0, value)
            return None
        return [value, *(self._receive(rank) for rank in range(1, self.size))]

    def _listen(self) -> None:
        try:
            listener = Listener(self._address, backlog=self.size, authkey=self._key)
        except OSError as error:
            raise RunError(
                f"port {self._address[1]} to be free for the processes of the script",
                str(error),
                "Stop the program that listens there (`ss -ltnp`), or start again.",
            ) from error
        threading.Thread(
            target=self._accept,
            args=(listener,),
            name="peers",
            daemon=True,
        ).start()

    def _accept(self, listener: Listener) -> None:
        while len(self._peers) < self.size - 1:
            with contextlib.suppress(
                AuthenticationError,
                EOFError,
                OSError,
                ValueError,
            ):
                # Whoever connects without the secret must not end the waiting for the others.
                peer = listener.accept()
                rank = json.loads(peer.recv_bytes())
                with self._arrived:
                    self._peers[rank] = peer
                    self._arrived.notify_all()

    def _connect(self) -> Connection:
        deadline = time.monotonic() + start_within()
        while True:
            try:
                # Rank 0 may not listen yet.
                peer = Client(self._address, authkey=self._key)
            except (OSError, EOFError, AuthenticationError) as error:
                if time.monotonic() > deadline:
                    raise self._missing(0, str(error)) from error
                time.sleep(AGAIN)
                continue
            peer.send_bytes(json.dumps(self.rank).encode())
            return peer

    def _peer(self, rank: int) -> Connection:
        with self._arrived:
            if not self._arrived.wait_for(lambda: rank in self._peers, start_within()):
                raise self._missing(rank, "nothing")
        return self._peers[rank]

    def _send(self, rank: int, value: Any) -> None:
        # JSON and not pickle: what another process sends must not be able to run code.
        text = json.dumps(value, default=lambda array: np.asarray(array).tolist())
        try:
            self._peer(rank).send_bytes(text.encode())
        except OSError as error:
            raise self._missing(rank, str(error)) from error

    def _receive(self, rank: int) -> Any:
        peer = self._peer(rank)
        try:
            if not peer.poll(start_within()):
                raise self._missing(rank, "nothing")
            return json.loads(peer.recv_bytes())
        except (EOFError, OSError) as error:
            raise self._missing(rank, "its end") from error

    def _missing(self, rank: int, received: str) -> RunError:
        return RunError(
            f"rank {rank} at the same point of the script within {start_within():.0f} s",
            received,
            "Measure on every worker, not on rank 0 alone. See the logs of the others.",
        )


def _port(placement: Placement, first: int) -> int:
    """Return a port that neither TensorFlow nor Horovod takes: see `launch.reserve.grant`."""
    one_node = len(set(placement.hosts)) == 1
    if one_node:
        return first + placement.size
    return first + PORT_BLOCK - 1
