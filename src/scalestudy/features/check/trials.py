"""Rank 0's part in a check: assign trials to all ranks, and judge the answers.

Each collective is tried over all ranks. If it does not work, further trials find the hosts concerned.
"""

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from scalestudy.cluster.placement import Placement
from scalestudy.engines.exchange_trial import algorithm_bandwidth, bus_bandwidth
from scalestudy.features.check import host_checks
from scalestudy.features.check.check_files import (
    AllReduce,
    Assignment,
    Exchange,
    Facts,
    Line,
    Plan,
    RankAnswer,
    Report,
    report_failure,
    report_pass,
    report_warning,
)
from scalestudy.plugins.engines import Collective, engine_traits
from scalestudy.util import units

SLOW = 120e6
"""Bytes per second of gigabit Ethernet, which takes longer for gradients than most steps take."""
TRIED_IN_VAIN = 3
"""Rounds without a working pair after which no host is named. With three hosts, each is left out once."""
MOST_NAMED = 4
"""Maximum number of groups of hosts in a message."""
Party = TypeVar("Party")
Group = tuple[Party, ...]
OnText = Callable[[str], object]
AskRanks = Callable[..., dict[int, RankAnswer]]
"""Assigns a trial (groups of ranks, limit, name of a collective or None, sizes), and returns the answers by
rank. A rank without one has stopped responding."""
Ranks = tuple[int, ...]
"""Ranks that are judged together: all ranks of a host, or a single rank."""


def lead(exchange: Exchange, plan: Plan, placement: Placement) -> Report:
    """Lead all ranks through the check, and return the report."""
    numbers = itertools.count()

    def ask(
        groups: Sequence[Sequence[int]], limit: float, name: str | None = None, sizes: Sequence[int] = ()
    ) -> dict[int, RankAnswer]:
        asked = tuple(tuple(group) for group in groups)
        number = next(numbers)
        exchange.assign(Assignment(number=number, groups=asked, collective=name, sizes=tuple(sizes)))
        return exchange.answers(number, [rank for group in asked for rank in group], limit, plan.slack)

    exchange.tell(f"waiting for {placement.size} ranks")
    facts = exchange.facts(placement.size, plan.start_limit)
    hosts = [name or (facts[rank].host if rank in facts else "") for rank, name in enumerate(placement.hosts)]
    lines = _judge_ranks(exchange, plan, placement, facts, hosts)
    rows: list[AllReduce] = []
    try:
        if plan.wants("builds") or plan.wants("collectives"):
            exchange.tell(f"importing {engine_traits(plan.engine).label} on each rank")
            answers = ask([[rank] for rank in sorted(facts)], plan.start_limit)
            for rank in sorted(set(facts) - set(answers)):
                facts.pop(rank)
                lines.append(rank_gone(rank, hosts[rank]))
            if plan.wants("builds"):
                lines += host_checks.judge_builds(plan, facts, answers)
            if plan.wants("collectives"):
                slowest = max((one.build["seconds"] for one in answers.values() if one.build), default=0.0)
                trials = Trials(
                    ask,
                    hosts,
                    sorted(facts),
                    limit=plan.limit + 2 * slowest,
                    sizes=plan.sizes if plan.wants("bandwidth") else (),
                    tell=exchange.tell,
                )
                lines += _try_collectives(trials, plan, placement, facts, answers)
                rows = trials.bandwidth
    finally:
        ask([], 0.0)
    return Report(lines=tuple(lines), bandwidth=tuple(rows))


def _judge_ranks(
    exchange: Exchange, plan: Plan, placement: Placement, facts: Mapping[int, Facts], hosts: Sequence[str]
) -> list[Line]:
    """Check whether all ranks are present, and collect what they found on each host."""
    lines = [line for fact in facts.values() for line in fact.lines]
    missing = sorted(set(range(placement.size)) - set(facts))
    lines += [
        report_failure(
            "ranks",
            hosts[rank] or f"rank {rank}",
            f"rank {rank} did not appear within {plan.start_limit:g} s",
            f"Look at logs/rank-{rank}.log; see that all nodes share {exchange.folder}.",
        )
        for rank in missing
    ]
    by_host: dict[str, list[Facts]] = {}
    for fact in facts.values():
        by_host.setdefault(fact.host, []).append(fact)
    if not missing:
        seen = f"{placement.size} ranks on {_hosts(len(by_host))} (from {placement.source})"
        lines.append(report_pass("ranks", facts[0].host, seen))
    for name, ranks in by_host.items():
        if plan.wants("devices"):
            line = host_checks.judge_devices(
                name,
                device=plan.device,
                promised=min(plan.gpus_per_node, len(ranks)),
                gpus=host_checks.gpus_of([(fact.gpus, fact.uuids) for fact in ranks]),
                workers=len(ranks),
                why=ranks[0].no_gpus or (),
            )
            lines.append(line)
        if plan.wants("cores"):
            cpus = [fact.cpus for fact in ranks]
            lines.append(host_checks.judge_cores(name, ranks=cpus, cpus_per_worker=plan.cpus_per_worker))
    return lines


