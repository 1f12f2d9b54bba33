"""What is diagnosed: the study, the point, its data; how long it takes, and whether it is possible here."""

import contextlib
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key, key_of
from scalestudy.app.listener import Listener
from scalestudy.features.diagnose.records import BlockName, diagnosis_folder
from scalestudy.study.launchers import DEFAULT
from scalestudy.study.point import Point
from scalestudy.study.store import StudyFolder
from scalestudy.util import units
from scalestudy.util.errors import UserError

JOINED: tuple[BlockName, ...] = ("whole", "without input", "without exchange")
"""Blocks of the point's own processes."""
ALONE: tuple[BlockName, ...] = ("alone", "full", "reference")
"""Blocks of the first worker's process, before it computes together with the others'."""
KINDS = len(JOINED) + len(ALONE) + 1
TURNS = 3
"""Times that a round measures each kind of block, so that what else the node does affects all of them."""
WARM = 2
"""Calls before a block is timed: the first may compile."""
FEWEST, MOST = 4, 400
"""Calls of a block."""
IN_A_JOB = ("SLURM_JOB_ID", "PBS_JOBID")


@dataclass(frozen=True)
class DiagnosisPlan:
    """What is diagnosed.

    Attributes:
        target: The study's folder.
        point: With its data.
        findings: What the study has measured.
        why: Why it is this point; "" where it was named.
    """

    target: Path
    point: Point
    findings: Findings
    why: str = ""

    def lines(self, rounds: int, seconds: float) -> list[str]:
        """What is going to be run, for people."""
        point, cpus = self.point, self.point.launch.cpus_per_worker
        why = f" ({self.why})" if self.why else ""
        return [
            f"{point.name}{why}: {point.implementation}, global batch {point.global_batch}, "
            f"{cpus} core{'s' * (cpus != 1)} per worker",
            f"{rounds} round{'s' * (rounds != 1)} of its {point.workers} workers joined (as it is, without "
            "input, without exchange), then apart (one alone, the one-worker run, all at once)",
            self.duration(rounds, seconds),
            f"stored in {diagnosis_folder(self.target, point.name)}",
        ]

    def duration(self, rounds: int, seconds: float) -> str:
        """How long all rounds take, in words."""
        expected = self.expected_seconds(rounds, seconds)
        if expected is not None:
            return f"about {units.duration(expected)}, by this study's runs of the point"
        return (
            f"at least {units.duration(rounds * KINDS * seconds)} of steps; starting and compiling the "
            f"workers {2 * rounds} times comes on top, and is known after the first round"
        )

    def expected_seconds(self, rounds: int, seconds: float) -> float | None:
        """Seconds of all rounds, by the study's own runs of the point; None where it has none."""
        point, key = self.point, key_of_point(self.point)
        phases = self.findings.phases.get(key)
        rates = self.findings.measures.throughput.values.get(key)
        if not phases or not rates:
            return None
        start = sum(phases.get(name, 0.0) for name in ("start-up", "framework", "join"))
        compiling = 2 * sum(phases.get(name, 0.0) for name in ("build", "compile"))  # two programs each
        call = point.global_batch / fmean(rates.values()) * (point.train.steps_per_call or 1)
        # A whole batch takes one worker as much longer as its slice is smaller.
        of_one = call * (point.workers if point.train.batch == "global" else 1)
        blocks = 0.0
        for kind in (*JOINED, *ALONE, "together"):
            each = of_one if kind in ("full", "reference") else call
            blocks += TURNS * (max(seconds / TURNS, FEWEST * each) + WARM * each)
        return rounds * (2 * (start + compiling) + blocks)


def plan(
    given: Path, name: str | None, listener: Listener, out: Path | None = None, *, dry_run: bool = False
) -> DiagnosisPlan:
    """Find the study, its folder and the point.

    Args:
        given: A study file, or a results folder.
        name: Name of the point; None chooses one.
        listener: Is told what takes time.
        out: The results folder of a study file.
        dry_run: Whether nothing is to be prepared or written.

    Raises:
        UserError: If there is no such point, or it cannot be diagnosed here.
    """
    from scalestudy.analysis.read import read_study

    if given.suffix == ".toml" and not given.is_dir():
        return _of_file(given, name, listener, out, dry_run=dry_run)
    folder = StudyFolder.open(given)
    findings = read_study(folder)
    point, why = _choose(folder.points(), name, findings)
    return DiagnosisPlan(folder.path, _with_files(folder, _here(point)), findings, why)


