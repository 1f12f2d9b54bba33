"""Slurm's short forms of host lists and task counts, written out. No Slurm is needed."""

import itertools
import re

from scalestudy.util.errors import UserError

LIMIT = 65_536
"""Most hosts of a list, as in Slurm; more is a mistake, or an attack on memory."""

_ELEMENT = re.compile(r"(?:[^\[\],\s]|\[[^\[\]\s]*\])+")
_LIST = re.compile(rf"[,\s]*(?:{_ELEMENT.pattern}(?:[,\s]+|$))*")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)
_COUNT = re.compile(r"(\d+)(?:\(x(\d+)\))?", re.ASCII)


def expand_hosts(text: str) -> list[str]:
    """The hosts of a Slurm host list: `n[1-2,05-07]-ib` is n1-ib, n2-ib, n05-ib, n06-ib, n07-ib.

    Order, duplicates and widths are Slurm's. With several brackets in a name the last one counts
    fastest, then the first (`scontrol show hostnames` does so).

    Raises:
        UserError: If the list is malformed, or longer than `LIMIT`.
    """
    if not _LIST.fullmatch(text):
        raise _malformed(text)
    hosts: list[str] = []
    for element in _ELEMENT.findall(text):
        hosts += _expand(element, text, LIMIT - len(hosts))
    return hosts


def tasks_per_node(text: str) -> list[int]:
    """The tasks of each node in Slurm's short form: `2(x3),1` is 2, 2, 2, 1.

    Raises:
        UserError: If it is malformed, or longer than `LIMIT`.
    """
    counts: list[int] = []
    for part in text.split(","):
        match = _COUNT.fullmatch(part)
        times = int(match[2] or 1) if match else 0
        if match is None or not 0 < times <= LIMIT - len(counts):
            raise UserError(
                "tasks per node in Slurm's form, as in 2(x3),1",
                repr(text),
                "Take it from SLURM_TASKS_PER_NODE as it is.",
            )
        counts += [int(match[1])] * times
    return counts


def _expand(element: str, text: str, room: int) -> list[str]:
    parts = re.split(r"\[(.*?)\]", element)
    names, brackets = parts[::2], [_numbers(part, text) for part in parts[1::2]]
    if not all(_NAME.fullmatch(name) for name in names if name):
        raise _malformed(text)
    count = 1
    for numbers in brackets:
        count *= len(numbers)
    if count > room:
        raise _malformed(text, f"more than {LIMIT} hosts")
    if not brackets:
        return [element]
    *before, last = brackets
    return [
        "".join(itertools.chain(*zip(names, (*reversed(chosen), end), strict=False))) + names[-1]
        for chosen in itertools.product(*reversed(before))
        for end in last
    ]


def _numbers(bracket: str, text: str) -> list[str]:
    numbers: list[str] = []
    for part in bracket.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise _malformed(text)
        first, last = int(match[1]), int(match[2] or match[1])
        if not 0 <= last - first < LIMIT:
            raise _malformed(text, f"the range {part!r} in {text!r}")
        numbers += [str(number).zfill(len(match[1])) for number in range(first, last + 1)]
        if len(numbers) > LIMIT:
            raise _malformed(text, f"more than {LIMIT} hosts")
    return numbers


def _malformed(text: str, received: str | None = None) -> UserError:
    return UserError(
        "a list of hosts in Slurm's form, as in n[1-2,05-07]-ib,m3",
        received or repr(text),
        "Take it from Slurm as it is (SLURM_JOB_NODELIST, or `squeue -o %N`).",
    )
