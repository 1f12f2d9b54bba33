"""What is to be diagnosed: the study, the point, its data, and whether that can be done here."""

import contextlib
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from scalestudy.analysis.findings import Findings
from scalestudy.conduct.listener import Listener
from scalestudy.errors import UserError
from scalestudy.features.diagnose.choose_point import chosen, named
from scalestudy.features.diagnose.records import diagnosis_folder
from scalestudy.study.launchers import DEFAULT
from scalestudy.study.point import Files, Point
from scalestudy.study.store import StudyFolder

BLOCKS = 7
"""Kinds of blocks in a round."""
IN_A_JOB = ("SLURM_JOB_ID", "PBS_JOBID")


@dataclass(frozen=True)
class Planned:
    """What is to be diagnosed.

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
        """What would be run, for people."""
        point, cpus = self.point, self.point.launch.cpus_per_worker
        each = f"{cpus} core{'s' * (cpus != 1)} a worker"
        batch = f"{point.implementation}, global batch {point.global_batch}, {each}"
        which = f" ({self.why})" if self.why else ""
        return [
            f"{point.name}{which}: {batch}",
            f"{rounds} round{'s' * (rounds != 1)} of its {point.workers} workers joined (as it is, without "
            "input, without exchange), then apart (one alone, the one-worker run, all at once)",
            f"{seconds:g} s of steps of each: about {rounds * BLOCKS * seconds:.0f} s, and the start of "
            f"{2 * rounds} times {point.workers} workers",
            f"kept in {diagnosis_folder(self.target, point.name)}",
        ]


def plan(
    given: Path, name: str | None, listener: Listener, out: Path | None = None, *, dry_run: bool = False
) -> Planned:
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
    return Planned(folder.path, _with_files(folder, _here(point)), findings, why)


def _of_file(file: Path, name: str | None, listener: Listener, out: Path | None, *, dry_run: bool) -> Planned:
    """Of a study file: what is not there yet is prepared and made, as `run` does."""
    from scalestudy.analysis.findings import analyse
    from scalestudy.analysis.read import read_study
    from scalestudy.conduct.request import request_of
    from scalestudy.conduct.survey import survey

    request = request_of(file, out)
    there = (request.target / "study.json").exists()
    if request.study.launch.on != DEFAULT:
        if not there:
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
        return Planned(request.target, point, findings, why)
    found.launcher.refuse([point])
    ready = found.ready([point], listener)[point.name]
    return Planned(found.folder().path, ready, findings, why)


def _choose(points: list[Point], name: str | None, findings: Findings) -> tuple[Point, str]:
    if name is not None:
        return named(points, name), ""
    return chosen(points, findings)


def _here(point: Point, variables: Mapping[str, str] = os.environ) -> Point:
    """A queue's point as this node runs it, within a job of the queue.

    Raises:
        UserError: Outside of one; or where this node has too few cores or GPUs for all its workers.
    """
    from scalestudy.machine import cores, devices

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

    for files in _files(folder, point):
        Prepared.open(files.prepared)
        return point.with_files(files.prepared, files.split, files.class_weights)
    raise UserError(
        "a study of which a run has begun",
        f"{folder.path}, without a run that reads what {point.name} reads",
        "Run it first, or name the study file instead of its folder.",
    )


def _files(folder: StudyFolder, point: Point) -> Iterator[Files]:
    others = [each for each in folder.points() if each.name != point.name and each.data == point.data]
    for each in (point, *others):
        for run in reversed(folder.runs(each.name)):
            with contextlib.suppress(UserError):
                files = run.point().files
                if files is not None:
                    yield files
