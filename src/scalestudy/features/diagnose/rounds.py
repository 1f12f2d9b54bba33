"""Run a diagnosis on this machine: choose a point, run rounds of ablations, and store the result."""

import contextlib
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from scalestudy.analysis.findings import Findings, read_study
from scalestudy.analysis.runs import Key, key_of
from scalestudy.app.follow import Listener
from scalestudy.cluster.worker_environment import assignment
from scalestudy.config.point import Point
from scalestudy.config.settings import DEFAULT_LAUNCHER
from scalestudy.data.store.prepared import Prepared
from scalestudy.features.diagnose.ablation import (
    ABLATION,
    ALONE,
    JOINED,
    Ablation,
    AblationTimes,
)
from scalestudy.features.diagnose.decomposition import (
    Diagnosis,
    DiagnosisTerms,
    decompose,
    make_diagnosis_folder,
    round_times,
    write_diagnosis,
)
from scalestudy.hardware import cores, devices
from scalestudy.hardware.own_process import oom_kills
from scalestudy.launch.launcher import launcher
from scalestudy.launch.reserve import await_gpus, grant, refuse_open_ports
from scalestudy.launch.run_failures import failure_of_end
from scalestudy.launch.stop_signal import stoppable
from scalestudy.launch.worker_processes import (
    Command,
    WorkerProcesses,
    share,
    started_in,
    worker_command,
    worker_commands,
)
from scalestudy.plugins.strategies import references
from scalestudy.store.permission import NOTHING, Permission, permit_point
from scalestudy.store.record_file import read_record, write_record
from scalestudy.store.run_folder import RunFolder, write_point
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util import units
from scalestudy.util.errors import RunError, UserError
from scalestudy.util.text import elide

SECONDS = 2.0
"""Seconds of each variant in a round."""
TURNS = 3
"""Repetitions of each kind of block in a round, so that other load on the node affects all kinds."""


class DiagnosisPlan(NamedTuple):
    """The plan of a diagnosis: a point with its data, the findings of its study, and why it was chosen."""

    target: Path
    point: Point
    findings: Findings
    why: str = ""


def plan_diagnosis(
    folder: StudyFolder,
    name: str | None,
    permission: Permission = NOTHING,
) -> DiagnosisPlan:
    """Find the point, by its name or with `choose_point`, and the data of a run that has started.

    Raises:
        UserError: If there is no such point, it cannot be diagnosed here, or its code may not run.
    """
    findings, points = read_study(folder), folder.points()
    if any(run.result.by_script for run in findings.runs):
        raise UserError(
            "a study of a task, whose steps can be analysed",
            f"{folder.path}, whose runs were trained by a script",
            "Write the script's model as a task: `scalestudy docs reference/task-file`.",
        )
    if name is None:
        point, why = choose_point(points, findings)
    else:
        point, why = named_point(points, name), ""
    if point.launch.on != DEFAULT_LAUNCHER:
        raise UserError(
            "a study whose points run on this machine",
            f'{point.name} of launch.on = "{point.launch.on}"',
            f'Run the point with launch.on = "{DEFAULT_LAUNCHER}" on a node that holds all its workers.',
        )
    permitted = permit_point(_with_files(folder, point), permission)
    launcher(DEFAULT_LAUNCHER).refuse([permitted])
    refuse_open_ports([permitted])
    return DiagnosisPlan(folder.path, permitted, findings, why)


def named_point(points: Sequence[Point], name: str) -> Point:
    """Return the point with this name.

    Raises:
        UserError: If there is none, or its efficiency is not defined.
    """
    several = {point.name: point for point in points if _loses_efficiency(point)}
    # A row that was only timed is named as every other: the timing run has the settings of the training.
    timed = f"{name}-timing"
    if name not in several and timed in several:
        return several[timed]
    if name not in several:
        known = elide(list(several), 8)
        wanted = "a point of several workers that compute each step at the same time"
        raise UserError(wanted, repr(name), f"Name one of: {known or 'none'}.")
    return several[name]


def _loses_efficiency(point: Point) -> bool:
    """Return whether several workers compute each step together and at the same time."""
    return point.workers > 1 and point.traits.has_speed_up


