"""What Slurm says of its partitions and of a user's accounts, held against a site profile."""

import getpass
import re
from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.check.line import Line, failed, passed, warned
from scalestudy.errors import ScalestudyError
from scalestudy.launch.slurm.client import SlurmAbsent, SlurmRefused, SlurmSilent, ask
from scalestudy.launch.slurm.time_limit import notation

WHERE = "Slurm"
SINFO_FORMAT = "%P|%a|%l|%D|%c|%m|%G"
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", re.IGNORECASE)
_GPUS = re.compile(r"\bgpu(?::[^:,()]+)?:(\d+)")


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
    """

    partition: str
    default: bool
    up: bool
    seconds: int | None
    count: int
    cpus: int
    memory: int
    gpus: int


@dataclass(frozen=True)
class Wanted:
    """What jobs ask for: of a node, unless it says otherwise.

    Attributes:
        partition: Its name, or None for the default.
        account: To charge, or None for the default.
        seconds: Time limit of the longest job.
        nodes: Of the largest job.
        cpus: Cores.
        memory: Bytes; 0 where nothing is asked for.
        gpus: GPUs.
    """

    partition: str | None
    account: str | None
    seconds: int | None
    nodes: int
    cpus: int
    memory: int
    gpus: int


def parse_sinfo(text: str) -> list[Nodes]:
    """Lines of `sinfo -h -o SINFO_FORMAT`; a count like "12+" is its lower bound."""
    found = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|", 6)]
        if len(fields) == 7:
            name, state, limit, count, cpus, memory, gres = fields
            found.append(
                Nodes(
                    name.rstrip("*"), name.endswith("*"), state == "up", seconds(limit), _number(count),
                    _number(cpus), _number(memory) * 2**20, sum(map(int, _GPUS.findall(gres))),
                )
            )  # fmt: skip
    return found


def seconds(text: str) -> int | None:
    """Seconds of a Slurm time: "30" (minutes), "30:00", "1:00:00", "1-00:00:00"; None for no limit."""
    days, _, rest = text.rpartition("-")
    parts = rest.split(":")
    if not all(part.isdigit() for part in parts) or (days and not days.isdigit()):
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


def judge_partition(nodes: Sequence[Nodes], wanted: Wanted) -> list[Line]:
    """Whether the partition is there, up, and has such nodes for that long."""
    names = list(dict.fromkeys(each.partition for each in nodes))
    name = wanted.partition or next((each.partition for each in nodes if each.default), None)
    if name is None:
        return [failed("slurm", WHERE, "no default partition", f"Name a partition: {', '.join(names)}.")]
    own = [each for each in nodes if each.partition == name]
    if not own:
        action = f"Set partition in the site profile to one of {', '.join(names) or 'none'}."
        return [failed("slurm", WHERE, f"no partition {name}", action)]
    if not any(each.up for each in own):
        return [warned("slurm", WHERE, f"partition {name} is down", "Jobs wait until it is up.")]
    lines = []
    limit = own[0].seconds
    if limit is not None and wanted.seconds is not None and wanted.seconds > limit:
        action = f"Set time_limit in the site profile to at most {notation(limit)}."
        seen = f"{notation(wanted.seconds)} asked for, {notation(limit)} allowed in {name}"
        lines.append(failed("slurm", WHERE, seen, action))
    fitting = own
    for attribute, text in (("cpus", "cores"), ("gpus", "GPUs"), ("memory", "bytes of memory")):
        need = getattr(wanted, attribute)
        most = max(getattr(each, attribute) for each in fitting)
        if need > most:
            seen = f"{need} {text} a node asked for, {most} at most in {name}"
            action = (
                "Correct the site profile (cpus_per_node, gpus_per_node, memory_per_node), or the partition."
            )
            lines.append(failed("slurm", WHERE, seen, action))
            break
        fitting = [each for each in fitting if getattr(each, attribute) >= need]
    count = sum(each.count for each in fitting)
    if not lines and count < wanted.nodes:
        seen = f"{wanted.nodes} nodes needed, {count} such in {name}"
        lines.append(failed("slurm", WHERE, seen, "Take fewer workers, or another partition."))
    return lines or [passed("slurm", WHERE, f"partition {name}: up, {count} such nodes")]


def judge_account(accounts: Sequence[str], wanted: Wanted) -> Line:
    """Whether the user may charge the account.

    Args:
        accounts: Accounts of the user, as sacctmgr tells.
        wanted: What jobs ask for.
    """
    names = ", ".join(dict.fromkeys(accounts))
    if wanted.account is None:
        return passed("slurm", WHERE, f"default account of {names}" if names else "no account asked for")
    if wanted.account not in accounts:
        action = f"Set account in the site profile to one of {names}." if names else "Ask the site for one."
        return failed("slurm", WHERE, f"account {wanted.account} is not yours", action)
    return passed("slurm", WHERE, f"account {wanted.account}")


def slurm_lines(wanted: Wanted) -> list[Line]:
    """Ask Slurm, each question with a time limit."""
    try:
        nodes = parse_sinfo(ask("sinfo", "-h", "-o", SINFO_FORMAT))
    except SlurmAbsent as error:
        return [failed("slurm", "here", f"no Slurm client ({error.received})", error.action)]
    except SlurmSilent as error:
        return [failed("slurm", WHERE, f"no answer: {error.reason}", "Try again later, or ask the site.")]
    except SlurmRefused as error:
        return [failed("slurm", WHERE, error.words, "Ask the site.")]
    return [*judge_partition(nodes, wanted), _account(wanted)]


def _account(wanted: Wanted) -> Line:
    user = getpass.getuser()
    try:
        text = ask("sacctmgr", "-n", "-P", "show", "assoc", f"user={user}", "format=Account")
    except ScalestudyError:
        seen = "no accounting answers" + (f": account {wanted.account} not checked" if wanted.account else "")
        return passed("slurm", WHERE, seen)
    return judge_account([line.strip() for line in text.splitlines() if line.strip()], wanted)
