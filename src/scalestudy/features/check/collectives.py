"""Each collective over all ranks; where one does not work, the two hosts between which it does not."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from scalestudy.features.check.culprits import culprits
from scalestudy.features.check.line import Bandwidth, Line, failed, passed
from scalestudy.features.check.mailbox import Answer
from scalestudy.features.check.remedy import bandwidth_line, failure, judge_collective
from scalestudy.measure.bandwidth import algorithm_bandwidth, bus_bandwidth
from scalestudy.study.engines import collective

Party = tuple[int, ...]
"""Ranks that are told from others together: those of one host, or a single one."""


class Ask(Protocol):
    """Asks groups of ranks to try something, and gives their answers by rank."""

    def __call__(
        self, kind: str, groups: Sequence[Sequence[int]], limit: float, name: str, sizes: Sequence[int] = ()
    ) -> dict[int, Answer]:
        """Answers by rank; a rank without one has stopped answering."""
        ...


class Trials:
    """The collectives of a check, tried over all ranks and then over parts of them.

    Args:
        ask: Has ranks try one.
        hosts: Host of each rank.
        ranks: Ranks that take part.
        limit: Seconds between two signs of life.
        sizes: Message sizes in bytes that are timed.
    """

    def __init__(
        self,
        ask: Ask,
        hosts: Sequence[str],
        ranks: Sequence[int],
        *,
        limit: float,
        sizes: Sequence[int],
    ) -> None:
        self._ask, self._hosts, self._ranks = ask, hosts, list(ranks)
        self._limit, self._sizes = limit, sizes
        self.bandwidth: list[Bandwidth] = []
        self._known: Sequence[Party] = ()

    def lines(self, names: Sequence[str], *, needed: Collection[str], interface: str | None) -> list[Line]:
        """Try collectives one after another.

        Args:
            names: The collectives.
            needed: Those that the study uses; the others only warn.
            interface: The network interface that host names lead to, if it is known.
        """
        good: list[Line] = []
        bad: dict[str, tuple[str, str]] = {}
        silent: list[Line] = []
        for name in names:
            answers = self._ask("collective", [self._ranks], self._limit, name, self._sizes)
            seen = judge_collective(answers, self._ranks, self._places())
            if seen is None:
                good += self._worked(name, answers)
                continue
            gone = [rank for rank in self._ranks if rank not in answers]
            pair = None if gone or collective(name).launcher else self._culprits(name, alike=seen.alike)
            bad[name] = (pair or seen.where, seen.what)
            silent += [self._gone(rank) for rank in gone]
            self._ranks = [rank for rank in self._ranks if rank not in gone]
            if len(self._ranks) < 2:
                break
        worked = [name for name in names if name not in bad]
        return [
            *silent,
            *good,
            *(
                failure(name, where, what, needed=name in needed, worked=worked, interface=interface)
                for name, (where, what) in bad.items()
            ),
        ]

    def _worked(self, name: str, answers: Mapping[int, Answer]) -> list[Line]:
        hosts = len({self._hosts[rank] for rank in self._ranks})
        where = f"{hosts} host{'s' * (hosts > 1)}"
        lines = [passed("collectives", where, f"{name} over {len(self._ranks)} ranks")]
        timings = [answer.outcome.seconds for answer in answers.values() if answer.outcome]
        rows = [
            _row(name, size, [each[size] for each in timings], hosts)
            for size in self._sizes
            if all(size in each for each in timings)
        ]
        if rows:
            self.bandwidth += rows
            lines.append(bandwidth_line(rows, where, one_host=hosts == 1))
        return lines

    def _gone(self, rank: int) -> Line:
        host = self._hosts[rank]
        action = f"Look at logs/rank-{rank}.log and at the state of {host}."
        return failed("ranks", host, f"rank {rank} has stopped answering", action)

    def _culprits(self, name: str, *, alike: bool) -> str | None:
        parties = self._parties()
        if self._known and not self._work(name, [self._known])[0]:
            found: tuple[Party, ...] | None = tuple(self._known)  # what kept another keeps this one too
        else:
            found = culprits(parties, lambda groups: self._work(name, groups))
        if found is None:
            return None
        third = next((party for party in parties if party not in found), None)
        # Where all ranks failed of themselves, it may be that it works nowhere: then no pair is to blame.
        if alike and third and not any(self._work(name, [[party, third]])[0] for party in found):
            return None
        self._known = found if len(found) == 2 else ()
        one_host = len({self._hosts[rank] for rank in self._ranks}) == 1
        names = [
            f"{self._hosts[party[0]]} (rank {party[0]})" if one_host else self._hosts[party[0]]
            for party in found
        ]
        return " and ".join(names)

    def _parties(self) -> list[Party]:
        """What is told apart: hosts, or the ranks of a single host."""
        by_host: dict[str, list[int]] = {}
        for rank in self._ranks:
            by_host.setdefault(self._hosts[rank], []).append(rank)
        if len(by_host) > 1:
            return [tuple(ranks) for ranks in by_host.values()]
        return [(rank,) for rank in self._ranks]

    def _places(self) -> dict[int, str]:
        return {rank: f"rank {rank} on {host}" for rank, host in enumerate(self._hosts)}

    def _work(self, name: str, groups: Sequence[Sequence[Party]]) -> list[bool]:
        flat = [sorted(rank for party in group for rank in party) for group in groups]
        real = [group for group in flat if len(group) > 1]
        one_host = len({self._hosts[rank] for rank in self._ranks}) == 1
        # On one host groups would meet at the same ports: one after another.
        batches = [[group] for group in real] if one_host else [real] if real else []
        good: set[int] = set()
        for batch in batches:
            answers = self._ask("collective", batch, self._limit, name)
            for group in batch:
                own = {rank: answer for rank, answer in answers.items() if rank in group}
                if judge_collective(own, group, self._places()) is None:
                    good |= set(group)
        return [len(group) == 1 or set(group) <= good for group in flat]


def _row(name: str, size: int, seconds: Sequence[float], hosts: int) -> Bandwidth:
    mean, ranks = sum(seconds) / len(seconds), len(seconds)
    return Bandwidth(
        collective=name,
        ranks=ranks,
        bytes=size,
        seconds=mean,
        algorithm_bandwidth=algorithm_bandwidth(size, mean),
        bus_bandwidth=bus_bandwidth(size, mean, ranks),
        hosts=hosts,
    )
