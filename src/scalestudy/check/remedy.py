"""What came of a collective, in words, and what to do instead where it did not work."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scalestudy.check.line import Bandwidth, Line, failed, passed, size_text, warned
from scalestudy.check.mailbox import Answer, Outcome

MOST = 300
"""Characters of a quoted line."""
SLOW = 120e6
"""Bytes per second of gigabit Ethernet, on which gradients take longer than most steps."""


_CAUSE = re.compile(r"^(Collective ops is aborted by|[\w.]*(Error|Exception):? )")
"""How TensorFlow's and Python's last words begin, before what is said about their circumstances."""


class Failed(NamedTuple):
    """A collective that did not work."""

    where: str
    what: str
    alike: bool
    """Whether all ranks failed of themselves: then no pair of them is to blame."""


def judge_sums(
    answers: Mapping[int, Answer], ranks: Sequence[int], places: Mapping[int, str]
) -> Failed | None:
    """None if it worked on all ranks; else where it did not, and what was seen.

    Args:
        answers: By rank; a rank without an answer is gone.
        ranks: That took part.
        places: Names of the ranks.
    """
    gone = Outcome(state="gone")
    outcomes = {rank: (answers[rank].outcome if rank in answers else None) or gone for rank in ranks}
    bad = {rank: each for rank, each in outcomes.items() if each.state != "done"}
    if not bad:
        return None
    states = [each.state for each in bad.values()]
    for state in ("gone", "failed", "stalled"):
        found = [rank for rank in bad if bad[rank].state == state]
        if not found:
            continue
        where = ", ".join(places[rank] for rank in found[:2]) + (", …" if len(found) > 2 else "")
        what = {
            "gone": "the rank stopped answering",
            "failed": f"failed at {bad[found[0]].step or 'start'}: {cause(bad[found[0]].tail)}",
            "stalled": f"stalled at {bad[found[0]].step}",
        }[state]
        return Failed(where, what, states.count("failed") == len(ranks))
    return None


def cause(tail: Sequence[str]) -> str:
    """The line of a log's tail that most likely says why: an exception's last words, or the last line."""
    lines = [line.strip() for line in tail]
    return ([line for line in lines if _CAUSE.match(line)] or lines or ["no output"])[-1][:MOST]


def failure(
    name: str, where: str, what: str, *, needed: bool, worked: Sequence[str], interface: str | None
) -> Line:
    """The line of a collective that does not work, with what to do instead.

    Args:
        name: The collective.
        where: The hosts that do not work together.
        what: What was seen.
        needed: Whether the study uses it; otherwise it is a warning.
        worked: The collectives that work.
        interface: The network interface that host names lead to, if it is known.
    """
    action = " ".join(part for part in (_mend(name, interface or "IFACE"), _instead(name, worked)) if part)
    return (failed if needed else warned)("collectives", where, f"{name} {what}", action)


def _mend(name: str, interface: str) -> str:
    if name == "horovod-gloo":
        return f"Try HOROVOD_GLOO_IFACE={interface} (env in the site profile)."
    if name in ("nccl", "horovod-nccl"):
        variables = f"NCCL_SOCKET_IFNAME={interface}, NCCL_IB_DISABLE=1 and NCCL_DEBUG=INFO"
        return f"Try {variables} (env in the site profile)."
    if name == "horovod-mpi":
        return "Try HOROVOD_CONTROLLER=gloo (env in the site profile), with a Horovod that has Gloo."
    return "See that the run's ports are open between these hosts, and that no proxy is set."


def _instead(name: str, worked: Sequence[str]) -> str:
    choices = []
    if "ring" in worked and not name.startswith("horovod"):
        choices.append('communication = "ring" under [launch]')
    if "auto" in worked and name in ("ring", "nccl"):
        choices.append('communication = "auto" under [launch]')
    horovod = next((each for each in worked if each.startswith("horovod")), None)
    if horovod and not name.startswith("horovod"):
        choices.append('strategy = "horovod"')
    if name.startswith("horovod") and {"ring", "auto"} & set(worked):
        way = "ring" if "ring" in worked else "auto"
        choices.append(f'strategy = "native" with communication = "{way}"')
    return f"Here {' or '.join(choices)} works." if choices else ""


def bandwidth_line(rows: Sequence[Bandwidth], where: str, *, one_host: bool) -> Line:
    """The best bandwidth of a collective, and its time for the smallest message.

    Args:
        rows: By message size, rising.
        where: Hosts, for the line.
        one_host: Whether no network was crossed.
    """
    best = max(rows, key=lambda row: row.bus_bandwidth)
    seen = (
        f"{best.implementation}: {best.bus_bandwidth / 1e9:.2f} GB/s on the bus at {size_text(best.bytes)}, "
        f"{rows[0].seconds * 1e3:.2f} ms for {size_text(rows[0].bytes)}"
    )
    if best.bus_bandwidth < SLOW and not one_host:
        action = (
            "As slow as gigabit Ethernet: choose a faster interface (NCCL_SOCKET_IFNAME, HOROVOD_GLOO_IFACE)."
        )
        return warned("bandwidth", where, seen, action)
    return passed("bandwidth", where, seen)
