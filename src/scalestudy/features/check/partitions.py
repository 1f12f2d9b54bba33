"""What Slurm says of its partitions and of a user's accounts, held against a site profile."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.features.check.line import Line, failed, passed, warned
from scalestudy.launch.queue.base import QueueAbsent, QueueRefused, QueueUnreachable
from scalestudy.launch.queue.site import notation
from scalestudy.launch.slurm import SLURM, Nodes
from scalestudy.util import units

WHERE = "Slurm"


@dataclass(frozen=True)
class JobNeeds:
    """What the study's jobs will ask for: of a node, unless it says otherwise.

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
    seconds: float | None
    nodes: int
    cpus: int
    memory: int
    gpus: int


def judge_partition(nodes: Sequence[Nodes], request: JobNeeds) -> list[Line]:
    """Whether the partition is there, up, and has such nodes for that long."""
    names = list(dict.fromkeys(each.partition for each in nodes))
    name = request.partition or next((each.partition for each in nodes if each.default), None)
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
    if limit is not None and request.seconds is not None and request.seconds > limit:
        action = f"Set time_limit in the site profile to at most {notation(limit)}."
        asked = notation(None if math.isinf(request.seconds) else int(request.seconds))
        seen = f"{asked} asked for, {notation(limit)} allowed in {name}"
        lines.append(failed("slurm", WHERE, seen, action))
    fitting = own
    for attribute, text in (("cpus", "cores"), ("gpus", "GPUs"), ("memory", "of memory")):
        need = getattr(request, attribute)
        most = max(getattr(each, attribute) for each in own)
        if need > most:
            sizes = (units.size(need), units.size(most)) if attribute == "memory" else (need, most)
            seen = f"{sizes[0]} {text} a node asked for, {sizes[1]} at most in {name}"
            action = "Correct cpus_per_node, gpus_per_node, memory_per_node or partition in the site profile."
            lines.append(failed("slurm", WHERE, seen, action))
        fitting = [each for each in fitting if getattr(each, attribute) >= need]
    count = sum(each.count for each in fitting)
    if not lines and count < request.nodes:
        seen = f"{request.nodes} nodes needed, {count} such in {name}"
        lines.append(failed("slurm", WHERE, seen, "Take fewer workers, or another partition."))
    return lines or [passed("slurm", WHERE, f"partition {name}: up, {count} such nodes")]


def judge_account(own: Sequence[str], request: JobNeeds) -> Line:
    """Whether the user may charge the account.

    Args:
        own: Accounts of the user, as sacctmgr tells; none where there is no accounting.
        request: What jobs ask for.
    """
    names = ", ".join(dict.fromkeys(own))
    if not names:
        asked = f"; account {request.account} is not checked" if request.account else ""
        return passed("slurm", WHERE, f"no accounting answers{asked}")
    if request.account is None:
        return passed("slurm", WHERE, f"default account of {names}")
    if request.account not in own:
        action = f"Set account in the site profile to one of {names}."
        return failed("slurm", WHERE, f"account {request.account} is not yours", action)
    return passed("slurm", WHERE, f"account {request.account}")


def slurm_lines(request: JobNeeds) -> list[Line]:
    """Ask Slurm, each question with a time limit."""
    try:
        nodes = SLURM.queue.partitions()
    except QueueAbsent as error:
        return [failed("slurm", "here", f"no Slurm client ({error.received})", error.action)]
    except QueueUnreachable as error:
        return [failed("slurm", WHERE, f"no answer: {error.reason}", "Try again later, or ask the site.")]
    except QueueRefused as error:
        return [failed("slurm", WHERE, error.words, "Ask the site.")]
    return [*judge_partition(nodes, request), judge_account(SLURM.queue.accounts(), request)]
