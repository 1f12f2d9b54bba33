"""A check from its subject to its report: before the queue, by processes here, or by a job on the nodes."""

import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from scalestudy.features.check.ahead_of_queue import data_lines, machine_lines, site_lines
from scalestudy.features.check.job import await_report, check_layout, check_point, submit_check
from scalestudy.features.check.line import QUEUE_TOPIC, TOPICS, Line, Report
from scalestudy.features.check.listener import CheckListener
from scalestudy.features.check.local import check_here, read_report
from scalestudy.features.check.plan import PLAN_FILE, Plan
from scalestudy.features.check.subject import Subject, plan_of, subject, workers_of
from scalestudy.features.check.versions import python_of
from scalestudy.launch.base import launcher
from scalestudy.launch.queue.layout import layout
from scalestudy.study.launchers import names
from scalestudy.util.errors import RunError, UserError


@dataclass(frozen=True)
class CheckOptions:
    """How to check.

    Attributes:
        workers: Processes; the study's largest number where None.
        nodes: Nodes of the job; only with `submit`.
        submit: Whether to check the nodes too, by a short job on them, and to wait for it.
        skip: Topics to leave out.
        limit: Seconds without a sign of life after which a collective is ended.
        wait: Seconds to wait for the job.
        folder: For the check's files; kept only after a failure where None.
    """

    workers: int | None = None
    nodes: int | None = None
    submit: bool = False
    skip: tuple[str, ...] = ()
    limit: float = 60.0
    wait: float = 3600.0
    folder: Path | None = None


def check(
    what: str | None = None, options: CheckOptions | None = None, listener: CheckListener | None = None
) -> Report:
    """Check a study file, a site or this machine; or read the report of an earlier check.

    Args:
        what: Study file, site profile (name or path), folder of an earlier check; None for this machine.
        options: How to check.
        listener: Hears how far it is.

    Raises:
        UserError: If `what` or an option is wrong.
        RunError: If the processes or the job end without a report, or the job does not end in time.
    """
    options, listener = options or CheckOptions(), listener or CheckListener()
    _refuse_unknown(options)
    if what is not None and (Path(what) / PLAN_FILE).exists():
        return read_report(Path(what))
    about = subject(what)
    _refuse_contradictions(about, options)
    plan, data = _plan(about, options)
    report = Report(lines=(*about.lines, *_ahead_lines(about, plan, options.nodes, data)))
    if options.submit:
        if report.failed:
            listener.job_refused()
            return report
        return report.joined(_by_job(about, plan, options, listener))
    if about.queued:
        listener.nodes_not_seen()
        return report
    return report.joined(_here(plan, options.folder, listener))


def _plan(about: Subject, options: CheckOptions) -> tuple[Plan, list[Line]]:
    """What every rank is to look at, and what is known of the data."""
    data, cache_bytes, folders = data_lines(about.points, about.base, about.kind, ahead=about.queued)
    workers = workers_of(about, options.workers, options.nodes)
    skip = options.skip if not about.queued or about.launcher.checked else (*options.skip, QUEUE_TOPIC)
    plan = plan_of(
        about, workers=workers, cache_bytes=cache_bytes, folders=folders, skip=skip, limit=options.limit
    )
    return plan, data


def _ahead_lines(about: Subject, plan: Plan, nodes: int | None, data: list[Line]) -> list[Line]:
    """What can be said before any process is started."""
    lines = data if plan.wants("data") else []
    site = about.site
    if about.queued:
        container = site is not None and site.container is not None
        environment = site.environment if site is not None else None
        lines = lines + machine_lines(plan, None if container else python_of(environment))
    if site is not None:
        own = [layout(point, site) for point in about.points]
        point = check_point(about.points[0] if about.points else None, plan.workers)
        lines = lines + site_lines(plan, site, own or [check_layout(point, site, nodes)])
    return lines


def _here(plan: Plan, folder: Path | None, listener: CheckListener) -> Report:
    """With several processes on this machine. Files of a check without failures are not kept."""
    target = folder or Path(tempfile.mkdtemp(prefix="scalestudy-check-"))
    _refuse_full(target)
    listener.processes_started(plan.workers)
    try:
        report = check_here(target.absolute(), plan)
    finally:
        listener.waiting_ended()
    if report.failed or folder is not None:
        listener.logs_kept(target / "logs")
    else:
        shutil.rmtree(target, ignore_errors=True)
    return report


def _by_job(about: Subject, plan: Plan, options: CheckOptions, listener: CheckListener) -> Report:
    assert about.site is not None
    target = (options.folder or Path("scalestudy-check") / time.strftime("%Y%m%d-%H%M%S")).absolute()
    _refuse_full(target)
    point = check_point(about.points[0] if about.points else None, plan.workers)
    shape = check_layout(point, about.site, options.nodes)
    job = submit_check(target, plan, about.site, point, shape)
    later = f"`scalestudy check {target}` prints its report when it is over; `scancel {job}` ends it."
    listener.job_submitted(job, plan.workers, shape.nodes, target)
    try:
        try:
            report = await_report(target, job, limit=options.wait, tell=listener.job_seen)
        finally:
            listener.waiting_ended()
    except KeyboardInterrupt:
        listener.job_left(later)
        raise
    if report is None:
        raise RunError(
            f"job {job} to end within {options.wait:g} s", "a job that has not", f"It is left: {later}"
        )
    return report


def _refuse_unknown(options: CheckOptions) -> None:
    unknown = [topic for topic in options.skip if topic not in TOPICS]
    if unknown:
        raise UserError(f"--skip with one of {', '.join(TOPICS)}", unknown[0], "Correct it.")


def _refuse_contradictions(about: Subject, options: CheckOptions) -> None:
    known = ", ".join(f'"{name}"' for name in names() if launcher(name).checked)
    if options.submit and about.site is None and not about.lines:
        raise UserError(
            f"a site, or a study with launch.on = {known}, to submit a check to",
            "neither" if about.study is None else f'a study with launch.on = "{about.study.launch.on}"',
            "Name a site: `scalestudy check SITE --submit`.",
        )
    if options.submit and not about.launcher.checked:
        raise UserError(
            f"a queue that a check can be submitted to: {known}",
            about.launcher.title,
            "Without --submit, this machine and the study are checked.",
        )
    if options.nodes is not None and not options.submit:
        raise UserError("--submit beside --nodes", "--nodes alone", "On this machine, give --workers.")


def _refuse_full(target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UserError("an empty or a new folder", f"--out {target}", "Name another one.")
