"""Reading the variables that launchers set, and the ports that follow from them."""

import zlib
from collections.abc import Mapping

from scalestudy.util.errors import UserError

Environment = Mapping[str, str]

FIRST_PORT, PORT_BLOCKS, PORT_BLOCK = 20_000, 187, 64
"""Ports of a run: below those that Linux hands out by itself (from 32768)."""
PROGRESS_TIMEOUT = "SCALESTUDY_PROGRESS_TIMEOUT"
"""Variable: seconds that a run may be without progress, and so that its ranks may start apart."""
PROXIES = (
    "http_proxy", "https_proxy", "all_proxy", "grpc_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
)  # fmt: skip
"""The variables that send gRPC's traffic, and so that of multi-worker runs, through a proxy."""


class Variables:
    """The variables of one launcher, which are complete and of the right form or are refused by name.

    Args:
        environment: Usually `os.environ`.
        source: Name of the launcher.
    """

    def __init__(self, environment: Environment, source: str) -> None:
        self._environment, self._source = environment, source

    def text(self, name: str) -> str:
        """A variable that must be there.

        Raises:
            UserError: If it is not there, or empty.
        """
        value = self._environment.get(name, "").strip()
        if not value:
            raise self._refused(f"{name} (from {self._source})", name)
        return value

    def number(self, *names: str) -> int:
        """A variable that must be a whole number, not below 0; of several names, one number told alike.

        Raises:
            UserError: If it is anything else.
        """
        numbers = {}
        for name in [name for name in names if name in self._environment] or names[:1]:
            value = self._environment.get(name, "").strip()
            if not (value.isascii() and value.isdigit()):
                raise self._refused(f"a whole number in {name} (from {self._source})", name)
            numbers[name] = int(value)
        if len(set(numbers.values())) > 1:
            listed = ", ".join(f"{name}={number}" for name, number in numbers.items())
            raise contradiction(f"{listed} (from {self._source})")
        return numbers.popitem()[1]

    def _refused(self, expected: str, name: str) -> UserError:
        value = self._environment.get(name)
        return UserError(
            expected,
            "nothing" if value is None else repr(value),
            "Start all workers with one launcher, and do not set its variables by hand.",
        )


def contradiction(received: str) -> UserError:
    """What two launchers, or two variables of one, say of the rank."""
    return UserError(
        "one rank for this process",
        received,
        "Start the workers with one launcher, and clear the other's variables.",
    )


def job_port(environment: Environment) -> int | None:
    """The first port of a job of Slurm or PBS, the same on all its nodes; None outside of a job."""
    job = environment.get("SLURM_JOB_ID", "")
    if job.isascii() and job.isdigit():
        return _port_block(int(job))
    return name_port(environment["PBS_JOBID"]) if environment.get("PBS_JOBID") else None


def name_port(name: str) -> int:
    """The first port of a run that all its processes know by one name."""
    return _port_block(zlib.crc32(name.encode()))


def _port_block(number: int) -> int:
    return FIRST_PORT + number % PORT_BLOCKS * PORT_BLOCK
