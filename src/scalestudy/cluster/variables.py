"""Reading the variables that launchers set."""

import zlib
from collections.abc import Mapping

from scalestudy.util.errors import UserError

Environment = Mapping[str, str]

FIRST_PORT, PORT_BLOCKS, PORT_BLOCK = 20_000, 187, 64
"""Ports of a run: below those that Linux hands out by itself (from 32768)."""


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

    def number(self, name: str) -> int:
        """A variable that must be a whole number, not below 0.

        Raises:
            UserError: If it is anything else.
        """
        value = self._environment.get(name, "").strip()
        if not (value.isascii() and value.isdigit()):
            raise self._refused(f"a whole number in {name} (from {self._source})", name)
        return int(value)

    def _refused(self, expected: str, name: str) -> UserError:
        value = self._environment.get(name)
        return UserError(
            expected,
            "nothing" if value is None else repr(value),
            "Start all workers with one launcher; do not set its variables by hand.",
        )


def job_port(environment: Environment) -> int | None:
    """The first port of a job of Slurm or PBS, the same on all its nodes; None outside of a job."""
    job = environment.get("SLURM_JOB_ID", "")
    if job.isascii() and job.isdigit():
        return _block(int(job))
    return name_port(environment["PBS_JOBID"]) if environment.get("PBS_JOBID") else None


def name_port(name: str) -> int:
    """The first port of a run that all its processes know by one name."""
    return _block(zlib.crc32(name.encode()))


def _block(number: int) -> int:
    return FIRST_PORT + number % PORT_BLOCKS * PORT_BLOCK
