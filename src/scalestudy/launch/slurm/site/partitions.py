"""What Slurm says of its partitions, read from sinfo. Pure."""

import re
from dataclasses import dataclass

SINFO_FORMAT = "%P|%a|%l|%D|%c|%m|%G"
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", re.IGNORECASE)
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
    """Seconds of a Slurm time: "30" (minutes), "30:00", "1:00:00", "1-00:00:00"; None for no limit."""
    days, _, rest = text.rpartition("-")
    parts = rest.split(":")
    digits = all(part.isascii() and part.isdigit() for part in (*parts, days or "0"))
    if not digits or len(parts) > 3:
        return None
    numbers = [int(part) for part in parts]
    if days:
        hours, minutes, secs = (*numbers, 0, 0)[:3]
    elif len(numbers) == 3:
        hours, minutes, secs = numbers
    else:
        hours, minutes, secs = 0, numbers[0], (*numbers, 0)[1]
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + secs


def memory_bytes(text: str) -> int:
    """Bytes of a Slurm memory request, "180G"; a bare number is in MiB. 0 for what is none."""
    match = _MEMORY.fullmatch(text.strip())
    return int(float(match[1]) * 1024 ** ("KMGT".index(match[2].upper() or "M") + 1)) if match else 0


def _number(text: str) -> int:
    digits = re.match(r"\d+", text)
    return int(digits[0]) if digits else 0
