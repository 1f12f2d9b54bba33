"""Run a diagnosis on this machine: rounds of ablations of a point, and store the result."""

import contextlib
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from scalestudy.app.follow import Listener
from scalestudy.cluster.worker_environment import assignment
from scalestudy.config.point import Point
from scalestudy.features.diagnose.ablation_record import (
    ABLATION,
    ALONE,
    JOINED,
    Ablation,
    AblationTimes,
)
from scalestudy.features.diagnose.decomposition import decompose, round_times
from scalestudy.features.diagnose.diagnosed_point import DiagnosisPlan
from scalestudy.features.diagnose.diagnosis_record import (
    Diagnosis,
    DiagnosisTerms,
    make_diagnosis_folder,
    write_diagnosis,
)
from scalestudy.hardware import cores, devices
from scalestudy.hardware.own_process import oom_kills
from scalestudy.launch.reserve import await_gpus, grant
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
from scalestudy.store.record_file import read_record, write_record
from scalestudy.store.run_folder import RunFolder, write_point
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util import units
from scalestudy.util.errors import RunError

SECONDS = 2.0
"""Seconds of each variant in a round."""
TURNS = 3
"""Repetitions of each kind of block in a round, so that other load on the node affects all kinds."""


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
    point = plan.point
    study = StudyFolder.open(plan.target)
    # A run of the study would take the cores on which its point is measured.
    with study.lock():
        folder = make_diagnosis_folder(study.path, point.name)
        # Times of an earlier diagnosis must not be read with those of this one.
        shutil.rmtree(folder / "ablations", ignore_errors=True)
        measured = measure_rounds(
            point,
            folder / "ablations",
            listener,
            rounds=rounds,
            seconds=seconds,
        )
    # The stored point, so that later changes in the study's folder are detected.
    stored = point
    for known in study.points():
        if known.name == point.name:
            stored = known
            break
    rounds_times = []
    for each in measured:
        rounds_times.append(round_times(each.joined, each.apart, point.workers))
    first = measured[0]
    diagnosis = decompose(
        stored,
        rounds_times,
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
            joined = times[_join]
            apart = times[_apart]
            measured.append(Round(joined, apart, place.point.oversubscribed))
            done = number + 1
            left = (rounds - done) * (time.monotonic() - begin) / done
            if left:
                listener.note(
                    f"Round {done} of {rounds} done; about {units.duration(left)} left."
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
    names = tuple([f"worker-{worker}" for worker in range(count)])
    alone = references(place.point.engine)[0]
    one = place.point.on(implementation=alone).model_copy(update={"workers": 1})
    runs = []
    commands = []
    for worker, name in enumerate(names):
        blocks = ("together",) * TURNS
        if worker == 0:
            blocks = (*ALONE, "together") * TURNS
        update = {"blocks": blocks, "worker": worker, "peers": names}
        run = _create(folder / name, one, ablation.model_copy(update=update))
        # A process sees its own GPU alone, as a rank of the point would compute on it.
        variables = dict(place.variables)
        if place.gpus:
            own = [place.gpus[worker]]
            variables |= devices.showing(own) | assignment(own)
        # The cores that it has as a rank: "contention" is of the same neighbours.
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
    found.sort(key=lambda record: record.rank)
    return found


def _attempt(
    runs: Sequence[RunFolder],
    ranks: Sequence[int],
    commands: Sequence[Command],
) -> None:
    """Start the processes, and wait for all.

    Raises:
        RunError: If a process fails.
    """
    # Counted before and after: the kernel's out-of-memory killer leaves no message in the process that it ends.
    kills = oom_kills()
    place = runs[0].point().environment
    started = [started_in(place, command) for command in commands]
    with WorkerProcesses(started) as workers:
        failed = workers.wait()
    if failed is None:
        return
    process, code = failed
    run = runs[process]
    rank = ranks[process]
    failure = failure_of_end(run, (rank, code), workers.ended_at(process), kills)
    reason = f"exit code {code}"
    if failure:
        reason = failure.reason
    raise RunError(
        "the ablations of a point to run as its runs do",
        f"rank {rank} of {run.path.name}: {reason}",
        f"See {run.log(rank)}.",
    )


def _terms(point: Point, times: AblationTimes) -> DiagnosisTerms:
    device: Literal["cpu", "gpu"] = "cpu"
    if point.launch.device != "cpu" and devices.gpus() > 0:
        device = "gpu"
    return DiagnosisTerms(
        device=device,
        cores=len(cores.granted()),
        cpus_per_worker=point.launch.cpus_per_worker,
        batch_size=point.train.batch_size,
        steps_per_call=times.blocks[0].steps_per_call,
    )