def _try_collectives(
    trials: "Trials",
    plan: Plan,
    placement: Placement,
    facts: Mapping[int, Facts],
    builds: Mapping[int, RankAnswer],
) -> list[Line]:
    if len(facts) < 2:
        first = trials.hosts[0]
        return [report_pass("collectives", first, "a single worker has no others to combine with")]
    lines, source = [], placement.source
    met = placement.port is not None and all(placement.hosts)
    if not met:
        action = "Start the workers with srun, or under mpirun in blocks of one size a node."
        lines.append(
            report_warning("collectives", trials.hosts[0], f"hosts or port unknown (from {source})", action)
        )
    ways = host_checks.collectives_to_try(plan, facts, builds, source=source, met=met)
    return lines + trials.lines(ways, needed=host_checks.used_by_study(plan, ways, source=source))


class Trials:
    """Trials of collectives over all ranks, and over subsets if a collective does not work."""

    def __init__(
        self,
        ask: AskRanks,
        hosts: Sequence[str],
        ranks: Sequence[int],
        *,
        limit: float,
        sizes: Sequence[int],
        tell: OnText = lambda text: None,
    ) -> None:
        self._ask, self.hosts, self._ranks = ask, hosts, list(ranks)
        self._limit, self._sizes, self._tell = limit, sizes, tell
        self.bandwidth: list[AllReduce] = []

    def lines(self, ways: Sequence[Collective], *, needed: Collection[str]) -> list[Line]:
        """Try collectives one after another. Failures of those not in `needed` are warnings."""
        lines: list[Line] = []
        worked: list[Collective] = []
        broken: list[tuple[Collective, Breakdown]] = []
        for number, way in enumerate(ways, start=1):
            self._tell(f"{way.label}, {number} of {len(ways)} collectives")
            answers = self._ask([self._ranks], self._limit, way.name, self._sizes)
            breakdown = judge_collective(answers, self._ranks, self.hosts)
            if breakdown is None:
                worked.append(way)
                lines += self._worked(way, answers)
                continue
            gone = [rank for rank in self._ranks if rank not in answers]
            self._tell(f"{way.label} {breakdown.what}: looking for the hosts between which it does")
            where = "" if gone or way.launcher else self._culprits(way, alike=breakdown.alike)
            broken.append((way, breakdown._replace(where=where or breakdown.where)))
            lines += [rank_gone(rank, self.hosts[rank]) for rank in gone]
            self._ranks = [rank for rank in self._ranks if rank not in gone]
            if len(self._ranks) < 2:
                break
        for way, breakdown in broken:
            action = f"{way.mend} {_instead(way, worked)}".strip()
            line = report_failure if way.name in needed else report_warning
            lines.append(line("collectives", breakdown.where, f"{way.name} {breakdown.what}", action))
        return lines

    def _worked(self, way: Collective, answers: Mapping[int, RankAnswer]) -> list[Line]:
        count = len(self._parties())
        where = _hosts(count)
        lines = [report_pass("collectives", where, f"{way.name} over {len(self._ranks)} ranks")]
        rows = self._rows(way, answers, count)
        if rows:
            self.bandwidth += rows
            lines.append(bandwidth_line(rows, where, one_host=count == 1))
        return lines

    def _rows(self, way: Collective, answers: Mapping[int, RankAnswer], hosts: int) -> list[AllReduce]:
        rows, ranks = [], len(self._ranks)
        for size in self._sizes:
            seconds = [answer.seconds.get(size) for answer in answers.values()]
            timed = [value for value in seconds if value is not None]
            if len(timed) == ranks:
                mean = sum(timed) / ranks
                rows.append(
                    AllReduce(
                        collective=way.name,
                        ranks=ranks,
                        bytes=size,
                        seconds=mean,
                        hosts=hosts,
                        algorithm_bandwidth=algorithm_bandwidth(size, mean),
                        bus_bandwidth=bus_bandwidth(size, mean, ranks),
                    )
                )
        return rows

    def _parties(self) -> list[Ranks]:
        by_host: dict[str, list[int]] = {}
        for rank in self._ranks:
            by_host.setdefault(self.hosts[rank], []).append(rank)
        return [tuple(ranks) for ranks in by_host.values()]

    def _culprits(self, way: Collective, *, alike: bool) -> str:
        """Return the hosts (on one host, the ranks) between which it fails; "" if none can be singled out."""
        parties, one_host = self._parties(), False
        if len(parties) == 1:
            parties, one_host = [(rank,) for rank in parties[0]], True
        works = partial(self._works, way)
        groups: list[Group[Ranks]] = []
        if any(len(ranks) > 1 for ranks in parties):
            groups = culprits([[(party,) for party in parties]], works)
        if not groups and len(parties) == 2:
            groups = [] if alike else [(parties[0], parties[1])]
        elif not groups:
            groups = culprits(rounds(parties), works)
        names = [
            " and ".join(
                self.hosts[party[0]] + (f" (rank {party[0]})" if one_host else "") for party in group
            )
            for group in groups
        ]
        return ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")

    def _works(self, way: Collective, groups: Sequence[Group[Ranks]]) -> list[bool]:
        """Return in which groups it works. Groups run at once, or in turn on one host, which shares ports."""
        flat = [sorted(rank for party in group for rank in party) for group in groups]
        real = [ranks for ranks in flat if len(ranks) > 1]
        answers: dict[int, RankAnswer] = {}
        for batch in [[ranks] for ranks in real] if len(set(self.hosts)) == 1 else [real] if real else []:
            answers |= self._ask(batch, self._limit, way.name)
        return [len(ranks) == 1 or judge_collective(answers, ranks, self.hosts) is None for ranks in flat]


