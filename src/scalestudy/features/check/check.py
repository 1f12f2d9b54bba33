"""Run a check and return its report: on the login node, with processes here, or with a job on the nodes."""

import shutil
import socket
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from scalestudy.data.sources.paths import cache_folder
from scalestudy.features.check import host_checks
from scalestudy.features.check.check_files import PLAN_FILE, CheckPlan, read_report
from scalestudy.features.check.check_job import (
    await_report,
    check_layout,
    check_point,
    queue_lines,
    submit_check,
)
from scalestudy.features.check.check_ranks import check_here, check_on_hosts
from scalestudy.features.check.check_report import (
    TOPICS,
    Line,
    Report,
    Topic,
    report_failure,
    report_pass,
)
from scalestudy.features.check.check_subject import (
    CheckSubject,
    OnText,
    needs_of,
    of_one_engine,
    subject,
)
from scalestudy.launch.launcher import LAUNCHERS, Options, launcher
from scalestudy.launch.launchers import HOSTS
from scalestudy.launch.queue.point_job import layout
from scalestudy.launch.queue.site_profile import Site
from scalestudy.launch.reserve import refuse_open_ports
from scalestudy.plugins.engines import (
    engine_traits,
)
from scalestudy.util.errors import UserError


@dataclass(frozen=True)
class CheckOptions:
    """How to check.

    Attributes:
        workers: Number of processes. If None, the study's largest number.
        nodes: Number of nodes of the job; only with `submit`.
        submit: Whether to check the nodes too, with a short job, and wait for it.
        folder: Folder for the check's files. If None, files on this machine are kept only after a failure.
        engine: Engine whose strategies are checked. If None, the study's first, or the installed one.
    """

    workers: int | None = None
    nodes: int | None = None
    submit: bool = False
    skip: tuple[str, ...] = ()
    folder: Path | None = None
    engine: str | None = None


def check(
    what: str | None = None,
    options: CheckOptions | None = None,
    *,
    note: OnText = lambda text: None,
    on_progress: OnText = lambda text: None,
) -> Report:
    """Check a study file, a site or this machine, or read the report of an earlier check.

    `what` is a study file, a site profile (name or path), or the folder of an earlier check; None for this
    machine. `note` is called with messages for the user, `on_progress` with the current activity.

    Raises:
        UserError: If `what` or an option is wrong.
        RunError: If the processes or the job end without a report.
    """
    options = options or CheckOptions()
    unknown = [topic for topic in options.skip if topic not in TOPICS]
    if unknown:
        raise UserError(
            f"--skip with one of {', '.join(TOPICS)}",
            unknown[0],
            "Correct it.",
        )
    # After Ctrl-C, the job goes on, and its report is read from its folder later.
    if what is not None and (Path(what) / PLAN_FILE).exists():
        return read_report(Path(what))
    about = subject(what)
    _refuse_contradictions(about, options)
    # Only the hosts say how many GPUs and cores they have.
    if about.study is not None and about.on_hosts:
        on_progress("Asking the hosts")
        about = replace(about, points=HOSTS.points(about.study, Options(about.base)))
    about = of_one_engine(about, options.engine, note)
    plan = plan_of(about, options)
    if about.site is not None:
        return _by_queue(about, about.site, plan, options, note, on_progress)
    return _by_processes(about, plan, options, note, on_progress)


def plan_of(about: CheckSubject, options: CheckOptions) -> CheckPlan:
    """Return the plan that every rank follows."""
    points = about.points
    site = about.site
    written: dict[str, str] = {}
    needed: dict[str, None] = {}
    for point in points:
        written[str(cache_folder(point.data.cache, about.base))] = "cache"
        if point.traits.library:
            needed[point.traits.library] = None
    if about.results is not None:
        written[str(about.results)] = "results"
    if site is not None and site.scratch:
        written[site.scratch] = "scratch"
    skip = list(options.skip)
    gpus_per_node = 0
    if site is not None:
        gpus_per_node = site.gpus_per_node
        # Only Slurm says whether it would take a job, without taking it.
        if not about.asks_queue:
            skip.append("slurm")
    device: Literal["auto", "cpu", "gpu"] = "auto"
    needs = None
    if points:
        device = points[0].launch.device
        needs = needs_of(points)
    return CheckPlan(
        engine=about.engine,
        workers=options.workers or about.workers(options.nodes),
        device=device,
        gpus_per_node=gpus_per_node,
        cpus_per_worker=about.cpus_per_worker,
        needs=needs,
        libraries=tuple(needed),
        folders=written,
        skip=cast(tuple[Topic, ...], tuple(skip)),
    )


