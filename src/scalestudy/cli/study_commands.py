"""Commands that write, show and cancel a study: `init`, `status`, `logs` and `cancel`."""

import json
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scalestudy.cli.options import (
    AnswerOption,
    ForceOption,
    OpenOption,
    PointOption,
    PointsOption,
    StudyArgument,
    TaskOption,
    argument,
    open_study,
    option,
)
from scalestudy.cli.printing import err, open_page, out, write_new
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

    from scalestudy.launch.launcher import Overview
    from scalestudy.store.run_folder import RunFolder
    from scalestudy.store.study_folder import StudyFolder

MANY = 40
"""Largest number of points shown individually, unless the user asks for more."""
LINES = 20
"""Last lines of a log that are printed."""
BLOCK = 1 << 16
"""Bytes at the end of a log that are searched for its last lines."""


def init_command(
    file: Annotated[Path, argument("Study file to write.")] = Path("study.toml"),
    task: TaskOption = None,
    data: Annotated[
        str | None,
        option(
            "Images to train on, with classes or masks: a folder, relative to FILE.",
            default="the task's own, or handwritten digits",
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write a short study file for this machine.

    Without options it trains a small CNN on 1,797 handwritten digits (8 × 8 pixels, enlarged to 24 × 24) with
    1, 2, 4 and 8 workers, as far as there are GPUs, or cores, and three seeds.
    """
    from scalestudy.app.small_studies import first_study
    from scalestudy.config.parse import study_of
    from scalestudy.hardware import cores, devices

    study = first_study(
        task,
        data,
        gpus=devices.gpus(),
        cores=len(cores.granted()),
        folder=file.parent,
    )
    # Read as `run` will, before anything is written.
    study_of(tomllib.loads(study.text), file)
    write_new(file, study.text, force=force)
    for note in study.notes:
        out().print(note, markup=False)
    out().print(
        f"Wrote {file}: {study.summary}. Run it with: scalestudy run {file}",
        markup=False,
    )


def status_command(
    study: StudyArgument = None,
    states: Annotated[
        list[str] | None,
        option("Only points in this state. Repeatable.", "STATE", name="--state"),
    ] = None,
    points: PointsOption = None,
    every: Annotated[
        bool, option("One line for each point, however many.", name="--all")
    ] = False,
    live: Annotated[
        bool,
        option(
            "Refresh until the study ends; in a terminal also show cost and time left.",
            name="--live",
        ),
    ] = False,
    verify: Annotated[
        bool, option("Compare all files with their checksums instead.", name="--verify")
    ] = False,
    browser: OpenOption = False,
    form: AnswerOption = "table",
) -> None:
    """Show the state, progress and quality of every point.

    For a study in a queue it also shows the jobs, their nodes, and why they wait. More than forty points are
    shown in groups, one line for those that differ only in their seed, unless --all, --state or --point is
    given.

    States: missing (not started), queued, running, done, failed, cancelled (by a person), corrupt (a record
    cannot be read; see --verify).

    --live also writes report/live.html in the results folder, which a browser loads again by itself until the
    study ends; --open opens it.

    --verify compares finished runs with the checksums in their SHA256SUMS, checks the other records and the
    prepared data, and changes nothing. The exit code is 0 if all files are sound, and 1 if one is missing or
    corrupt (truncated, altered, unreadable). A run with a corrupt record is neither trained again nor counted
    in reports: restore its folder from a backup, or move it out of the study.
    """
    if verify:
        # A folder may be too damaged to be opened.
        if study is not None and study.is_dir():
            folder = study
        else:
            folder = open_study(study).path
        is_sound = _print_verified(folder, form)
        raise typer.Exit(0 if is_sound else 1)
    if browser and not live:
        raise UserError(
            "--live with --open",
            "--open alone",
            "Add --live, or see `scalestudy report --open`.",
        )
    from scalestudy.app.follow import follow
    from scalestudy.app.selection import selected, status_record
    from scalestudy.cli.terminal_listener import Terminal
    from scalestudy.launch.study_status import study_status
    from scalestudy.report.live_page import LivePage
    from scalestudy.store.study_folder import StudyFolder

    console, opened = out(), open_study(study)
    shown = open_page if browser else None
    # In a terminal, a view in place; else a line for each run that ends.
    if live and form == "table" and console.is_terminal:
        from scalestudy.cli.points_table import overview_table
        from scalestudy.features.live_status import show

        page = LivePage(opened.path, shown=shown)
        show(opened.path, console, overview_table, page)
        return
    if live and form == "table":
        page = LivePage(opened.path, shown=shown)
        follow(opened.path, Terminal(console, page))
        page.end()
        opened = StudyFolder.open(opened.path)
    overview = study_status(opened)
    chosen = selected(overview, states=states or [], patterns=points or [])
    if form == "json":
        print(json.dumps(status_record(chosen), indent=1))
        return
    if chosen.points or not overview.points:
        console.print(render_overview(chosen, every=every or bool(states or points)))
    else:
        console.print(f"No point is {' or '.join(states or [])}.", markup=False)


def render_overview(overview: "Overview", *, every: bool) -> "RenderableType":
    """The points, or groups of them, as a table."""
    from scalestudy.app.selection import all_but_seeds, group_points
    from scalestudy.cli.points_table import groups_table, overview_table

    if every or len(overview.points) <= MANY:
        return overview_table(overview, 2 * len(overview.points))
    # The finest groups that still fit a screen.
    for axes in (all_but_seeds(overview), ["strategy", "workers"]):
        groups = group_points(overview, axes)
        if len(groups) <= MANY:
            return groups_table(groups, overview)
    return groups_table(group_points(overview, ["strategy"]), overview)


def _print_verified(folder: Path, form: str) -> bool:
    """Verify a results folder and print the result as "table" or "json"; return whether all is sound."""
    from rich.markup import escape

    from scalestudy.app.verify import verify

    # On standard error: standard output may be the JSON that a program reads.
    with err().status("Reading") as status:
        files = verify(folder, lambda name: status.update(f"Reading {escape(name)}"))
    wrong = [file for file in files if not file.sound]
    if form == "json":
        rows = []
        for file in files:
            rows.append({"path": file.path, "state": file.word, "reason": file.why})
        record = {"folder": str(folder), "sound": not wrong, "files": rows}
        print(json.dumps(record, indent=1))
        return not wrong
    for file in files:
        if file.word == "sound":
            continue
        line = f"{file.path}: {file.word}"
        if file.why:
            line += f": {file.why}"
        out().print(line, markup=False)
    last, style = "all sound", "green"
    if wrong:
        last, style = f"{len(wrong)} not sound", "red"
    out().print(f"{len(files)} files: {last}.", style=style)
    return not wrong


def logs_command(
    context: typer.Context,
    study: StudyArgument = None,
    point: PointOption = None,
    rank: Annotated[int | None, option("Only this rank.", "N", min=0)] = None,
    job: Annotated[
        bool, option("Show the job's own log instead of the ranks'.", name="--job")
    ] = False,
    follow: Annotated[
        bool, option("Print new lines until the run has ended.", name="--follow")
    ] = False,
) -> None:
    """Print the last lines of a run's logs.

    Shows the newest run of a point; --point may be a pattern such as 'horovod-*'. Without --point it is the
    point that is running, else the one that ran last. Each line starts with its rank. Until a rank writes
    something, the job's own log is shown.
    """
    from scalestudy.app.selection import match_points
    from scalestudy.launch.logs import log_files
    from scalestudy.launch.study_status import study_status

    # A point after the study is an easy mistake.
    if context.args:
        raise UserError(
            "one study",
            " and ".join([str(study), *context.args]),
            f"Did you mean --point {context.args[0]}?",
        )
    opened = open_study(study)
    folder = opened.path
    names = match_points([known.name for known in opened.points()], [point or "*"])
    run = _chosen_run(opened, names)
    if run is None:
        what = f"a run of {point or folder}"
        raise UserError(
            what,
            "none yet",
            f"See its points with `scalestudy status {folder}`.",
        )
    if not follow and not log_files(run, rank, job=job):
        if job:
            what = "a job.log"
        elif rank is None:
            what = "logs of any rank"
        else:
            what = f"a log of rank {rank}"
        seen = "none yet"
        failure = run.failure()
        if failure:
            seen = f"none, since the run failed: {failure.reason}"
        raise UserError(
            f"{what} in {run.path / 'logs'}",
            seen,
            f"See its state with `scalestudy status {folder}`.",
        )
    out().print(f"{run.path / 'logs'}", markup=False)
    read: dict[Path, int] = {}
    _show(log_files(run, rank, job=job), read)
    while follow:
        open_runs = [status.run for status in study_status(opened).open]
        follow = run in open_runs
        # Once more after the end, for what was written since.
        _show(log_files(run, rank, job=job), read)
        if follow:
            time.sleep(0.5)


def _chosen_run(folder: "StudyFolder", names: list[str]) -> "RunFolder | None":
    """Among the points' newest runs, a running one, else the one that wrote last."""
    from scalestudy.launch.study_status import study_status

    newest: dict[str, RunFolder] = {}
    for name in names:
        runs = folder.runs(name)
        if runs:
            newest[name] = runs[-1]
    if len(newest) < 2:
        return next(iter(newest.values()), None)
    states = study_status(folder).states
    running = [run for name, run in newest.items() if states[name] == "running"]

    # Only decides which log is shown, under its path: all logs have the times of one file system.
    def last_written(run: "RunFolder") -> float:
        logs = (run.path / "logs").glob("*.log")
        return max([file.stat().st_mtime for file in logs], default=0.0)

    return max(running or newest.values(), key=last_written)


def _show(files: "Iterable[tuple[str, Path]]", read: dict[Path, int]) -> None:
    """Print the lines after the first `read` bytes of each log; for a new log, its last lines."""
    from scalestudy.util.printable import printable

    for prefix, file in files:
        # Reading a pipe would block.
        if not file.is_file():
            continue
        try:
            with open(file, "rb") as stream:
                if file in read:
                    start = read[file]
                else:
                    start = max(stream.seek(0, 2) - BLOCK, 0)
                stream.seek(start)
                text = stream.read()
        except OSError:
            continue
        # An incomplete line is printed next time.
        whole = text[: text.rfind(b"\n") + 1]
        added = whole.decode(errors="replace").splitlines()
        if file not in read:
            added = added[-LINES:]
        # Each at once, for whoever follows through a pipe.
        for line in added:
            print(prefix + printable(line), flush=True)
        read[file] = start + len(whole)


def cancel_command(study: StudyArgument = None, points: PointsOption = None) -> None:
    """Cancel the queued and running jobs of a study. Cancelled points can be submitted again."""
    from scalestudy.app.selection import match_points
    from scalestudy.launch.queue.queue_launcher import cancel_jobs

    opened = open_study(study)
    names = match_points([point.name for point in opened.points()], points or [])
    cancelled = cancel_jobs(opened, names)
    if not cancelled:
        out().print("Nothing to cancel: no job is queued or running.")
    for status in cancelled:
        if status.job:
            out().print(
                f"Cancelled {status.name} ({status.state}, job {status.job.job})",
                markup=False,
            )
