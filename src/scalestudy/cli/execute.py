"""What `run` and `train` share: from a study to its results and report."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.cli.console import err, out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scalestudy.launch.local.run import RunOutcome
    from scalestudy.study.file import Study
    from scalestudy.study.point import Point
    from scalestudy.study.records import Failure
    from scalestudy.study.store import StudyFolder


@dataclass(frozen=True)
class Order:
    """A study to run.

    `text` is its file's, `base` the folder that its relative paths are seen from, `target` the results
    folder, and `resume` the command that takes it up again.
    """

    study: "Study"
    text: str
    base: Path
    target: Path
    resume: str


def execute(order: Order, *, dry_run: bool = False, report: bool = True) -> int:
    """Run what is missing, here or through Slurm, and report.

    Returns:
        The exit code: 0 done, 1 a run failed, 130 interrupted.

    Raises:
        UserError: Before anything is started or written.
    """
    if order.study.launch.on == "slurm":
        from scalestudy.cli.run_queued import run_queued

        return run_queued(order, dry_run=dry_run, report=report)
    from scalestudy.cli.preparing import prepared, with_task_data
    from scalestudy.launch import resources
    from scalestudy.study.expand import expand
    from scalestudy.study.feasible import refuse_queued
    from scalestudy.study.store import StudyFolder

    study, kind = with_task_data(order.study)
    points = expand(study, gpus=resources.gpus(), cores=len(resources.cores()))
    refuse_queued(points, study.place)
    existing = StudyFolder.check(order.target, study, points)
    states = existing.states() if existing else {}
    if dry_run:
        _print_points(points, states, order.target)
        return 0
    wanted = [point for point in points if states.get(point.name) != "done"]
    resources.check(wanted)
    ready = {point.name: point for point in prepared(wanted, kind, order.base, study.place)}
    folder = StudyFolder.create_or_open(order.target, study, points, order.text)
    try:
        with folder.lock():
            todo = [ready[point.name] for point in folder.missing() if point.name in ready]
            outcomes = _run(folder, todo)
    except KeyboardInterrupt:
        err().print(f"\nInterrupted; finished runs are kept. Resume with: {order.resume}", markup=False)
        return 130
    failed = [outcome for outcome in outcomes if not outcome.ok]
    for outcome in failed:
        print_failure(folder, outcome.point.name, outcome.failure)
    if report:
        print_report(folder)
    if failed:
        err().print(f"Run what failed again with: {order.resume}", markup=False)
    return 1 if failed else 0


def _run(folder: "StudyFolder", todo: "list[Point]") -> "list[RunOutcome]":
    from scalestudy.cli.live import Live
    from scalestudy.launch.local.run import run_points

    done = len(folder.points()) - len(todo)
    if done:
        out().print(f"{done} of {len(folder.points())} points are done already.", markup=False)
    if not todo:
        return []
    with Live(folder, todo, out()) as live:
        return run_points(folder, todo, watch=live.watch)


def _print_points(points: "list[Point]", states: "Mapping[str, str]", target: Path) -> None:
    console = out()
    for point in points:
        note = f"  (oversubscribed: {point.oversubscribed})" if point.oversubscribed else ""
        state = states.get(point.name, "missing")
        batch = f"{point.implementation}, global batch {point.global_batch}, {point.train.epochs} epochs"
        console.print(f"{point.name}  {state}  {batch}{note}", markup=False)
    todo = sum(states.get(point.name) != "done" for point in points)
    console.print(f"{len(points)} points, {todo} to run, results in {target}", markup=False)


def print_failure(folder: "StudyFolder", name: str, failure: "Failure | None") -> None:
    """Print why a point failed, its last words, and where its logs are."""
    console = err()
    console.print(f"\n{name} failed: {failure.reason if failure else 'no result'}", style="red")
    for line in failure.tail if failure else []:
        console.print(f"  | {line}", markup=False)
    newest = folder.runs(name)[-1:]
    if newest:
        console.print(f"  logs: {newest[0].path / 'logs'}", markup=False)


def print_report(folder: "StudyFolder") -> None:
    """Write the report, print its table, and say where it is."""
    from scalestudy.report.write import render, write_report

    console = out()
    files = write_report(folder)
    print("\n" + render(folder, "table", colour=console.is_terminal))
    console.print(f"Report: {files.html}", markup=False)
