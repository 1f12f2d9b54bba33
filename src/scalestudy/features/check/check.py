"""A check from its subject to its report: before the queue, by processes here, or by a job on the nodes."""

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from scalestudy.features.check.ahead import data_lines, machine_lines, site_lines
from scalestudy.features.check.job import await_report, check_layout, check_point, submit_check
from scalestudy.features.check.plan import PLAN_FILE, Plan, check_here, read_report
from scalestudy.features.check.report import QUEUE_TOPIC, TOPICS, Line, Report, Topic
from scalestudy.features.check.subject import CheckSubject, plan_of, subject
from scalestudy.features.check.versions import python_of
from scalestudy.launch.base import launcher
from scalestudy.launch.queue.layout import layout
from scalestudy.study.launchers import names
from scalestudy.util.errors import UserError

OnText = Callable[[str], object]


@dataclass(frozen=True)
class CheckOptions:
    """How to check.

    Attributes:
        workers: Processes; the study's largest number where None.
        nodes: Nodes of the job; only with `submit`.
        submit: Whether to check the nodes too, by a short job on them, and to wait for it.
        skip: Topics to leave out.
        folder: For the check's files; kept only after a failure where None.
    """

    workers: int | None = None
    nodes: int | None = None
    submit: bool = False
    skip: tuple[str, ...] = ()
    folder: Path | None = None


def check(
    what: str | None = None,
    options: CheckOptions | None = None,
    *,
    note: OnText = lambda text: None,
    on_progress: OnText = lambda text: None,
) -> Report:
    """Check a study file, a site or this machine; or read the report of an earlier check.

    Args:
        what: Study file, site profile (name or path), folder of an earlier check; None for this machine.
        options: How to check.
        note: Is given what the user should know.
        on_progress: Is given what is waited for now.

    Raises:
        UserError: If `what` or an option is wrong.
        RunError: If the processes or the job end without a report.
    """
    options = options or CheckOptions()
    unknown = [topic for topic in options.skip if topic not in TOPICS]
    if unknown:
        raise UserError(f"--skip with one of {', '.join(TOPICS)}", unknown[0], "Correct it.")
    if what is not None and (Path(what) / PLAN_FILE).exists():
        return read_report(Path(what))
    about = subject(what)
    _refuse_contradictions(about, options)
    plan, lines = _ahead(about, options)
    report = Report(lines=tuple(lines))
    if options.submit:
        if report.failed:
            note("Not submitted: what failed here would fail there.")
            return report
        return report.joined(_by_job(about, plan, options, note, on_progress))
    if about.queued:
        note("The nodes were not looked at: --submit does that.")
        return report
    on_progress(f"Checking with {plan.workers} processes on this machine")
    return report.joined(_here(plan, options.folder, note))


def _ahead(about: CheckSubject, options: CheckOptions) -> tuple[Plan, list[Line]]:
    """What every rank is to look at, and what can be said before any process is started."""
    data, cache_bytes, folders = data_lines(about.points, about.base, about.kind, ahead=about.queued)
    skip = options.skip if not about.queued or about.launcher.checked else (*options.skip, QUEUE_TOPIC)
    plan = plan_of(
        about,
        workers=options.workers or about.workers(options.nodes),
        cache_bytes=cache_bytes,
        folders=folders,
        skip=cast(tuple[Topic, ...], skip),
    )
    lines = data if plan.wants("data") else []
    site = about.site
    if about.queued:
        container = site is not None and site.container is not None
        environment = site.environment if site is not None else None
        lines = lines + machine_lines(plan, None if container else python_of(environment))
    if site is not None:
        layouts = [layout(point, site) for point in about.points]
        point = check_point(about.points[0] if about.points else None, plan.workers)
        lines = lines + site_lines(plan, site, layouts or [check_layout(point, site, options.nodes)])
    return plan, lines


def _here(plan: Plan, folder: Path | None, note: OnText) -> Report:
    """With several processes on this machine. Files of a check without failures are not kept."""
    target = folder or Path(tempfile.mkdtemp(prefix="scalestudy-check-"))
    _refuse_full(target)
    report = check_here(target.absolute(), plan)
    if report.failed or folder is not None:
        note(f"Logs: {target / 'logs'}")
    else:
        shutil.rmtree(target, ignore_errors=True)
    return report


def _by_job(
    about: CheckSubject, plan: Plan, options: CheckOptions, note: OnText, on_progress: OnText
) -> Report:
    assert about.site is not None
    target = (options.folder or Path("scalestudy-check") / time.strftime("%Y%m%d-%H%M%S")).absolute()
    _refuse_full(target)
    point = check_point(about.points[0] if about.points else None, plan.workers)
    shape = check_layout(point, about.site, options.nodes)
    job = submit_check(target, plan, about.site, point, shape)
    note(f"Job {job}: {plan.workers} processes on {shape.nodes} nodes, files in {target}")
    try:
        return await_report(target, job, on_progress)
    except KeyboardInterrupt:
        note(
            f"The job is left as it is. `scalestudy check {target}` prints its report when it is over; "
            f"`scancel {job}` ends it."
        )
        raise


def _refuse_contradictions(about: CheckSubject, options: CheckOptions) -> None:
    queues = ", ".join(f'"{name}"' for name in names() if launcher(name).checked)
    if options.submit and about.site is None:
        raise UserError(
            f"a site, or a study with launch.on = {queues}, to submit a check to",
            "neither" if about.study is None else f'a study with launch.on = "{about.study.launch.on}"',
            "Name a site: `scalestudy check SITE --submit`.",
        )
    if options.submit and not about.launcher.checked:
        raise UserError(
            f"a queue that a check can be submitted to: {queues}",
            about.launcher.title,
            "Without --submit, this machine and the study are checked.",
        )
    if options.nodes is not None and not options.submit:
        raise UserError("--submit beside --nodes", "--nodes alone", "On this machine, give --workers.")


def _refuse_full(target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UserError("an empty or a new folder", f"--out {target}", "Name another one.")
