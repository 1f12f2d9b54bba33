"""What came of a collective, in words, and what to do instead where it did not work."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scalestudy.features.check.line import Bandwidth, Line, failed, passed, warned
from scalestudy.features.check.mailbox import Answer, Outcome
from scalestudy.study.engines import Collective, collective
from scalestudy.util import units

MOST = 300
"""Characters of a quoted line."""
SLOW = 120e6
"""Bytes per second of gigabit Ethernet, on which gradients take longer than most steps."""


_CAUSE = re.compile(r"^(Collective ops is aborted by|[\w.]*(Error|Exception):? )")
"""How TensorFlow's and Python's last words begin, before what is said about their circumstances."""


class Breakdown(NamedTuple):
    """A collective that did not work."""

    where: str
    what: str
    alike: bool
    """Whether all ranks failed of themselves: then no pair of them is to blame."""


def judge_collective(
    answers: Mapping[int, Answer], ranks: Sequence[int], places: Mapping[int, str]
) -> Breakdown | None:
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
        return Breakdown(where, what, states.count("failed") == len(ranks))
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
    broken = collective(name)
    mend = broken.mend.format(interface=interface or "IFACE")
    instead = _instead(broken, [collective(each) for each in worked])
    action = f"{mend} {instead}".strip()
    return (failed if needed else warned)("collectives", where, f"{name} {what}", action)


def _instead(broken: Collective, worked: Sequence[Collective]) -> str:
    """What to write in the study file to use a collective that works."""
    choices = [
        f'communication = "{each.communication}" under [launch]'
        for each in worked
        if each.strategy == broken.strategy and each.communication
    ]
    other = next((each for each in worked if each.strategy != broken.strategy), None)
    if other is not None:
        chosen = f' with communication = "{other.communication}"' if other.communication else ""
        choices.append(f'strategy = "{other.swept}"{chosen}')
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
        f"{best.collective}: {best.bus_bandwidth / 1e9:.2f} GB/s on the bus "
        f"({best.algorithm_bandwidth / 1e9:.2f} by the algorithm) at {units.size(best.bytes)}, "
        f"latency {rows[0].seconds * 1e3:.2f} ms at {units.size(rows[0].bytes)}"
    )
    if best.bus_bandwidth < SLOW and not one_host:
        action = (
            "As slow as gigabit Ethernet: choose a faster interface (NCCL_SOCKET_IFNAME, HOROVOD_GLOO_IFACE)."
        )
        return warned("bandwidth", where, seen, action)
    return passed("bandwidth", where, seen)