def _of_file(
    file: Path, name: str | None, listener: Listener, out: Path | None, *, dry_run: bool
) -> DiagnosisPlan:
    """Of a study file: what is missing is prepared and made, as `run` does."""
    from scalestudy.analysis.findings import analyse
    from scalestudy.analysis.read import read_study
    from scalestudy.app.request import request_of
    from scalestudy.app.survey import survey

    request = request_of(file, out)
    if request.study.launch.on != DEFAULT:
        if not (request.target / "study.json").exists():
            raise UserError(
                "a study whose runs a queue has begun",
                f"{file}, without {request.target}",
                f"Submit it first: scalestudy submit {shlex.quote(str(file))}",
            )
        return plan(request.target, name, listener)
    found = survey(request, listener=listener)
    findings = read_study(found.existing) if found.existing else analyse(request.study.name, ())
    point, why = _choose(found.points, name, findings)
    if dry_run:
        return DiagnosisPlan(request.target, point, findings, why)
    found.launcher.refuse([point])
    ready = found.ready([point], listener)[point.name]
    return DiagnosisPlan(found.folder().path, ready, findings, why)


def _choose(points: list[Point], name: str | None, findings: Findings) -> tuple[Point, str]:
    return choose_point(points, findings) if name is None else (named_point(points, name), "")


def named_point(points: Sequence[Point], name: str) -> Point:
    """The point of this name.

    Raises:
        UserError: If there is none, or if it can lose no efficiency.
    """
    found = next((point for point in points if point.name == name), None)
    if found is None:
        several = [point.name for point in points if point.workers > 1]
        known = ", ".join(several[:8]) + ", …" * (len(several) > 8)
        raise UserError("a point of the study", repr(name), f"Points of several workers: {known or 'none'}.")
    if found.workers == 1:
        raise UserError(
            "a point of several workers",
            f"{name}, of one, whose efficiency is 1 by definition",
            "Name one of more workers; it is compared with one worker anyway.",
        )
    if not found.traits.timed:
        raise UserError(
            "a point whose workers compute at the same time",
            f"{name}, whose workers one device computes one after another",
            "Name a point of another strategy.",
        )
    return found


def choose_point(points: Sequence[Point], findings: Findings | None) -> tuple[Point, str]:
    """The point that a decision depends on, and why it is that one.

    Beyond the advised count, efficiency is lost that the advice would not pay for: its next larger neighbour
    says why. Without advice, or beyond it, the largest that was measured, else the largest there is.

    Raises:
        UserError: If there is none of several workers.
    """
    several = [
        point for point in points if point.workers > 1 and point.traits.timed and not point.oversubscribed
    ]
    if not several:
        raise UserError(
            "a study with a point of several workers that has as many cores or GPUs",
            "none",
            "Add larger counts to sweep.workers.",
        )
    by_size = sorted(several, key=lambda point: (point.workers, -point.seed))
    choice = findings.advice.choice if findings else None
    if choice:
        larger = [
            point
            for point in by_size
            if point.workers > choice.workers
            and key_of_point(point) == choice.key.with_(choice.strategy, point.workers)
        ]
        if larger:
            fewest = [point for point in larger if point.workers == larger[0].workers]
            return fewest[-1], f"the next larger count than is advised ({choice.key.label})"
    done = {row.key for row in findings.rows} if findings else set()
    measured = [point for point in by_size if key_of_point(point) in done]
    if measured:
        return measured[-1], "the largest that the study has measured"
    return by_size[-1], "the largest of the study"


def key_of_point(point: Point) -> Key:
    """The row of a point in the study's table."""
    return key_of(point.strategy, point.workers, point.swept)


def _here(point: Point, variables: Mapping[str, str] = os.environ) -> Point:
    """A queue's point as this node runs it, within a job of the queue.

    Raises:
        UserError: Outside of one; or where this node has too few cores or GPUs for all its workers.
    """
    from scalestudy.hardware import cores, devices

    if point.launch.on == DEFAULT:
        return point
    if not any(name in variables for name in IN_A_JOB):
        raise UserError(
            "a point that runs on this machine, or a job of the queue around this command",
            f'{point.name} of launch.on = "{point.launch.on}"',
            "Ask the queue for one node with all its workers, and diagnose the folder inside that job.",
        )
    gpus, granted = devices.gpus(), len(cores.granted())
    needed = point.workers * point.launch.cpus_per_worker
    short = point.workers > gpus if gpus and point.launch.device != "cpu" else needed > granted
    if short:
        raise UserError(
            f"a node that holds all {point.workers} workers of {point.name}",
            f"{gpus} GPUs and {granted} cores on this one",
            "Name a point that fits one node: across nodes, exchange is all that is added.",
        )
    return point.on(launch=point.launch.model_copy(update={"on": DEFAULT, "site": None}))


def _with_files(folder: StudyFolder, point: Point) -> Point:
    """The point with the data of a run of it, or of another that reads the same."""
    from scalestudy.data.store.prepared import Prepared

    same_data = [other for other in folder.points() if other.data == point.data]
    for candidate in sorted(same_data, key=lambda other: other.name != point.name):
        for run in reversed(folder.runs(candidate.name)):
            with contextlib.suppress(UserError):
                if (files := run.point().files) is not None:
                    Prepared.open(files.prepared)
                    return point.with_files(files.prepared, files.split, files.class_weights)
    raise UserError(
        "a study of which a run has begun",
        f"{folder.path}, without a run that reads what {point.name} reads",
        "Run it first, or name the study file instead of its folder.",
    )