def rounds(parties: Sequence[Party]) -> list[list[Group[Party]]]:
    """Return all pairs, in rounds with at most one pair per party (circle method of tournaments)."""
    circle: list[Party | None] = [*parties, *([None] if len(parties) % 2 else [])]
    half = len(circle) // 2
    tournament: list[list[Group[Party]]] = []
    for _ in range(len(circle) - 1):
        pairs = zip(circle[:half], reversed(circle[half:]), strict=True)
        tournament.append([(one, other) for one, other in pairs if one is not None and other is not None])
        circle[1:] = [circle[-1], *circle[1:-1]]
    return tournament


def culprits(
    tournament: Sequence[Sequence[Group[Party]]],
    works: Callable[[Sequence[Group[Party]]], Sequence[bool]],
) -> list[Group[Party]]:
    """Return the failing groups of the first rounds, or the party they share; empty if no group works."""
    broken: list[Group[Party]] = []
    some_work = False
    for number, groups in enumerate(tournament, start=1):
        for group, good in zip(groups, works(groups), strict=True):
            some_work = some_work or good
            if not good:
                broken.append(group)
        if broken and (some_work or number == TRIED_IN_VAIN):
            break
    shared = [party for party in broken[0] if all(party in group for group in broken)] if broken else []
    if len(broken) > 1 and len(shared) == 1:
        broken = [(shared[0],)]
    return broken if some_work else []


class Breakdown(NamedTuple):
    """A collective that did not work."""

    where: str
    what: str
    alike: bool
    """Whether every rank failed by itself, so that no pair of ranks is the cause."""


def judge_collective(
    answers: Mapping[int, RankAnswer], ranks: Sequence[int], hosts: Sequence[str]
) -> Breakdown | None:
    """Return where a collective failed; None if it worked. Ranks without an answer count as "gone"."""
    states = {rank: answers[rank].state if rank in answers else "gone" for rank in ranks}
    for state in ("gone", "failed", "stalled"):
        bad = [rank for rank in ranks if states[rank] == state]
        if not bad:
            continue
        where = ", ".join(f"rank {rank} on {hosts[rank]}" for rank in bad[:2]) + ", …" * (len(bad) > 2)
        if state == "gone":
            what = "the rank stopped answering"
        elif state == "failed":
            first = answers[bad[0]]
            what = f"failed at {first.step or 'start'}: {host_checks.cause(first.tail)}"
        else:
            what = f"stalled at {answers[bad[0]].step}"
        return Breakdown(where, what, alike=state == "failed" and len(bad) == len(ranks))
    return None


def rank_gone(rank: int, host: str) -> Line:
    """Return the line for a rank that has stopped responding."""
    action = f"Look at logs/rank-{rank}.log and at the state of {host}."
    return report_failure("ranks", host, f"rank {rank} has stopped answering", action)


def bandwidth_line(rows: Sequence[AllReduce], where: str, *, one_host: bool) -> Line:
    """Return a line on the best bandwidth of a collective, and its latency; rows are in order of size."""
    top = max(rows, key=lambda row: row.bus_bandwidth)
    seen = (
        f"{top.collective}: {top.bus_bandwidth / 1e9:.2f} GB/s on the bus "
        f"({top.algorithm_bandwidth / 1e9:.2f} by the algorithm) at {units.size(top.bytes)}, "
        f"latency {rows[0].seconds * 1e3:.2f} ms at {units.size(rows[0].bytes)}"
    )
    if top.bus_bandwidth < SLOW and not one_host:
        faster = "choose a faster interface (NCCL_SOCKET_IFNAME, HOROVOD_GLOO_IFACE)."
        action = f"As slow as gigabit Ethernet: {faster}"
        return report_warning("bandwidth", where, seen, action)
    return report_pass("bandwidth", where, seen)


def _instead(broken: Collective, worked: Sequence[Collective]) -> str:
    """Return how to use a working collective instead, as keys of the study file."""
    choices = [
        f'communication = "{way.communication}" under [launch]'
        for way in worked
        if way.strategy == broken.strategy and way.communication
    ]
    other = next((way for way in worked if way.strategy != broken.strategy), None)
    if other is not None:
        chosen = f' with communication = "{other.communication}"' if other.communication else ""
        choices.append(f'strategy = "{other.swept}"{chosen}')
    return f"Here {' or '.join(choices)} works." if choices else ""


def _hosts(count: int) -> str:
    return f"{count} host{'s' * (count > 1)}"
