"""Rank 0's part in a check: assign trials to all ranks, and judge the answers."""

from collections.abc import Mapping, Sequence

from scalestudy.cluster.placement import Placement
from scalestudy.features.check import host_checks
from scalestudy.features.check.check_files import (
    Assignment,
    CheckPlan,
    Exchange,
    Facts,
    RankAnswer,
)
from scalestudy.features.check.check_report import (
    Line,
    Report,
    names_together,
    report_failure,
    report_pass,
    report_warning,
)
from scalestudy.plugins.engines import Collective, engine_traits
from scalestudy.util import units
from scalestudy.util.text import plural

SLOW = 120e6
"""Bytes per second of gigabit Ethernet, which takes longer for gradients than most steps take."""


def lead(exchange: Exchange, plan: CheckPlan, placement: Placement) -> Report:
    """Lead all ranks through the check, and return the report. It ends at the first rank that is missing."""
    exchange.tell(f"waiting for {placement.size} ranks")
    facts = exchange.facts(placement.size, plan.start_limit)
    hosts = []
    for rank, name in enumerate(placement.hosts):
        # Not every launcher says where the other ranks are, but each rank has written its own host.
        if not name and rank in facts:
            hosts.append(facts[rank].host)
        else:
            hosts.append(name or "")
    lines = judge_ranks(exchange, plan, placement, facts, hosts)
    number = 0

    def ask(limit: float, collective: str | None = None) -> dict[int, RankAnswer]:
        nonlocal lines, number
        exchange.assign(Assignment(number=number, collective=collective))
        answers = exchange.answers(number, placement.size, limit, plan.slack)
        number += 1
        for rank in range(placement.size):
            if rank not in answers:
                lines.append(_gone(rank, hosts[rank]))
        return answers

    try:
        tries = plan.wants("builds") or plan.wants("collectives")
        if len(facts) < placement.size or not tries:
            return Report(lines=tuple(lines))
        exchange.tell(f"importing {engine_traits(plan.engine).label} on each rank")
        builds = ask(plan.start_limit)
        if plan.wants("builds"):
            lines += host_checks.judge_builds(plan, facts, builds)
        ways: list[Collective] = []
        if plan.wants("collectives") and len(builds) == placement.size:
            ways, reasons = collectives_of(plan, placement, facts, builds)
            lines += reasons
        # Every trial imports the framework anew, and that time does not count as stalling.
        imports = [one.build["seconds"] for one in builds.values() if one.build]
        slowest = max(imports, default=0.0)
        # All of them, also after one that failed: the report says which one works instead.
        for place, way in enumerate(ways, start=1):
            exchange.tell(f"{way.label}, {place} of {len(ways)} collectives")
            answers = ask(plan.limit + 2 * slowest, way.name)
            failure = judge_collective(way, answers, hosts)
            if failure is None:
                used = len(set(hosts))
                seen = f"{way.name} over {placement.size} ranks"
                lines.append(report_pass("collectives", _hosts(used), seen))
                if plan.wants("bandwidth"):
                    lines.append(bandwidth_line(way, answers, used))
            else:
                lines.append(failure)
            # Without the rank that is gone, every further trial would wait for its limit.
            if len(answers) < placement.size:
                break
        return Report(lines=tuple(lines))
    finally:
        # Also after an error: the other ranks would wait half an hour for another assignment.
        exchange.assign(Assignment(number=number, last=True))


def judge_ranks(
    exchange: Exchange,
    plan: CheckPlan,
    placement: Placement,
    facts: Mapping[int, Facts],
    hosts: Sequence[str],
) -> list[Line]:
    """Check whether all ranks are present, and collect what they found on each host."""
    lines: list[Line] = []
    by_host: dict[str, list[Facts]] = {}
    for fact in facts.values():
        lines += fact.lines
        by_host.setdefault(fact.host, []).append(fact)
    missing = sorted(set(range(placement.size)) - set(facts))
    for rank in missing:
        # The host of a rank that did not appear is known only where the launcher names all hosts.
        where = hosts[rank] or f"rank {rank}"
        seen = f"rank {rank} did not appear within {plan.start_limit:g} s"
        action = (
            f"Look at logs/rank-{rank}.log; see that all nodes share {exchange.folder}."
        )
        lines.append(report_failure("ranks", where, seen, action))
    if not missing:
        seen = f"{placement.size} ranks on {_hosts(len(by_host))} (from {placement.source})"
        lines.append(report_pass("ranks", facts[0].host, seen))
    if plan.wants("devices"):
        for host, ranks in by_host.items():
            lines.append(_devices(plan, host, ranks))
    return lines


