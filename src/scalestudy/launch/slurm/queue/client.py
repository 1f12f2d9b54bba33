"""Slurm's client commands, each with a time limit. Nothing else starts them.

Without a controller they wait for minutes, and what they print depends on the language and on variables.
"""

import os
from collections.abc import Mapping, Sequence

from scalestudy.launch.queue.base import QueueAbsent, QueueRefused, QueueSilent
from scalestudy.launch.queue.program import ProgramAbsent, ProgramSilent, answer, time_limit

TIMEOUT = 20.0
"""Seconds that a command may take; SCALESTUDY_SLURM_TIMEOUT says otherwise."""
TIMEOUT_VARIABLE = "SCALESTUDY_SLURM_TIMEOUT"
FORMATS = ("SQUEUE_", "SACCT_", "SCONTROL_", "SLURM_TIME_FORMAT", "SLURM_BITSTR_LEN")
"""Variables of a user's own taste in output, which the parsers do not share."""
UNREACHABLE = (
    "unable to contact slurm controller",
    "socket timed out",
    "connection refused",
    "connection timed out",
    "communication connection failure",
    "transport endpoint is not connected",
    "zero bytes were transmitted",
    "no route to host",
    "problem talking to the database",
    "backup controller in standby mode",
    "plugin initialization failed",
)


class SlurmSilent(QueueSilent):
    """Slurm gave no answer in time; `reason` says how, in one line."""

    def __init__(self, command: str, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"an answer of Slurm to `{command}`",
            reason,
            f"Try again later; {TIMEOUT_VARIABLE}=SECONDS sets how long to wait.",
        )


class SlurmRefused(QueueRefused):
    """Slurm said no; `words` are its own."""

    def __init__(self, command: str, words: str, action: str = "") -> None:
        self.words = words
        if command == "sbatch":
            action = action or "Correct what Slurm names, in the site profile or the study."
            super().__init__("a job that Slurm takes (`sbatch`)", words, action)
        else:
            super().__init__(f"a `{command}` that Slurm takes", words, "Correct what Slurm names.")


class SlurmAbsent(QueueAbsent):
    """This machine has no Slurm, or belongs to no cluster."""

    def __init__(self, program: str, why: str = "none in PATH") -> None:
        super().__init__(
            f"Slurm's commands on this machine ({program})",
            why,
            'Log in to the cluster (some want `module load slurm`), or set launch.on = "local".',
        )


def ask(program: str, *arguments: str) -> str:
    """What a client command prints.

    Args:
        program: "squeue", "sacct", "scontrol", "sbatch" or "scancel".
        arguments: Its arguments.

    Raises:
        SlurmSilent: If it took too long, or could not reach the controller.
        SlurmRefused: If it failed, with Slurm's own words.
        SlurmAbsent: If there is no such command.
    """
    limit = time_limit(os.environ, TIMEOUT_VARIABLE, TIMEOUT)
    try:
        code, output, errors = answer([program, *arguments], client_environment(os.environ), limit)
    except ProgramAbsent:
        raise SlurmAbsent(program) from None
    except ProgramSilent:
        raise SlurmSilent(program, f"none within {limit:g} s") from None
    if code == 0:
        return output
    words = refusal(program, errors or output)
    if "configuration source" in words:
        raise SlurmAbsent(program, "commands that know of no cluster (no slurm.conf)")
    if any(phrase in words.lower() for phrase in UNREACHABLE):
        raise SlurmSilent(program, words)
    raise SlurmRefused(program, words or f"exit code {code}, and no word why")


def client_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a client command: the user's, in the parsers' language and formats."""
    kept = {key: value for key, value in environment.items() if not key.startswith(FORMATS)}
    return kept | {"LC_ALL": "C"}


def refusal(program: str, errors: str) -> str:
    """Slurm's own words on one line, without the name of the command before each and without warnings."""
    found: list[str] = []
    for line in errors.splitlines():
        words = line.strip().removeprefix(f"{program}: ")
        if words.lower().startswith("warning"):
            continue
        words = words.removeprefix("error: ").removeprefix("fatal: ").rstrip(".")
        if words and words not in found:
            found.append(words)
    return "; ".join(found)


def chunks(ids: Sequence[str], size: int = 100) -> list[Sequence[str]]:
    """Ids in batches that fit a command line and keep the controller's answer small."""
    return [ids[start : start + size] for start in range(0, len(ids), size)]
