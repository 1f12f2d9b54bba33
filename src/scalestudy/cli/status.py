"""`scalestudy status`: the state of every point of a study."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scalestudy.cli.console import err, out
from scalestudy.cli.options import AnswerOption, PointsOption, StudyArgument, open_study

if TYPE_CHECKING:
    from rich.console import RenderableType

    from scalestudy.launch.base import Overview

MANY = 40
"""Largest number of points shown individually, unless the user asks for more."""


def status(
    study: StudyArgument = None,
    states: Annotated[
        list[str] | None,
        typer.Option("--state", help="Only points in this state. Repeatable.", metavar="STATE"),
    ] = None,
    points: PointsOption = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by", help="One line for each value of an axis: strategy, workers, seed, …", metavar="AXIS"
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="One line for each point, however many.")] = False,
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Refresh until the study ends; in a terminal also show losses, cost and time left."
        ),
    ] = False,
    interval: Annotated[
        float, typer.Option(min=0.1, help="Minimum seconds between refreshes of --live.", metavar="SECONDS")
    ] = 1.0,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare all files with their checksums instead.")
    ] = False,
    form: AnswerOption = "table",
) -> None:
    """Show the state, progress and quality of every point.

    For a study in a queue it also shows the jobs, their nodes, why they wait, and jobs of this folder that
    belong to no run. More than forty points are shown in groups, one line for those that differ only in their
    seed, unless --all, --state, --point or --by is given.

    States: missing (not started), queued, running, done, failed, cancelled (by a person), corrupt (a record
    cannot be read; see --verify).

    --verify compares finished runs with the checksums in their SHA256SUMS, checks the other records and the
    prepared data, and changes nothing. The exit code is 0 if all files are sound, and 1 if one is missing or
    corrupt (truncated, altered, unreadable). A run with a corrupt record is neither trained again nor counted
    in reports: restore its folder from a backup, or move it out of the study.
    """
    if verify:
        # A folder may be too damaged to be opened.
        folder = study if study is not None and study.is_dir() else open_study(study).path
        raise typer.Exit(0 if _print_verified(folder, form) else 1)
    from scalestudy.app.follow import follow
    from scalestudy.app.selection import selected, status_record
    from scalestudy.cli.terminal import Terminal
    from scalestudy.launch.queue.jobs import find_orphans
    from scalestudy.launch.status import study_status
    from scalestudy.store.study_folder import StudyFolder

    console, opened = out(), open_study(study)
    if live and form == "table" and console.is_terminal:
        from scalestudy.cli.points_table import overview_table
        from scalestudy.features.watch import show

        show(opened.path, console, overview_table, interval)
        return
    if live and form == "table":
        follow(opened.path, Terminal(console))
        opened = StudyFolder.open(opened.path)
    overview = study_status(opened)
    orphans = find_orphans(opened, overview) if not overview.error else []
    chosen = selected(overview, states=states or [], patterns=points or [])
    if form == "json":
        print(json.dumps(status_record(chosen, orphans), indent=1))
        return
    if chosen.points or not overview.points:
        console.print(shown(chosen, by or [], every=every or bool(states or points)))
    else:
        console.print(f"No point is {' or '.join(states or [])}.", markup=False)
    for orphan in orphans:
        words = f"{orphan.sentence()}; scalestudy cancel {opened.path} ends it."
        console.print(words, style="yellow", markup=False)


def shown(overview: "Overview", by: list[str], *, every: bool) -> "RenderableType":
    """The points, or groups of them, as a table."""
    from scalestudy.app.selection import all_but_seeds, grouped
    from scalestudy.cli.points_table import groups_table, overview_table

    if by:
        return groups_table(grouped(overview, by), overview)
    if every or len(overview.points) <= MANY:
        return overview_table(overview, 2 * len(overview.points))
    for axes in (all_but_seeds(overview), ["strategy", "workers"]):
        groups = grouped(overview, axes)
        if len(groups) <= MANY:
            return groups_table(groups, overview)
    return groups_table(grouped(overview, ["strategy"]), overview)


def _print_verified(folder: Path, form: str) -> bool:
    """Verify a results folder and print the result as "table" or "json"; return whether all is sound."""
    from rich.markup import escape

    from scalestudy.app.verify import verify

    with err().status("Reading") as status:
        files = verify(folder, lambda name: status.update(f"Reading {escape(name)}"))
    wrong = [file for file in files if not file.sound]
    if form == "json":
        rows = [{"path": file.path, "state": file.word, "reason": file.why} for file in files]
        print(json.dumps({"folder": str(folder), "sound": not wrong, "files": rows}, indent=1))
        return not wrong
    for file in files:
        if file.word != "sound":
            out().print(f"{file.path}: {file.word}" + (f": {file.why}" if file.why else ""), markup=False)
    last = "all sound" if not wrong else f"{len(wrong)} not sound"
    out().print(f"{len(files)} files: {last}.", style="green" if not wrong else "red")
    return not wrong
