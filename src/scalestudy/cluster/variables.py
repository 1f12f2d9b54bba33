"""Read the variables that launchers set, and derive ports from them."""

import zlib
from collections.abc import Mapping

from scalestudy.util.errors import UserError

Environment = Mapping[str, str]

FIRST_PORT, PORT_BLOCKS, PORT_BLOCK = 20_000, 187, 64
"""Ports of a run, below the range that Linux assigns by itself (from 32768)."""
PROGRESS_TIMEOUT = "SCALESTUDY_PROGRESS_TIMEOUT"
"""Variable: seconds that a run may be without progress, and that its ranks may start apart."""
PROXIES = (
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "grpc_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
)
"""Variables that would send gRPC's traffic, and so that of multi-worker runs, through a proxy."""


class Variables:
    """The variables of one launcher. A missing or malformed one is refused by name.

    Args:
        environment: Usually `os.environ`.
        source: Name of the launcher.
    """

    def __init__(self, environment: Environment, source: str) -> None:
        self._environment, self._source = environment, source

    def text(self, name: str) -> str:
        """Return the text of a required variable.

        Raises:
            UserError: If it is missing or empty.
        """
        value = self._environment.get(name, "").strip()
        if not value:
            raise self._refused(f"{name} (from {self._source})", name)
        return value

    def number(self, *names: str) -> int:
        """Return a required whole number, not below 0. Several names must hold the same number.

        Raises:
            UserError: If it is missing or anything else, or if the numbers differ.
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
    """Return the error for launchers, or variables of one, that disagree about the rank."""
    return UserError(
        "one rank for this process",
        received,
        "Start the workers with one launcher, and clear the other's variables.",
    )


def job_port(environment: Environment) -> int | None:
    """Return the first port of a Slurm or PBS job, the same on all its nodes; None outside of a job."""
    job = environment.get("SLURM_JOB_ID", "")
    if job.isascii() and job.isdigit():
        return _port_block(int(job))
    return name_port(environment["PBS_JOBID"]) if environment.get("PBS_JOBID") else None


def name_port(name: str) -> int:
    """Return the first port of a run, derived from a name that all its processes know."""
    return _port_block(zlib.crc32(name.encode()))


def _port_block(number: int) -> int:
    return FIRST_PORT + number % PORT_BLOCKS * PORT_BLOCK
