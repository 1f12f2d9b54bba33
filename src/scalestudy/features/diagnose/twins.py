"""The twins of a point on this machine: rounds of short runs, on the same cores and GPUs throughout."""

import contextlib
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scalestudy.cluster.promise import promising
from scalestudy.errors import RunError
from scalestudy.features.diagnose.twin import Ablation, AblationTimes, BlockName
from scalestudy.launch.base import Note
from scalestudy.launch.local.reserve import granted, reserved_gpus
from scalestudy.launch.local.run import failure_of_end
from scalestudy.launch.local.workers import Command, Workers, share, worker_command, worker_commands
from scalestudy.machine import visible
from scalestudy.machine.memory import oom_kills
from scalestudy.study.point import Point
from scalestudy.study.record_file import write_record
from scalestudy.study.run_folder import RunFolder, write_point
from scalestudy.study.strategies import references

JOINED: tuple[BlockName, ...] = ("whole", "without input", "without exchange")
TURNS = 3
"""Times that a round goes over its blocks, so that what else the node does meets all of them."""


@dataclass(frozen=True)
class Round:
    """What one round measured.

    Attributes:
        joined: Times of the point's own processes, by rank.
        apart: Times of its workers as processes of their own, by worker.
        oversubscribed: Why its times say little; None if each worker had cores of its own.
    """

    joined: tuple[AblationTimes, ...]
    apart: tuple[AblationTimes, ...]
    oversubscribed: str | None = None


@dataclass(frozen=True)
class _Place:
    """What the twins of a point have for themselves."""

    point: Point
    gpus: Sequence[str]
    port: int
    cpus: Sequence[int]
    variables: Mapping[str, str]


def run_ablations(
    point: Point, folder: Path, *, rounds: int, seconds: float, trace: bool = False
) -> Generator[Note | int, None, list[Round]]:
    """Measure a point's twins; gives the number of each round that is done, and notes.

    Args:
        point: With its data, of several workers.
        folder: An empty one, for the twins' own.
        rounds: How often all are measured, in turn.
        seconds: Seconds of steps of each kind of block in a round.
        trace: Whether to keep when each step began, and to have the engine's profiler write.

    Raises:
        RunError: If one fails.
        KeyboardInterrupt: On Ctrl-C, after all workers have ended.
    """
    found = []
    with contextlib.ExitStack() as held:
        gpus = yield from reserved_gpus(held, point)
        own, port, cpus, variables = held.enter_context(granted(point, gpus))
        place = _Place(own, gpus, port, cpus, variables)
        for number in range(rounds):
            inside = folder / f"round-{number + 1}"
            turned = JOINED[number % 3 :] + JOINED[: number % 3]
            shared = Ablation(
                blocks=turned * TURNS, seconds=seconds / TURNS, workers=point.workers,
                trace=trace and number == 0,
            )  # fmt: skip
            kinds = (_joined, _apart) if number % 2 == 0 else (_apart, _joined)
            times = {kind: kind(place, inside, shared) for kind in kinds}
            found.append(Round(times[_joined], times[_apart], own.oversubscribed))
            yield number + 1
    return found


def _joined(place: _Place, inside: Path, twin: Ablation) -> tuple[AblationTimes, ...]:
    """The point's own processes."""
    run, size = _made(inside / "joined", place.point, twin), place.point.processes
    commands = worker_commands(run, size, place.port, place.cpus, place.variables)
    _attempt([run] * size, range(size), commands)
    return tuple(run.times())


def _apart(place: _Place, inside: Path, twin: Ablation) -> tuple[AblationTimes, ...]:
    """A process for each worker's slice, none of which knows of the others; the first measures alone, too."""
    count = place.point.workers
    names = [f"worker-{worker}" for worker in range(count)]
    one = place.point.on(implementation=references()[0]).model_copy(update={"workers": 1})
    alone: tuple[BlockName, ...] = ("alone", "full", "reference")
    runs, commands = [], []
    for worker, name in enumerate(names):
        blocks: tuple[BlockName, ...] = (*(alone if worker == 0 else ()), "together")
        own = twin.model_copy(update={"blocks": blocks * TURNS, "worker": worker, "beside": tuple(names)})
        run = _made(inside / name, one, own)
        variables = dict(place.variables)
        if place.gpus:
            variables |= visible.showing([place.gpus[worker]]) | promising([place.gpus[worker]])
        cpus = share(place.cpus, worker, count)
        commands.append(worker_command(run.path, 0, 1, place.port, cpus, variables, run.log(0)))
        runs.append(run)
    _attempt(runs, [0] * count, commands)
    return tuple(times for run in runs for times in run.times())


def _made(path: Path, point: Point, twin: Ablation) -> RunFolder:
    path.mkdir(parents=True)
    write_point(path / "point.json", point)
    write_record(path / "ablation.json", twin)
    return RunFolder(path)


def _attempt(runs: Sequence[RunFolder], ranks: Sequence[int], commands: Sequence[Command]) -> None:
    """Start the processes, and stay until all have ended.

    Args:
        runs: The folder of each process.
        ranks: Its rank there.
        commands: What is started.
    """
    kills = oom_kills()
    with Workers(commands) as workers:
        failed = workers.wait()
    if failed is not None:
        process, code = failed
        end = (ranks[process], code)
        failure = failure_of_end(runs[process], end, workers.ended_at(process), kills)
        reason = failure.reason if failure else f"exit code {code}"
        raise RunError(
            "the twins of a point to run as its runs do",
            f"rank {ranks[process]} of {runs[process].path.name}: {reason}",
            f"Look into {runs[process].log(ranks[process])}.",
        )
