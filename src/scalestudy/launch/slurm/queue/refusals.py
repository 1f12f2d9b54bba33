"""What of a job Slurm has refused, and where to look for what it would take."""

import re
from pathlib import Path

from scalestudy.launch.slurm.queue.client import SlurmRefused

ASKED = (
    ("account", ("account", "partition"), "account", "sacctmgr show associations user=$USER"),
    ("partition", ("partition",), "partition", "sinfo -s"),
    ("qos", ("qos", "account"), "qos", "sacctmgr show associations user=$USER format=account,partition,qos"),
    ("feature", ("constraint",), "constraint", "sinfo -o '%P %D %f'"),
    ("time limit", ("time", "partition"), "time_limit", "sinfo -o '%P %l'"),
    ("gres", ("gres", "gpus"), "gpu_request", "sinfo -o '%P %D %G'"),
    ("memory", ("mem",), "memory_per_node", "sinfo -o '%P %D %m'"),
    ("reservation", ("reservation",), "directives", "scontrol show reservation"),
    (
        "node configuration",
        ("nodes", "ntasks-per-node", "cpus-per-task", "mem", "gres", "gpus", "constraint"),
        "tasks_per_node, cpus_per_node, gpus_per_node or memory_per_node", "sinfo -o '%P %D %c %m %G %f'",
    ),
)  # fmt: skip
"""A phrase of Slurm's, the options of sbatch that it may speak of (gpus: each that begins so), the key of the
site profile that they come from, and the command that shows what there is. The first phrase found counts."""


def explained(refused: SlurmRefused, script: Path) -> SlurmRefused:
    """The refusal of a script, with what the script asked for and where to look for what it may."""
    try:
        text = script.read_text()
    except OSError:
        return refused
    return _explained(refused.words, re.findall(r"^#SBATCH (--\S.*)$", text, re.MULTILINE))


def _explained(words: str, directives: list[str]) -> SlurmRefused:
    for phrase, options, key, command in ASKED:
        if phrase in words.lower():
            asked = [line for line in directives if _option(line).startswith(options)]
            found = f"{words} (asked for: {' '.join(asked)})" if asked else words
            action = f"`{command}` shows what there is; the site profile's key is {key}."
            return SlurmRefused("sbatch", found, action)
    return SlurmRefused("sbatch", words)


def _option(directive: str) -> str:
    return directive.removeprefix("--").partition("=")[0]
