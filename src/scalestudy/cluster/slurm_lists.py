"""Slurm's short forms of lists: hosts, and tasks per node."""

import itertools
import re
from collections.abc import Sequence
from typing import TypeVar

from scalestudy.util.errors import UserError

Item = TypeVar("Item")

# Expanded here, in Slurm's order: TensorFlow's resolver sorts names as text, so that node10 comes before node2,
# and ranks and addresses disagree.
_RANGES = r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*"
# ASCII: `\d` alone also matches digits of other scripts.
_ELEMENT = re.compile(rf"(?:[A-Za-z0-9._-]|\[{_RANGES}\])+", re.ASCII)
_LIST = re.compile(rf"[,\s]*(?:{_ELEMENT.pattern}(?:[,\s]+|$))*", re.ASCII)


def expand_hosts(text: str) -> list[str]:
    """Return the hosts of a Slurm host list: `n[1-2,05-07]-ib` is n1-ib, n2-ib, n05-ib, n06-ib, n07-ib.

    Order, duplicates and widths are Slurm's. With several brackets in a name, the last one varies fastest,
    then the first (as in `scontrol show hostnames`).

    Raises:
        UserError: If the list is malformed.
    """
    if not _LIST.fullmatch(text):
        raise _malformed(repr(text))
    hosts: list[str] = []
    for element in _ELEMENT.findall(text):
        # Plain parts and the contents of brackets alternate.
        parts = re.split(r"\[(.*?)\]", element)
        plain = parts[::2]
        brackets = [_numbers(part, text) for part in parts[1::2]]
        # `product` varies its last argument fastest: all but the last bracket are given in reverse.
        in_order = _all_but_last_reversed(brackets)
        for chosen in itertools.product(*in_order):
            # There is one plain part more than brackets; it may be empty.
            numbers = [*_all_but_last_reversed(chosen), ""]
            host = ""
            for part, number in zip(plain, numbers, strict=True):
                host += part + number
            hosts.append(host)
    return hosts


def _all_but_last_reversed(items: Sequence[Item]) -> list[Item]:
    return [*items[-2::-1], *items[-1:]]


def _numbers(bracket: str, text: str) -> list[str]:
    numbers: list[str] = []
    for part in bracket.split(","):
        low, _, high = part.partition("-")
        first = int(low)
        last = int(high or low)
        if first > last:
            raise _malformed(f"the range {part!r} in {text!r}")
        # As Slurm: `05-12` keeps its zeros.
        width = len(low)
        for number in range(first, last + 1):
            numbers.append(str(number).zfill(width))
    return numbers


def _malformed(received: str) -> UserError:
    return UserError(
        "a Slurm host list such as n[1-2,05-07]-ib,m3",
        received,
        "Use Slurm's own list: SLURM_JOB_NODELIST, or `squeue -o %N`.",
    )


def tasks_per_node(text: str) -> list[int]:
    """Return the number of tasks of each node from Slurm's short form: `2(x3),1` is 2, 2, 2, 1.

    Raises:
        UserError: If it is malformed.
    """
    counts: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part, re.ASCII)
        tasks = 0
        nodes = 0
        # A count for no nodes, `2(x0)`, is malformed, too.
        if match:
            tasks = int(match[1])
            nodes = int(match[2] or 1)
        if nodes == 0:
            raise UserError(
                "Slurm's tasks per node, such as 2(x3),1",
                repr(text),
                "Use the value of SLURM_TASKS_PER_NODE.",
            )
        counts += [tasks] * nodes
    return counts