def _by_queue(
    about: CheckSubject,
    site: Site,
    plan: CheckPlan,
    options: CheckOptions,
    note: OnText,
    on_progress: OnText,
) -> Report:
    """Check what needs no node, and with `submit` the nodes too, by a job."""
    first = None
    if about.points:
        first = about.points[0]
    point = check_point(first, plan)
    shape = check_layout(point, site, options.nodes)
    # What fails here is known without a place in the queue.
    lines = _login_lines(site, plan)
    if plan.wants("slurm"):
        shapes = [layout(each, site) for each in about.points]
        lines += queue_lines(site, point, shapes or [shape])
    report = Report(lines=tuple(lines))
    if not options.submit:
        note("The nodes were not checked. Add --submit to check them.")
        return report
    if report.failed:
        note("Not submitted: the checks that failed here would fail there too.")
        return report
    target = options.folder or Path("scalestudy-check") / time.strftime("%Y%m%d-%H%M%S")
    target = target.absolute()
    _refuse_full(target)
    job = submit_check(target, plan, site, point, shape)
    note(
        f"Job {job}: {plan.workers} processes on {shape.nodes} nodes, files in {target}"
    )
    try:
        of_nodes = await_report(target, job, on_progress)
        return report.joined(of_nodes)
    # A job that may have waited for long goes on by itself.
    except KeyboardInterrupt:
        note(
            f"The job is left as it is. `scalestudy check {target}` prints its report when it is over; "
            f"`scancel {job}` ends it."
        )
        raise


def _login_lines(site: Site, plan: CheckPlan) -> list[Line]:
    """Check software and folders of a site, where they are seen from this node."""
    here = socket.gethostname()
    lines: list[Line] = []
    if plan.wants("versions") and site.container is not None:
        image = site.container.image
        # A variable may have a value on the nodes only, and a registry is asked there.
        is_file = "$" not in image and "://" not in image
        if is_file and not Path(image).expanduser().exists():
            seen = f"{site.name}: no container image {image}"
            action = "Build it (see environments/), or correct container in the site profile."
            lines.append(report_failure("versions", here, seen, action))
        else:
            seen = "in the container, not checked here"
            lines.append(report_pass("versions", here, seen))
    elif plan.wants("versions"):
        versions = host_checks.read_versions(site.environment)
        engine = engine_traits(plan.engine)
        lines += host_checks.judge_versions(
            versions,
            here,
            engine,
            libraries=plan.libraries,
        )
    if plan.wants("folders"):
        for folder, purpose in plan.folders.items():
            lines.append(host_checks.judge_folder(here, folder, purpose))
    return lines


def _by_processes(
    about: CheckSubject,
    plan: CheckPlan,
    options: CheckOptions,
    note: OnText,
    on_progress: OnText,
) -> Report:
    """Check with processes on this machine or on the study's hosts, which must see the folder of results.

    The files are kept only after a failure, or if a folder was named for them.
    """
    shared = None
    where = "this machine"
    prefix = ""
    if about.on_hosts:
        # All hosts see the folder of results; a name that begins with a dot keeps it out of listings.
        shared = host_checks.present(cast(Path, about.results))
        where = "the hosts"
        prefix = "."
    else:
        said = refuse_open_ports(about.points)
        if said:
            note(said.text)
    target = options.folder
    if target is None:
        made = tempfile.mkdtemp(prefix=f"{prefix}scalestudy-check-", dir=shared)
        target = Path(made)
    _refuse_full(target)
    on_progress(f"Checking with {plan.workers} processes on {where}")
    if about.on_hosts:
        point = check_point(about.points[0], plan)
        report = check_on_hosts(target.absolute(), plan, point, on_progress)
    else:
        report = check_here(target.absolute(), plan, on_progress, about.environment)
    if report.failed or options.folder is not None:
        note(f"Logs: {target / 'logs'}")
    else:
        shutil.rmtree(target, ignore_errors=True)
    return report


def _refuse_contradictions(about: CheckSubject, options: CheckOptions) -> None:
    queues = []
    for name in LAUNCHERS.names():
        if launcher(name).checked:
            queues.append(f'"{name}"')
    if options.submit and not about.asks_queue:
        seen = "neither"
        if about.study is not None:
            seen = f'a study with launch.on = "{about.study.launch.on}"'
        raise UserError(
            f"a site profile, or a study with launch.on = {', '.join(queues)}, for --submit",
            seen,
            "Name a site: `scalestudy check SITE --submit`, or leave out --submit.",
        )
    if options.nodes is not None and not options.submit:
        raise UserError(
            "--submit together with --nodes",
            "--nodes alone",
            "On this machine, use --workers.",
        )


def _refuse_full(target: Path) -> None:
    # Files of another check would be read as those of this one.
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UserError(
            "an empty or a new folder",
            f"--out {target}",
            "Name another one.",
        )
