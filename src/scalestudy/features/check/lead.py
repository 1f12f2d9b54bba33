"""Rank 0's part in a check: tell all ranks what to try, and judge what came of it."""

from collections.abc import Sequence

from scalestudy.cluster.placement import Placement
from scalestudy.features.check import builds, host, network
from scalestudy.features.check.collectives import Trials, rank_gone
from scalestudy.features.check.mailbox import Assignment, Facts, Mailbox, RankAnswer
from scalestudy.features.check.plan import Plan
from scalestudy.features.check.report import AllReduce, Line, Report, failed, passed, warned
from scalestudy.study.engines import engine_traits


def lead(mailbox: Mailbox, plan: Plan, placement: Placement) -> Report:
    """Lead all ranks through the check."""
    return _Leader(mailbox, plan, placement).lead()


class _Leader:
    def __init__(self, mailbox: Mailbox, plan: Plan, placement: Placement) -> None:
        self._mailbox, self._plan, self._placement = mailbox, plan, placement
        self._engine = engine_traits(plan.engine)
        self._number = 0
        self._lines: list[Line] = []
        self._bandwidth: list[AllReduce] = []
        self._facts: dict[int, Facts] = {}
        self._hosts: list[str] = list(placement.hosts)
        self._met = placement.port is not None and all(placement.hosts)

    def lead(self) -> Report:
        try:
            self._gather()
            if self._placement.size > 1 and self._met:
                self._reach()
            if self._plan.wants("builds") or self._plan.wants("collectives"):
                self._build()
        finally:
            self._ask("end", [], 0.0)
        return Report(lines=tuple(self._lines), bandwidth=tuple(self._bandwidth))

    def _ask(
        self,
        kind: str,
        groups: Sequence[Sequence[int]],
        limit: float,
        name: str = "",
        sizes: Sequence[int] = (),
    ) -> dict[int, RankAnswer]:
        assignment = Assignment.model_validate(
            {"number": self._number, "kind": kind, "groups": groups, "limit": limit, "collective": name,
             "sizes": sizes}
        )  # fmt: skip
        self._number += 1
        self._mailbox.assign(assignment)
        ranks = [rank for group in groups for rank in group]
        return self._mailbox.answers(assignment.number, ranks, limit + self._plan.slack)

    def _gather(self) -> None:
        plan, placement = self._plan, self._placement
        self._facts = self._mailbox.facts(placement.size, plan.start_limit)
        by_host: dict[str, list[Facts]] = {}
        for rank, fact in self._facts.items():
            self._lines += fact.lines
            self._hosts[rank] = self._hosts[rank] or fact.host
            by_host.setdefault(fact.host, []).append(fact)
        missing = sorted(set(range(placement.size)) - set(self._facts))
        self._lines += [
            failed(
                "ranks", self._hosts[rank] or f"rank {rank}",
                f"rank {rank} did not appear within {plan.start_limit:g} s",
                f"Look at logs/rank-{rank}.log; see that all nodes share {self._mailbox.folder}.",
            )
            for rank in missing
        ]  # fmt: skip
        if not missing:
            hosts = len(by_host)
            seen = f"{placement.size} ranks on {hosts} host{'s' * (hosts > 1)} (from {placement.source})"
            self._lines.append(passed("ranks", self._facts[0].host, seen))
        for name, ranks in by_host.items():
            self._judge_host(name, ranks)

    def _judge_host(self, name: str, ranks: Sequence[Facts]) -> None:
        plan, first = self._plan, ranks[0]
        if plan.wants("devices"):
            line = host.judge_devices(
                name,
                device=plan.device,
                promised=min(plan.gpus_per_node, len(ranks)) if plan.device != "cpu" else 0,
                found=host.gpus_of([(fact.gpus, fact.uuids) for fact in ranks]),
                workers=len(ranks),
                why=first.no_gpus or (),
            )
            self._lines.append(line)
        if plan.wants("cores"):
            cores = [fact.cpus for fact in ranks]
            self._lines.append(host.judge_cores(name, ranks=cores, cpus_per_worker=plan.cpus_per_worker))
        if plan.wants("memory"):
            line = host.judge_memory(
                name,
                workers=len(ranks),
                cache=plan.cache_bytes,
                available=first.available,
                limit=first.limit,
            )
            self._lines.append(line)

    def _reach(self) -> None:
        plan, hosts, facts = self._plan, self._hosts, dict(self._facts)
        answers = self._ask("reach", [sorted(facts)], 2 * plan.connect_limit * (1 + len(facts) // 16))
        self._drop_missing(answers)
        if plan.wants("ports") and self._placement.port is not None:
            self._lines += network.judge_ports(hosts, facts, answers, port=self._placement.port)

    def _drop_missing(self, answers: dict[int, RankAnswer]) -> None:
        """A rank without an answer is told once, and asked no more."""
        for rank in sorted(set(self._facts) - set(answers)):
            self._facts.pop(rank)
            self._lines.append(rank_gone(rank, self._hosts[rank]))

    def _build(self) -> None:
        plan, source = self._plan, self._placement.source
        answers = self._ask("build", [[rank] for rank in sorted(self._facts)], plan.start_limit)
        self._drop_missing(answers)
        if plan.wants("builds"):
            self._lines += builds.judge_builds(plan, self._facts, answers)
        if not plan.wants("collectives"):
            return
        if len(self._facts) < 2:
            self._lines.append(passed("collectives", self._hosts[0], "one worker has none to combine with"))
            return
        if not self._met:
            action = "Start the workers with srun, or under mpirun in blocks of one size a node."
            seen = f"hosts or port unknown (from {source})"
            self._lines.append(warned("collectives", self._hosts[0], seen, action))
        names = builds.collectives_to_try(plan, self._facts, answers, source=source, met=self._met)
        slowest = max((answer.build["seconds"] for answer in answers.values() if answer.build), default=0.0)
        trials = Trials(
            self._ask, self._hosts, sorted(self._facts), limit=plan.limit + 2 * slowest,
            sizes=plan.sizes if plan.wants("bandwidth") else (),
        )  # fmt: skip
        needed = builds.used(plan, names, source=source)
        self._lines += trials.lines(names, needed=needed)
        self._bandwidth += trials.bandwidth
