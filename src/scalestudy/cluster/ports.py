"""The ports of a run, which all of its processes derive from what they know."""

import zlib
from collections.abc import Mapping

FIRST_PORT, PORT_BLOCKS, PORT_BLOCK = 20_000, 187, 64
"""Ports of a run, below the range that Linux assigns by itself (from 32768)."""


def job_port(environment: Mapping[str, str]) -> int | None:
    """Return the first port of a Slurm or PBS job, the same on all its nodes; None outside of a job."""
    job = environment.get("SLURM_JOB_ID", "")
    if job.isascii() and job.isdigit():
        return _port_block(int(job))
    if environment.get("PBS_JOBID"):
        return name_port(environment["PBS_JOBID"])
    return None


def name_port(name: str) -> int:
    """Return the first port of a run, derived from a name that all its processes know."""
    # Not hash(), which differs between processes.
    return _port_block(zlib.crc32(name.encode()))


def _port_block(number: int) -> int:
    # Numbers of jobs follow one another: neighbours on a node get different blocks.
    return FIRST_PORT + number % PORT_BLOCKS * PORT_BLOCK