def choose_point(points: Sequence[Point], findings: Findings) -> tuple[Point, str]:
    """Return the most informative point, and why it was chosen.

    This is the point with the next larger number of workers than advised, which shows why more workers do not
    pay. If there is none, it is the largest measured point, or else the largest point.

    Raises:
        UserError: If no point has several workers.
    """
    several = []
    for point in points:
        if _loses_efficiency(point) and not point.oversubscribed:
            several.append(point)
    if not several:
        raise UserError(
            "a study with a point of several workers that is not oversubscribed",
            "none",
            "Sweep numbers of workers from 2 up to that of the machine's cores or GPUs.",
        )
    by_size = sorted(several, key=lambda point: (point.workers, -point.seed))
    choice = findings.advice.choice
    if choice:
        larger = []
        for point in by_size:
            is_larger = point.workers > choice.workers
            if is_larger and _key(point) == choice.key.on(point.workers):
                larger.append(point)
        if larger:
            first = min(larger, key=lambda point: (point.workers, point.seed))
            return first, f"the next larger count than is advised ({choice.key.label})"
    done = {row.key for row in findings.rows}
    measured = [point for point in by_size if _key(point) in done]
    if measured:
        return measured[-1], "the largest that the study has measured"
    return by_size[-1], "the largest of the study"


def _key(point: Point) -> Key:
    return key_of(point.strategy, point.workers, point.swept)


def _with_files(folder: StudyFolder, point: Point) -> Point:
    """Return the point with the data files of one of its runs, or of another point's run on the same data."""
    same_data = [other for other in folder.points() if other.data == point.data]
    # The point's own runs come first, and of each point the latest.
    for candidate in sorted(same_data, key=lambda other: other.name != point.name):
        for run in reversed(folder.runs(candidate.name)):
            # A run may be damaged, or its data may have been removed since.
            with contextlib.suppress(UserError):
                files = run.point().files
                if files is None:
                    continue
                Prepared.open(files.prepared)
                return point.with_files(
                    files.prepared,
                    files.split,
                    files.class_weights,
                )
    raise UserError(
        "a study with a run that has started",
        f"{folder.path}, without a run on the data of {point.name}",
        "Run its study file first: scalestudy run.",
    )


def diagnose(
    plan: DiagnosisPlan,
    listener: Listener,
    *,
    rounds: int,
    seconds: float = SECONDS,
) -> Diagnosis:
    """Run a point's ablations here, and store the diagnosis in the study's folder.

    Raises:
        UserError: If the study runs at the same time.
        RunError: If an ablation fails.
        KeyboardInterrupt: On Ctrl-C, after all processes have ended.
    """
    point, study = plan.point, StudyFolder.open(plan.target)
    with study.lock():
        folder = make_diagnosis_folder(study.path, point.name)
        shutil.rmtree(folder / "ablations", ignore_errors=True)
        measured = measure_rounds(
            point,
            folder / "ablations",
            listener,
            rounds=rounds,
            seconds=seconds,
        )
    first = measured[0]
    diagnosis = decompose(
        # Use the stored point, so that later changes in the study's folder are detected.
        next((stored for stored in study.points() if stored.name == point.name), point),
        [round_times(times.joined, times.apart, point.workers) for times in measured],
        first.apart,
        _terms(point, first.joined[0]),
        block_seconds=seconds,
        oversubscribed=first.oversubscribed,
    )
    write_diagnosis(study.path, diagnosis)
    return diagnosis


class Round(NamedTuple):
    """Times of the point's own processes, of its workers as separate processes, and why they do not count."""

    joined: tuple[AblationTimes, ...]
    apart: tuple[AblationTimes, ...]
    oversubscribed: str | None = None


def measure_rounds(
    point: Point,
    folder: Path,
    listener: Listener,
    *,
    rounds: int,
    seconds: float,
) -> list[Round]:
    """Run a point's ablations in a folder, all on the same cores and GPUs. Raises as `diagnose` does."""
    measured: list[Round] = []
    with contextlib.ExitStack() as held:
        on_progress = held.enter_context(
            listener.progress(f"Diagnosing {point.name}", 2 * rounds)
        )
        held.enter_context(stoppable())
        gpus = await_gpus(held, point, listener.note)
        place = _Resources(*held.enter_context(grant(point, gpus)), gpus=gpus)
        begin = time.monotonic()
        for number in range(rounds):
            # Each round begins with another block, and with the other kind of processes, so that a machine
            # that becomes slower or faster meanwhile affects all alike.
            turned = JOINED[number % 3 :] + JOINED[: number % 3]
            kinds = (_join, _apart)
            if number % 2:
                kinds = (_apart, _join)
            ablation = Ablation(
                blocks=turned * TURNS,
                seconds=seconds / TURNS,
                workers=point.workers,
            )
            times = {}
            for kind in kinds:
                times[kind] = kind(place, folder / f"round-{number + 1}", ablation)
                on_progress(2 * number + len(times))
            joined, apart = times[_join], times[_apart]
            measured.append(Round(joined, apart, place.point.oversubscribed))
            left = (rounds - number - 1) * (time.monotonic() - begin) / (number + 1)
            if left:
                listener.note(
                    f"Round {number + 1} of {rounds} done; about {units.duration(left)} left."
                )
    return measured


