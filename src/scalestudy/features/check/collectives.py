"""Each collective over all ranks; where one does not work, the two hosts between which it does not."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from scalestudy.features.check.mailbox import AttemptOutcome, RankAnswer
from scalestudy.features.check.report import AllReduce, Line, failed, passed, warned
from scalestudy.measure.bandwidth import algorithm_bandwidth, bus_bandwidth
from scalestudy.study.engines import Collective, collective
from scalestudy.util import units

SLOW = 120e6
"""Bytes per second of gigabit Ethernet, on which gradients take longer than most steps."""
MOST = 300
"""Characters of a quoted line."""
_CAUSE = re.compile(r"^(Collective ops is aborted by|[\w.]*(Error|Exception):? )")
"""How TensorFlow's and Python's last words begin, before what is said about their circumstances."""
Party = TypeVar("Party")
Works = Callable[[list[list[Party]]], list[bool]]
"""Tries groups that share no party, each on its own, and says which of them works."""
Ranks = tuple[int, ...]
"""Ranks that are told from others together: those of one host, or a single one."""


class AskRanks(Protocol):
    """Asks groups of ranks to try something, and gives their answers by rank."""

    def __call__(
        self, kind: str, groups: Sequence[Sequence[int]], limit: float, name: str, sizes: Sequence[int] = ()
    ) -> dict[int, RankAnswer]:
        """Answers by rank; a rank without one has stopped answering."""
        ...


class Trials:
    """The collectives of a check, tried over all ranks and then over parts of them."""

    def __init__(
        self, ask: AskRanks, hosts: Sequence[str], ranks: Sequence[int], *, limit: float, sizes: Sequence[int]
    ) -> None:
        self._ask, self._hosts, self._ranks = ask, hosts, list(ranks)
        self._limit, self._sizes = limit, sizes
        self.bandwidth: list[AllReduce] = []

    def lines(self, names: Sequence[str], *, needed: Collection[str]) -> list[Line]:
        """Try collectives one after another; those that the study does not need only warn."""
        good: list[Line] = []
        gone_lines: list[Line] = []
        bad: dict[str, tuple[str, str]] = {}
        for name in names:
            answers = self._ask("collective", [self._ranks], self._limit, name, self._sizes)
            breakdown = judge_collective(answers, self._ranks, self._places())
            if breakdown is None:
                good += self._worked(name, answers)
                continue
            gone = [rank for rank in self._ranks if rank not in answers]
            pair = None if gone or collective(name).launcher else self._culprits(name, alike=breakdown.alike)
            bad[name] = (pair or breakdown.where, breakdown.what)
            gone_lines += [rank_gone(rank, self._hosts[rank]) for rank in gone]
            self._ranks = [rank for rank in self._ranks if rank not in gone]
            if len(self._ranks) < 2:
                break
        worked = [name for name in names if name not in bad]
        return [
            *gone_lines,
            *good,
            *(
                failure(name, where, what, needed=name in needed, worked=worked)
                for name, (where, what) in bad.items()
            ),
        ]

    def _worked(self, name: str, answers: Mapping[int, RankAnswer]) -> list[Line]:
        hosts = self._host_count()
        where = f"{hosts} host{'s' * (hosts > 1)}"
        lines = [passed("collectives", where, f"{name} over {len(self._ranks)} ranks")]
        timings = [answer.outcome.seconds for answer in answers.values() if answer.outcome]
        rows = [
            _row(name, size, [seconds[size] for seconds in timings], hosts)
            for size in self._sizes
            if all(size in seconds for seconds in timings)
        ]
        if rows:
            self.bandwidth += rows
            lines.append(bandwidth_line(rows, where, one_host=hosts == 1))
        return lines

    def _culprits(self, name: str, *, alike: bool) -> str | None:
        parties = self._parties()
        pair = culprits(parties, lambda groups: self._work(name, groups))
        if pair is None:
            return None
        third = next((party for party in parties if party not in pair), None)
        # Where all ranks failed of themselves, it may be that it works nowhere: then no pair is to blame.
        if alike and third and not any(self._work(name, [[party, third]])[0] for party in pair):
            return None
        one_host = self._host_count() == 1
        return " and ".join(
            f"{self._hosts[party[0]]} (rank {party[0]})" if one_host else self._hosts[party[0]]
            for party in pair
        )

    def _host_count(self) -> int:
        return len({self._hosts[rank] for rank in self._ranks})

    def _parties(self) -> list[Ranks]:
        """What is told apart: hosts, or the ranks of a single host."""
        by_host: dict[str, list[int]] = {}
        for rank in self._ranks:
            by_host.setdefault(self._hosts[rank], []).append(rank)
        if len(by_host) > 1:
            return [tuple(ranks) for ranks in by_host.values()]
        return [(rank,) for rank in self._ranks]

    def _places(self) -> dict[int, str]:
        return {rank: f"rank {rank} on {host}" for rank, host in enumerate(self._hosts)}

    def _work(self, name: str, groups: Sequence[Sequence[Ranks]]) -> list[bool]:
        flat = [sorted(rank for party in group for rank in party) for group in groups]
        real = [group for group in flat if len(group) > 1]
        # On one host groups would meet at the same ports: one after another.
        batches = [[group] for group in real] if self._host_count() == 1 else [real] if real else []
        good: set[int] = set()
        for batch in batches:
            answers = self._ask("collective", batch, self._limit, name)
            for group in batch:
                members = {rank: answer for rank, answer in answers.items() if rank in group}
                if judge_collective(members, group, self._places()) is None:
                    good |= set(group)
        return [len(group) == 1 or set(group) <= good for group in flat]


def rank_gone(rank: int, host: str) -> Line:
    """The line of a rank without an answer."""
    action = f"Look at logs/rank-{rank}.log and at the state of {host}."
    return failed("ranks", host, f"rank {rank} has stopped answering", action)


def _row(name: str, size: int, seconds: Sequence[float], hosts: int) -> AllReduce:
    mean, ranks = sum(seconds) / len(seconds), len(seconds)
    return AllReduce(
        collective=name,
        ranks=ranks,
        bytes=size,
        seconds=mean,
        algorithm_bandwidth=algorithm_bandwidth(size, mean),
        bus_bandwidth=bus_bandwidth(size, mean, ranks),
        hosts=hosts,
    )


def bandwidth_line(rows: Sequence[AllReduce], where: str, *, one_host: bool) -> Line:
    """The best bandwidth of a collective, and its time for the smallest message; rows rise by size."""
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


class Breakdown(NamedTuple):
    """A collective that did not work."""

    where: str
    what: str
    alike: bool
    """Whether all ranks failed of themselves: then no pair of them is to blame."""


def judge_collective(
    answers: Mapping[int, RankAnswer], ranks: Sequence[int], places: Mapping[int, str]
) -> Breakdown | None:
    """None if it worked on all ranks; else where it did not. A rank without an answer is gone."""
    gone = AttemptOutcome(state="gone")
    outcomes = {rank: (answers[rank].outcome if rank in answers else None) or gone for rank in ranks}
    for state in ("gone", "failed", "stalled"):
        bad = [rank for rank, outcome in outcomes.items() if outcome.state == state]
        if not bad:
            continue
        where = ", ".join(places[rank] for rank in bad[:2]) + (", …" if len(bad) > 2 else "")
        first = outcomes[bad[0]]
        what = {
            "gone": "the rank stopped answering",
            "failed": f"failed at {first.step or 'start'}: {cause(first.tail)}",
            "stalled": f"stalled at {first.step}",
        }[state]
        return Breakdown(where, what, alike=state == "failed" and len(bad) == len(ranks))
    return None


def cause(tail: Sequence[str]) -> str:
    """The line of a log's tail that most likely says why: an exception's last words, or the last line."""
    lines = [line.strip() for line in tail]
    return ([line for line in lines if _CAUSE.match(line)] or lines or ["no output"])[-1][:MOST]


def failure(name: str, where: str, what: str, *, needed: bool, worked: Sequence[str]) -> Line:
    """The line of a collective that does not work, with what to do instead; it warns unless `needed`."""
    broken = collective(name)
    action = f"{broken.mend} {_instead(broken, [collective(other) for other in worked])}".strip()
    return (failed if needed else warned)("collectives", where, f"{name} {what}", action)


def _instead(broken: Collective, worked: Sequence[Collective]) -> str:
    """What to write in the study file to use a collective that works."""
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


def culprits(parties: Sequence[Party], works: Works[Party]) -> tuple[Party, ...] | None:
    """The one or two parties that do not work, of a group that does not work as a whole.

    Found by halves, in a number of trials that grows like log n. It is taken that a group works exactly if
    all pairs in it do and each party does on its own. None if every smaller group that was tried works.
    """
    for party, alone in zip(parties, works([[party] for party in parties]), strict=True):
        if not alone:
            return (party,)
    group = list(parties)
    while len(group) > 2:
        left, right = group[: len(group) // 2], group[len(group) // 2 :]
        left_works, right_works = works([left, right])
        if left_works and right_works:
            return _across(left, right, works)
        group = right if left_works else left
    return tuple(group) if len(group) == 2 else None


def _across(left: list[Party], right: list[Party], works: Works[Party]) -> tuple[Party, ...] | None:
    """Each side works on its own, both together do not: shrink one side, then the other."""
    one = _shrunk(left, lambda part: works([part + right])[0])
    other = _shrunk(right, lambda part: works([one + part])[0]) if one else None
    return (one[0], other[0]) if one and other else None


def _shrunk(side: list[Party], works: Callable[[list[Party]], bool]) -> list[Party] | None:
    """One party of a side with which the rest still does not work; None if all smaller parts work."""
    while len(side) > 1:
        first, second = side[: len(side) // 2], side[len(side) // 2 :]
        if not works(first):
            side = first
        elif not works(second):
            side = second
        else:
            return None
    return side
