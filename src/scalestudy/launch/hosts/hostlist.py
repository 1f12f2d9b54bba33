"""The hosts of a study, and how many of a run's processes each of them gets."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scalestudy.util.errors import UserError

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.@-]*"  # never an option of ssh
_COUNT = "([1-9][0-9]{0,4})"
_ITEM = re.compile(rf"({_NAME})(?::{_COUNT})?", re.ASCII)
_LINE = re.compile(rf"({_NAME})(?:(?::|\s+slots\s*=\s*){_COUNT})?(?:\s+max[-_]slots\s*=\s*\d+)?", re.ASCII)


@dataclass(frozen=True)
class Listed:
    """A host as listed: its name for ssh, and its largest number of workers; None if the list has none."""

    name: str
    slots: int | None = None


def listed(hosts: Sequence[str] | str | None, where: str = "") -> tuple[Listed, ...]:
    """Return the hosts of `launch.hosts`: names, or the absolute path of a host file.

    Raises:
        UserError: If there are none, a host is malformed or listed twice, or the file cannot be read.
            `where` is the line of the study file, for the message.
    """
    if not hosts:
        raise UserError(
            'hosts beside launch.on = "hosts"',
            f"none{where}",
            'Write hosts = ["a", "b:2"] under [launch], or the path of a host file.',
        )
    in_file = isinstance(hosts, str)
    source = f" in {hosts}" if in_file else where
    found = []
    for text in _lines(hosts) if isinstance(hosts, str) else hosts:
        match = (_LINE if in_file else _ITEM).fullmatch(text)
        if match is None:
            raise UserError(
                "a host, such as lab2, me@lab2 or lab2:4 (in a host file `lab2 slots=4`)",
                f"{text!r}{source}",
                "Correct it.",
            )
        found.append(Listed(match[1], int(match[2]) if match[2] else None))
    names = [host.name for host in found]
    if not found or len(set(names)) < len(names):
        twice = next((name for name in names if names.count(name) > 1), None)
        raise UserError(
            "each host once",
            f"{twice} twice{source}" if twice else f"no host{source}",
            "Give its number of workers instead, as lab2:4."
            if twice
            else "Add lines such as `lab2 slots=4`.",
        )
    return tuple(found)


def _lines(file: str) -> list[str]:
    try:
        text = Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise UserError("a host file", f"{file}: {reason}", "Correct the path in launch.hosts.") from None
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def shares(slots: Sequence[int], processes: int, *, one_host: bool) -> list[int]:
    """Return the number of processes of each host: on one, or balanced over the first hosts that suffice.

    Six processes on hosts with 4 slots each are 3 and 3, on hosts with 4 and 2 slots 4 and 2.
    """
    counts = [0] * len(slots)
    if one_host:
        fitting = [index for index, most in enumerate(slots) if most >= processes]
        counts[fitting[0] if fitting else slots.index(max(slots))] = processes
        return counts
    used = next((count for count in range(2, len(slots)) if sum(slots[:count]) >= processes), len(slots))
    for _ in range(processes):
        room = [index for index in range(used) if counts[index] < slots[index]]
        counts[min(room or range(used), key=lambda index: counts[index])] += 1
    return counts