class _Resources(NamedTuple):
    """The resources for the ablations of a point."""

    point: Point
    port: int
    cpus: Sequence[int]
    variables: Mapping[str, str]
    gpus: Sequence[str]


def _join(
    place: _Resources,
    folder: Path,
    ablation: Ablation,
) -> tuple[AblationTimes, ...]:
    """Run the point's own processes, and return their times by rank."""
    run = _create(folder / "joined", place.point, ablation)
    size = place.point.processes
    commands = worker_commands(run, size, place.port, place.cpus, place.variables)
    _attempt([run] * size, range(size), commands)
    return tuple(_times(run))


def _apart(
    place: _Resources,
    folder: Path,
    ablation: Ablation,
) -> tuple[AblationTimes, ...]:
    """Run a separate process for each worker's slice; the first also measures blocks alone."""
    count = place.point.workers
    names = tuple(f"worker-{worker}" for worker in range(count))
    alone = references(place.point.engine)[0]
    one = place.point.on(implementation=alone).model_copy(update={"workers": 1})
    runs, commands = [], []
    for worker, name in enumerate(names):
        blocks = ("together",) * TURNS
        if worker == 0:
            blocks = (*ALONE, "together") * TURNS
        update = {"blocks": blocks, "worker": worker, "peers": names}
        run = _create(folder / name, one, ablation.model_copy(update=update))
        variables = dict(place.variables)
        if place.gpus:
            own = [place.gpus[worker]]
            variables |= devices.showing(own) | assignment(own)
        cpus = share(place.cpus, worker, count)
        commands.append(worker_command(run, 0, 1, place.port, cpus, variables))
        runs.append(run)
    _attempt(runs, [0] * count, commands)
    times: list[AblationTimes] = []
    for run in runs:
        times += _times(run)
    return tuple(times)


def _create(path: Path, point: Point, ablation: Ablation) -> RunFolder:
    path.mkdir(parents=True)
    write_point(path / "point.json", point)
    write_record(path / ABLATION, ablation)
    return RunFolder(path)


def _times(run: RunFolder) -> list[AblationTimes]:
    found = []
    for file in (run.path / "times").glob("*.json"):
        record = read_record(file, AblationTimes).record
        if record:
            found.append(record)
    return sorted(found, key=lambda record: record.rank)


def _attempt(
    runs: Sequence[RunFolder],
    ranks: Sequence[int],
    commands: Sequence[Command],
) -> None:
    """Start the processes, and wait for all.

    Raises:
        RunError: If a process fails.
    """
    kills, place = oom_kills(), runs[0].point().environment
    started = [started_in(place, command) for command in commands]
    with WorkerProcesses(started) as workers:
        failed = workers.wait()
    if failed is not None:
        process, code = failed
        end = (ranks[process], code)
        failure = failure_of_end(runs[process], end, workers.ended_at(process), kills)
        reason = failure.reason if failure else f"exit code {code}"
        raise RunError(
            "the ablations of a point to run as its runs do",
            f"rank {ranks[process]} of {runs[process].path.name}: {reason}",
            f"See {runs[process].log(ranks[process])}.",
        )


def _terms(point: Point, times: AblationTimes) -> DiagnosisTerms:
    launch, train = point.launch, point.train
    on_gpus = launch.device != "cpu" and devices.gpus() > 0
    return DiagnosisTerms(
        device="gpu" if on_gpus else "cpu",
        cores=len(cores.granted()),
        cpus_per_worker=launch.cpus_per_worker,
        batch_size=train.batch_size,
        steps_per_call=times.blocks[0].steps_per_call,
    )
