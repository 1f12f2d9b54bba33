"""`scalestudy logs`: print the logs of a run."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scalestudy.cli.console import out
from scalestudy.cli.options import PointOption, StudyArgument, open_study
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scalestudy.store.run_folder import RunFolder
    from scalestudy.store.study_folder import StudyFolder

BLOCK = 1 << 16
"""Bytes at the end of a log that are searched for its last lines."""


def logs(
    context: typer.Context,
    study: StudyArgument = None,
    point: PointOption = None,
    rank: Annotated[int | None, typer.Option(min=0, help="Only this rank.", metavar="N")] = None,
    job: Annotated[bool, typer.Option("--job", help="Show the job's own log instead of the ranks'.")] = False,
    lines: Annotated[int, typer.Option("--lines", min=1, help="Lines of each log.", metavar="N")] = 20,
    follow: Annotated[
        bool, typer.Option("--follow", help="Print new lines until the run has ended.")
    ] = False,
) -> None:
    """Print the last lines of a run's logs.

    Shows the newest run of a point; --point may be a pattern such as 'horovod-*'. Without --point it is the
    point that is running, else the one that ran last. Each line starts with its rank. Until a rank writes
    something, the job's own log is shown.
    """
    from scalestudy.app.selection import named_points
    from scalestudy.launch.failures import log_files
    from scalestudy.launch.status import study_status

    if context.args:
        raise UserError(
            "one study", " and ".join([str(study), *context.args]), f"Did you mean --point {context.args[0]}?"
        )
    opened = open_study(study)
    folder = opened.path
    names = named_points([known.name for known in opened.points()], [point or "*"])
    run = _chosen_run(opened, names)
    if run is None:
        what = f"a run of {point or folder}"
        raise UserError(what, "none yet", f"See its points with `scalestudy status {folder}`.")
    if not follow and not log_files(run, rank, job=job):
        what = "a job.log" if job else "logs of any rank" if rank is None else f"a log of rank {rank}"
        failure = run.failure()
        seen = f"none, since the run failed: {failure.reason}" if failure else "none yet"
        raise UserError(
            f"{what} in {run.path / 'logs'}", seen, f"See its state with `scalestudy status {folder}`."
        )
    out().print(f"{run.path / 'logs'}", markup=False)
    read: dict[Path, int] = {}
    _show(log_files(run, rank, job=job), read, lines)
    while follow:
        follow = any(status.run == run for status in study_status(opened).open)
        _show(log_files(run, rank, job=job), read, lines)
        time.sleep(0.5 * follow)


def _chosen_run(folder: "StudyFolder", names: list[str]) -> "RunFolder | None":
    """Among the points' newest runs, a running one, else the one that wrote last."""
    from scalestudy.launch.status import study_status

    newest = {name: runs[-1] for name in names if (runs := folder.runs(name))}
    if len(newest) < 2:
        return next(iter(newest.values()), None)
    states = study_status(folder).states
    running = [run for name, run in newest.items() if states[name] == "running"]

    def last_written(run: "RunFolder") -> float:
        return max((file.stat().st_mtime for file in (run.path / "logs").glob("*.log")), default=0.0)

    return max(running or newest.values(), key=last_written)


def _show(files: "Iterable[tuple[str, Path]]", read: dict[Path, int], lines: int) -> None:
    """Print the lines after the first `read` bytes of each log; for a new log, its last lines."""
    from scalestudy.util.escaping import printable

    for prefix, file in files:
        if not file.is_file():  # reading a pipe would block
            continue
        try:
            with open(file, "rb") as stream:
                start = read[file] if file in read else max(stream.seek(0, 2) - BLOCK, 0)
                stream.seek(start)
                text = stream.read()
        except OSError:
            continue
        whole = text[: text.rfind(b"\n") + 1]  # an incomplete line is printed next time
        added = whole.decode(errors="replace").splitlines()
        for line in added if file in read else added[-lines:]:
            print(prefix + printable(line), flush=True)
        read[file] = start + len(whole)