def _devices(plan: CheckPlan, host: str, ranks: Sequence[Facts]) -> Line:
    """Judge the GPUs of a host by what all of its ranks see."""
    seen = [(fact.gpus, fact.uuids) for fact in ranks]
    return host_checks.judge_devices(
        host,
        device=plan.device,
        # A check may start fewer ranks than the node has GPUs.
        promised=min(plan.gpus_per_node, len(ranks)),
        gpus=host_checks.count_gpus(seen),
        workers=len(ranks),
        why=ranks[0].no_gpus or (),
    )


def collectives_of(
    plan: CheckPlan,
    placement: Placement,
    facts: Mapping[int, Facts],
    builds: Mapping[int, RankAnswer],
) -> tuple[list[Collective], list[Line]]:
    """Return the collectives to try, and a line if there is a reason why there are fewer or none."""
    first = placement.hosts[0] or facts[0].host
    if placement.size < 2:
        seen = "a single worker has no others to combine with"
        return [], [report_pass("collectives", first, seen)]
    reasons = []
    met = placement.port is not None and all(placement.hosts)
    if not met:
        seen = f"hosts or port unknown (from {placement.source})"
        action = (
            "Start the workers with srun, or under mpirun in blocks of one size a node."
        )
        reasons.append(report_warning("collectives", first, seen, action))
    ways = host_checks.collectives_to_try(
        plan,
        facts,
        builds,
        source=placement.source,
        met=met,
    )
    return ways, reasons


def judge_collective(
    way: Collective,
    answers: Mapping[int, RankAnswer],
    hosts: Sequence[str],
) -> Line | None:
    """Return a line on a collective that failed, with the hosts where it did; None if it worked.

    Ranks without an answer are gone. Those that are gone or failed explain why others stalled.
    """
    states: list[str] = []
    for rank in range(len(hosts)):
        if rank in answers:
            states.append(answers[rank].state)
        else:
            states.append("gone")
    # The order is that of causes: a rank that is gone makes others fail, and these make others stall.
    found = [state for state in ("gone", "failed", "stalled") if state in states]
    if not found:
        return None
    worst = found[0]
    first = states.index(worst)
    if worst == "gone":
        what = "ended, since a rank stopped answering"
    elif worst == "failed":
        answer = answers[first]
        what = f"failed at {answer.step or 'start'}: {host_checks.cause(answer.tail)}"
    else:
        what = f"stalled at {answers[first].step}"
    where: dict[str, None] = {}
    for host, state in zip(hosts, states, strict=True):
        if state == worst:
            where[host] = None
    others = dict.fromkeys([host for host in hosts if host not in where])
    seen = f"{way.name} {what}"
    if others:
        seen += f"; not on {names_together(others)}"
    return report_failure("collectives", names_together(where), seen, way.repair)


def bandwidth_line(
    way: Collective,
    answers: Mapping[int, RankAnswer],
    hosts: int,
) -> Line:
    """Return a line on the bandwidth of a collective at its largest size, and its latency at the smallest.

    Times are means of the ranks. By the definitions of nccl-tests, S bytes in t seconds on n ranks are a
    bandwidth of the algorithm of S / t, and of the bus of S / t × 2(n − 1) / n, which does not depend on n.
    """
    ranks = len(answers)
    sizes = sorted(answers[0].seconds)
    smallest = sizes[0]
    largest = sizes[-1]
    where = _hosts(hosts)
    latency = _mean_seconds(answers, smallest)
    algorithm = largest / _mean_seconds(answers, largest)
    bus = algorithm * 2 * (ranks - 1) / ranks
    seen = (
        f"{way.name}: {bus / 1e9:.2f} GB/s on the bus ({algorithm / 1e9:.2f} by the algorithm) at "
        f"{units.size(largest)}, latency {latency * 1e3:.2f} ms at {units.size(smallest)}"
    )
    if bus < SLOW and hosts > 1:
        faster = "choose a faster interface (NCCL_SOCKET_IFNAME, HOROVOD_GLOO_IFACE)."
        return report_warning(
            "bandwidth",
            where,
            seen,
            f"As slow as gigabit Ethernet: {faster}",
        )
    return report_pass("bandwidth", where, seen)


def _mean_seconds(answers: Mapping[int, RankAnswer], size: int) -> float:
    return sum(answer.seconds[size] for answer in answers.values()) / len(answers)


def _gone(rank: int, host: str) -> Line:
    action = f"Look at logs/rank-{rank}.log and at the state of {host}."
    return report_failure("ranks", host, f"rank {rank} has stopped answering", action)


def _hosts(count: int) -> str:
    return f"{count} {plural('host', count)}"
