"""A rank's part in a check: look at its own machine, then try what rank 0 assigns."""

import os
import socket
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import psutil

from scalestudy.cluster.placement import Placement
from scalestudy.features.check import host, versions
from scalestudy.features.check.attempt import Attempt, among, environment, errand
from scalestudy.features.check.lead import lead
from scalestudy.features.check.mailbox import POLL, Assignment, Facts, Mailbox, RankAnswer
from scalestudy.features.check.network import Responder, reach, side_by_side
from scalestudy.features.check.plan import REPORT_FILE, Plan, WritableFolder, read_plan
from scalestudy.features.check.report import Line
from scalestudy.hardware import cores, devices
from scalestudy.hardware.memory import memory_limit
from scalestudy.hardware.no_gpus import Build, why_not_listed, why_unseen
from scalestudy.study.engines import collective, engine_traits
from scalestudy.util.errors import RunError
from scalestudy.util.files import write_atomically

PATIENCE = 1800.0
"""Seconds without an assignment after which a rank takes rank 0 for gone."""


def run(path: Path, placement: Placement) -> int:
    """Do this process's part of the check in folder `path`; rank 0 writes the report.

    Returns:
        0, also if lines of the report say fail: the check itself went through.

    Raises:
        UserError: If the folder holds no plan.
        RunError: If rank 0 gives no more assignments, or if there was a check in this folder before.
    """
    plan, mailbox = read_plan(path), Mailbox(path)
    if mailbox.facts_path(placement.rank).exists():
        raise RunError(
            "a check that starts once",
            f"a second start in {path}",
            "A node may have died, and the job was queued again: start the check anew.",
        )
    rank = _Rank(mailbox, plan, placement)
    rank.look()
    try:
        if placement.rank == 0:
            threading.Thread(target=rank.follow, daemon=True).start()
            report = lead(mailbox, plan, placement)
        else:
            rank.follow()
    finally:
        rank.close()
    if placement.rank == 0:
        write_atomically(path / REPORT_FILE, report.model_dump_json(indent=1))
    return 0


class _Rank:
    def __init__(self, mailbox: Mailbox, plan: Plan, placement: Placement) -> None:
        self._mailbox, self._plan, self._placement = mailbox, plan, placement
        self._engine = engine_traits(plan.engine)
        self._responders: list[Responder] = []
        self._attempt: Attempt | None = None
        gpu = plan.device != "cpu" and devices.gpus() > 0
        self._device = "gpu" if gpu else "cpu"

    def look(self) -> None:
        """Tell what this rank finds on its own."""
        placement = self._placement
        port = None
        if placement.size > 1 and placement.port is not None:
            port = self._listen(placement.port + 1 + placement.local_rank)
        self._mailbox.tell_facts(
            Facts(
                rank=placement.rank,
                host=socket.gethostname(),
                local_rank=placement.local_rank,
                cpus=tuple(cores.granted()),
                gpus=devices.gpus(),
                uuids=tuple(devices.visible_uuids(os.environ)),
                no_gpus=None if self._plan.device == "cpu" or devices.gpus() else why_unseen(),
                available=psutil.virtual_memory().available,
                limit=memory_limit(),
                port=port,
                lines=tuple(self._lines()) if placement.local_rank == 0 else (),
            )
        )

    def _lines(self) -> list[Line]:
        plan, here = self._plan, socket.gethostname()
        lines: list[Line] = []
        if plan.wants("versions"):
            installed = versions.read(versions.python_of(None), self._engine, plan.libraries)
            lines += versions.judge(installed, here, self._engine, libraries=plan.libraries)
        if plan.wants("folders"):
            temporary = WritableFolder(path=tempfile.gettempdir(), purpose="temporary")
            lines += [host.judge_folder(here, folder) for folder in (*plan.folders, temporary)]
        return lines

    def _listen(self, port: int) -> int | None:
        try:
            responder = Responder(self._placement.rank, port)
        except OSError:
            return None
        self._responders.append(responder)
        return responder.port

    def follow(self) -> None:
        """Do what rank 0 assigns, until the end."""
        number, since = 0, time.monotonic()
        while time.monotonic() - since < PATIENCE:
            assignment = self._mailbox.assignment(number)
            if assignment is None:
                time.sleep(POLL)
                continue
            if assignment.kind == "end":
                return
            group = next((group for group in assignment.groups if self._placement.rank in group), None)
            if group is not None:
                self._mailbox.answer(number, self._do(assignment, group))
            number, since = number + 1, time.monotonic()
        raise RunError(
            f"an assignment from rank 0 within {PATIENCE:.0f} s",
            f"none after assignment {number - 1}",
            "Look into rank 0's log; see that all nodes share the check's folder.",
        )

    def _do(self, assignment: Assignment, group: tuple[int, ...]) -> RankAnswer:
        self._end_attempt()  # an assignment comes only after all answers to the one before
        if assignment.kind == "reach":
            return self._reach(group)
        self._close_responders()  # their ports are needed now
        rank, engine, gpus = self._placement.rank, self._engine, devices.visible_gpus(os.environ)
        tried = None if assignment.kind == "build" else collective(assignment.collective)
        device = "cpu" if tried is not None and tried.device == "cpu" else self._device
        inside = among(self._placement, group)
        what = errand(
            tried, inside, device=device, sizes=assignment.sizes,
            events=self._mailbox.events(assignment.number, rank),
            memory=min((gpu.memory for gpu in gpus if gpu.memory), default=None),
        )  # fmt: skip
        place = self._placement.gpu_place(devices.gpus())
        variables = environment(tried, engine, inside, os.environ, device=device, local_rank=place, gpus=gpus)
        log = self._mailbox.folder / "logs" / f"collective-{assignment.number}-rank-{rank}.log"
        self._attempt = Attempt(engine.trial_module, what, variables, log)
        outcome = self._attempt.outcome(assignment.limit, "built" if tried is None else "done")
        build = next((event for event in self._attempt.events() if event["step"] == "built"), None)
        wanted = host.shown_at_once(devices.gpus(), devices.visible_uuids(os.environ))
        if build and self._device == "gpu" and build["gpus"] < wanted:
            words = engine.why_no_gpus(variables) if build["cuda"] else None
            name = f"{engine.label} {build[engine.name]}"
            build |= {"no_gpus": why_not_listed(Build(name, build["cuda"]), words)}
        return RankAnswer(rank=rank, build=build, outcome=outcome)

    def _reach(self, group: tuple[int, ...]) -> RankAnswer:
        plan, placement = self._plan, self._placement
        facts = self._mailbox.facts(placement.size, POLL)
        links: dict[int, str] = {}
        if plan.wants("ports"):
            others = [rank for rank in group if rank != placement.rank and rank in facts]
            reasons = side_by_side([partial(self._link, facts[rank]) for rank in others])
            links = dict(zip(others, reasons, strict=True))
        return RankAnswer(rank=placement.rank, links=links)

    def _link(self, other: Facts) -> str:
        if other.port is None:
            return "nothing listens there"
        host = self._placement.hosts[other.rank]
        return reach(host, other.port, other.rank, self._plan.connect_limit)

    def _close_responders(self) -> None:
        while self._responders:
            self._responders.pop().close()

    def _end_attempt(self) -> None:
        if self._attempt is not None:
            self._attempt.end()
            self._attempt = None

    def close(self) -> None:
        """Leave nothing behind."""
        self._close_responders()
        self._end_attempt()
