"""The output of Slurm's client commands: the formats that are asked for, and their parsers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.launch.job_view import JobView
from scalestudy.launch.queue.site_profile import seconds

SQUEUE_FORMAT = "%i|%T|%N|%S|%r"
"""The reason is last, because only it may contain the separator."""
MARKED_FORMAT = "%i|%k"
SACCT_FORMAT = "JobID,State,ExitCode,NodeList,Start"
SINFO_FORMAT = "%P|%a|%l|%D|%c|%m|%G"


def split_rows(text: str, count: int) -> list[list[str]]:
    """Split lines into `count` fields and skip other lines; the last field may contain the separator."""
    rows = []
    for line in text.splitlines():
        fields = line.split("|", count - 1)
        # Sites' wrapper scripts and plug-ins print lines of their own.
        if len(fields) == count:
            rows.append([field.strip() for field in fields])
    return rows


def parse_squeue(text: str) -> dict[str, JobView]:
    """Return jobs, by id, from the output of `squeue -h -t all -o SQUEUE_FORMAT`."""
    views = {}
    for job, state, nodes, start, reason in split_rows(text, 5):
        # Tasks of arrays and components of heterogeneous jobs ("7_1", "7+0") are never ours.
        if job.isdecimal():
            views[job] = JobView(
                job=job,
                state=state,
                nodes=_value(nodes),
                start=_value(start),
                reason=_value(reason),
            )
    return views


def parse_sacct(text: str) -> dict[str, JobView]:
    """Return jobs, by id, from the output of `sacct -P -n -X -o SACCT_FORMAT`; a job's last line counts."""
    views = {}
    for job, state, code, nodes, start in split_rows(text, 5):
        exit_code, signal = _codes(code)
        if job.isdecimal():
            views[job] = JobView(
                job=job,
                # "CANCELLED by 1000"; a "+" stands for what did not fit the column.
                state=state.partition(" by ")[0].rstrip("+"),
                nodes=_value(nodes),
                start=_value(start),
                exit_code=exit_code,
                signal=signal,
            )
    return views


def _codes(text: str) -> tuple[int | None, int | None]:
    """Return the exit code and the signal of "CODE:SIGNAL", in which signal 0 stands for none."""
    match = re.fullmatch(r"(\d+):(\d+)", text.strip())
    if match is None:
        return None, None
    return int(match[1]), int(match[2]) or None


def _value(text: str) -> str:
    # squeue, sacct and sinfo each have words of their own for "none".
    if text in ("None", "N/A", "Unknown", "(null)", "None assigned", "n/a"):
        return ""
    return text


@dataclass(frozen=True)
class Nodes:
    """Identical nodes of a partition; one line of sinfo.

    Attributes:
        partition: Name of the partition.
        default: Whether it is the default partition.
        up: Whether the partition accepts jobs.
        seconds: Time limit of the partition; None for no limit.
        count: Number of nodes.
        cpus: CPUs of each node.
        memory: Bytes of memory of each node.
        gpus: GPUs of each node.
        gpu_types: Slurm's names of the GPU types, such as "v100"; empty if it has none.
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

    @property
    def gpus_label(self) -> str:
        """Types of its GPUs in words: "a100", "GPUs without a type"."""
        return " + ".join(self.gpu_types) or "GPUs without a type"


def parse_sinfo(text: str) -> list[Nodes]:
    """Parse the output of `sinfo -h -e -o SINFO_FORMAT`."""
    nodes = []
    for name, state, limit, count, cpus, memory, gres in split_rows(text, 7):
        # "gpu:a100:4(S:0-1),gpu:2": a type is optional, as are the sockets that the GPUs are near.
        gpus = re.findall(r"\bgpu(?::([^:,()]+))??:(\d+)(?=[,(]|$)", gres)
        total = 0
        types = []
        for kind, number in gpus:
            total += int(number)
            if kind and kind not in types:
                types.append(kind)
        nodes.append(
            Nodes(
                # sinfo marks the default partition by a star.
                partition=name.rstrip("*"),
                default=name.endswith("*"),
                up=state == "up",
                seconds=partition_seconds(limit),
                count=_number(count),
                cpus=_number(cpus),
                memory=_number(memory) * 2**20,
                gpus=total,
                gpu_types=tuple(types),
            )
        )
    return nodes


def gpu_kinds(nodes: Sequence[Nodes], partition: str) -> dict[str, int]:
    """Return the number of nodes of a partition for each kind of GPUs; those without a type are a kind."""
    kinds: dict[str, int] = {}
    for node in nodes:
        if node.partition == partition and node.gpus:
            kinds[node.gpus_label] = kinds.get(node.gpus_label, 0) + node.count
    return kinds


def partition_seconds(text: str) -> int | None:
    """Return a partition's time limit in seconds; None for no limit or an unreadable one ("n/a")."""
    try:
        return seconds(text)
    except ValueError:
        return None


def _number(text: str) -> int:
    # sinfo writes "12+" for the smallest of several values.
    digits = re.match(r"\d+", text)
    if digits is None:
        return 0
    return int(digits[0])
