"""The client commands of PBS Professional, each with a time limit. Nothing else starts them."""

import os

from scalestudy.launch.queue.base import QueueAbsent, QueueRefused, QueueSilent
from scalestudy.launch.queue.program import ProgramAbsent, ProgramSilent, answer, time_limit

TIMEOUT = 20.0
"""Seconds that a command may take; SCALESTUDY_PBS_TIMEOUT says otherwise."""
TIMEOUT_VARIABLE = "SCALESTUDY_PBS_TIMEOUT"
UNREACHABLE = (
    "cannot connect to server",
    "connection refused",
    "connection timed out",
    "no route to host",
    "unknown host",
    "pbs_iff",
    "communication failure",
    "server shutting down",
)
FORGOTTEN = ("unknown job id", "job has finished", "unknown job array")
"""How PBS says of a job that there is nothing left to ask or to delete."""


class PbsSilent(QueueSilent):
    """PBS gave no answer in time; `reason` says how, in one line."""

    def __init__(self, command: str, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"an answer of PBS to `{command}`",
            reason,
            f"Try again later; {TIMEOUT_VARIABLE}=SECONDS sets how long to wait.",
        )


class PbsRefused(QueueRefused):
    """PBS said no; `words` are its own."""

    def __init__(self, command: str, words: str) -> None:
        self.words = words
        if command == "qsub":
            action = "Correct what PBS names, in the site profile or the study; `qstat -Q` shows queues."
            super().__init__("a job that PBS takes (`qsub`)", words, action)
        else:
            super().__init__(f"a `{command}` that PBS takes", words, "Correct what PBS names.")


class PbsAbsent(QueueAbsent):
    """This machine has no PBS."""

    def __init__(self, program: str) -> None:
        super().__init__(
            f"the commands of PBS on this machine ({program})",
            "none in PATH",
            'Log in to the cluster (some want `module load pbs`), or set launch.on = "local".',
        )


def ask(program: str, *arguments: str) -> str:
    """What a client command prints. That some jobs are forgotten is no failure.

    Args:
        program: "qsub", "qstat" or "qdel".
        arguments: Its arguments.

    Raises:
        PbsSilent: If it took too long, or could not reach the server.
        PbsRefused: If it failed, with PBS's own words.
        PbsAbsent: If there is no such command.
    """
    limit = time_limit(os.environ, TIMEOUT_VARIABLE, TIMEOUT)
    try:
        code, output, errors = answer([program, *arguments], os.environ | {"LC_ALL": "C"}, limit)
    except ProgramAbsent:
        raise PbsAbsent(program) from None
    except ProgramSilent:
        raise PbsSilent(program, f"none within {limit:g} s") from None
    if code == 0:
        return output
    lines = [line.strip().removeprefix(f"{program}: ").rstrip(".") for line in errors.splitlines()]
    lines = [line for line in lines if line]
    if any(phrase in errors.lower() for phrase in UNREACHABLE):
        raise PbsSilent(program, "; ".join(dict.fromkeys(lines)))
    if lines and all(any(phrase in line.lower() for phrase in FORGOTTEN) for line in lines):
        return output
    raise PbsRefused(program, "; ".join(dict.fromkeys(lines)) or f"exit code {code}, and no word why")
