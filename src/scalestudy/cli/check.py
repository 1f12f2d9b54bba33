"""`scalestudy check`: whether a study can run here, before it waits in a queue."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from scalestudy.check.line import Line, Report
    from scalestudy.check.plan import Plan
    from scalestudy.cli.checking import Subject


def check(
    what: Annotated[
        str | None,
        typer.Argument(
            help="Study file, site profile (name or path), or folder of an earlier check; this machine "
            "alone when absent.",
            metavar="[STUDY_OR_SITE]",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; the study's largest number when absent.")
    ] = None,
    nodes: Annotated[int | None, typer.Option(min=1, help="Nodes of the job (with --submit).")] = None,
    submit: Annotated[
        bool, typer.Option("--submit", help="Check the nodes too, by a short job on them, and wait for it.")
    ] = False,
    skip: Annotated[
        list[str] | None, typer.Option(help="Leave a topic out; can be repeated.", metavar="TOPIC")
    ] = None,
    limit: Annotated[
        float, typer.Option(min=1, help="Seconds without a sign of life after which a collective is ended.")
    ] = 60.0,
    wait: Annotated[float, typer.Option(min=1, help="Seconds to wait for the job.")] = 3600.0,
    folder: Annotated[
        Path | None, typer.Option("--out", help="Folder for the check's files.", metavar="DIR")
    ] = None,
    form: Annotated[Literal["table", "json"], typer.Option("--format", help="What is printed.")] = "table",
) -> None:
    """Check software, machine, network and collectives; each line says pass, warn or fail, and what to do.

    Exit code 0 when no line says fail, 1 otherwise.
    """
    from scalestudy.check.plan import PLAN_FILE
    from scalestudy.cli.check_table import print_report
    from scalestudy.cli.checking import subject

    _refuse_unknown(skip or [])
    if what is not None and (Path(what) / PLAN_FILE).exists():
        from scalestudy.check.local import read_report

        report = read_report(Path(what))
    else:
        about = subject(what)
        _refuse_contradictions(about, submit=submit, nodes=nodes)
        report = _check(about, workers, nodes, skip or [], limit, wait, folder, submit=submit)
    print_report(report, form)
    raise typer.Exit(1 if report.failed else 0)


def _check(
    about: "Subject",
    workers: int | None,
    nodes: int | None,
    skip: list[str],
    limit: float,
    wait: float,
    folder: Path | None,
    *,
    submit: bool,
) -> "Report":
    from scalestudy.check.before import data_lines, machine_lines
    from scalestudy.check.line import Report
    from scalestudy.check.versions import python_of
    from scalestudy.cli.checking import plan_of, workers_of
    from scalestudy.cli.console import err

    lines = list(about.lines)
    data, cache_bytes, folders = data_lines(about.points, about.base, about.kind, ahead=about.queued)
    count = workers_of(about, workers, nodes)
    plan = plan_of(about, workers=count, cache_bytes=cache_bytes, folders=folders, skip=skip, limit=limit)
    if plan.wants("data"):
        lines += data
    if about.queued:
        container = about.site is not None and about.site.container is not None
        environment = about.site.environment if about.site is not None else None
        lines += machine_lines(plan, None if container else python_of(environment))
    if about.site is not None:
        lines += _site_lines(about, plan, nodes)
    report = Report(lines=tuple(lines))
    if submit:
        if report.failed:
            err().print("Not submitted: what failed here would fail there.", style="red")
            return report
        return report.joined(_by_job(about, plan, nodes, wait, folder))
    if about.queued:
        err().print("The nodes were not looked at: --submit does that.", markup=False)
        return report
    return report.joined(_here(plan, folder))


def _site_lines(about: "Subject", plan: "Plan", nodes: int | None) -> "list[Line]":
    from scalestudy.check.before import site_lines
    from scalestudy.check.job import check_layout, check_point
    from scalestudy.launch.queue.site.layout import layout

    assert about.site is not None
    own = [layout(point, about.site) for point in about.points]
    point = check_point(about.points[0] if about.points else None, plan.workers)
    return site_lines(plan, about.site, own or [check_layout(point, about.site, nodes)])


def _here(plan: "Plan", folder: Path | None) -> "Report":
    """With several processes on this machine. Files of a check without failures are not kept."""
    import shutil
    import tempfile

    from scalestudy.check.local import check_here
    from scalestudy.cli.console import err

    target = folder or Path(tempfile.mkdtemp(prefix="scalestudy-check-"))
    _refuse_full(target)
    with err().status(f"Checking with {plan.workers} processes on this machine"):
        report = check_here(target.absolute(), plan)
    if report.failed or folder is not None:
        err().print(f"Logs: {target / 'logs'}", markup=False)
    else:
        shutil.rmtree(target, ignore_errors=True)
    return report


def _by_job(about: "Subject", plan: "Plan", nodes: int | None, wait: float, folder: Path | None) -> "Report":
    import time

    from scalestudy.check.job import await_report, check_layout, check_point, submit_check
    from scalestudy.cli.console import err
    from scalestudy.errors import RunError

    assert about.site is not None
    target = (folder or Path("scalestudy-check") / time.strftime("%Y%m%d-%H%M%S")).absolute()
    _refuse_full(target)
    point = check_point(about.points[0] if about.points else None, plan.workers)
    shape = check_layout(point, about.site, nodes)
    job = submit_check(target, plan, about.site, point, shape)
    err().print(
        f"Job {job}: {plan.workers} processes on {shape.nodes} nodes, files in {target}", markup=False
    )
    later = f"`scalestudy check {target}` prints its report when it is over; `scancel {job}` ends it."
    try:
        with err().status(f"job {job}") as status:
            report = await_report(target, job, limit=wait, tell=status.update)
    except KeyboardInterrupt:
        err().print(f"\nThe job is left as it is. {later}", markup=False)
        raise
    if report is None:
        raise RunError(f"job {job} to end within {wait:g} s", "a job that has not", f"It is left: {later}")
    return report


def _refuse_unknown(skip: list[str]) -> None:
    from scalestudy.check.line import TOPICS
    from scalestudy.errors import UserError

    unknown = [topic for topic in skip if topic not in TOPICS]
    if unknown:
        raise UserError(f"--skip with one of {', '.join(TOPICS)}", unknown[0], "Correct it.")


def _refuse_contradictions(about: "Subject", *, submit: bool, nodes: int | None) -> None:
    from scalestudy.errors import UserError

    if submit and about.site is None and not about.lines:
        raise UserError(
            'a site, or a study with launch.on = "slurm", to submit a check to',
            "neither" if about.study is None else 'a study with launch.on = "local"',
            "Name a site: `scalestudy check SITE --submit`.",
        )
    if nodes is not None and not submit:
        raise UserError("--submit beside --nodes", "--nodes alone", "On this machine, give --workers.")


def _refuse_full(target: Path) -> None:
    from scalestudy.errors import UserError

    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UserError("an empty or a new folder", f"--out {target}", "Name another one.")
