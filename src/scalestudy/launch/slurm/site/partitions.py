"""What Slurm says of its partitions, read from sinfo. Pure."""

import re
from dataclasses import dataclass

from scalestudy.launch.queue.site import time_limit

SINFO_FORMAT = "%P|%a|%l|%D|%c|%m|%G"
_GPUS = re.compile(r"\bgpu(?::(?P<type>[^:,()]+))??:(?P<count>\d+)(?=[,(]|$)")


@dataclass(frozen=True)
class Nodes:
    """Nodes of a partition that are alike, a line of sinfo.

    Attributes:
        partition: Its name.
        default: Whether jobs that name none go there.
        up: Whether it takes jobs.
        seconds: Its time limit; None for none.
        count: How many there are.
        cpus: Of each.
        memory: Bytes of each.
        gpus: Of each.
        gpu_types: What Slurm calls them: "v100"; empty where it has no names.
    """

    partition: str
    default: bool
    up: bool
    seconds: int | None
    count: int
    cpus: int
    memory: int
    gpus: int
    gpu_types: tuple[str, ...] = ()


def parse_sinfo(text: str) -> list[Nodes]:
    """Lines of `sinfo -h -o SINFO_FORMAT`; a count like "12+" is its lower bound."""
    found = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|", 6)]
        if len(fields) == 7:
            name, state, limit, count, cpus, memory, gres = fields
            gpus = list(_GPUS.finditer(gres))
            found.append(
                Nodes(
                    name.rstrip("*"), name.endswith("*"), state == "up", seconds(limit), _number(count),
                    _number(cpus), _number(memory) * 2**20, sum(int(each["count"]) for each in gpus),
                    tuple(dict.fromkeys(each["type"] for each in gpus if each["type"])),
                )
            )  # fmt: skip
    return found


def seconds(text: str) -> int | None:
    """Seconds of a partition's limit; None for no limit, and for what is no time ("n/a")."""
    try:
        return time_limit.seconds(text)
    except ValueError:
        return None


def _number(text: str) -> int:
    digits = re.match(r"\d+", text)
    return int(digits[0]) if digits else 0
