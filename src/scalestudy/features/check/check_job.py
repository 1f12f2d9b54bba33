"""Ask Slurm whether it would accept the study's jobs, and run a check as a short job on the nodes."""

import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from scalestudy.config.point import Point, Terms
from scalestudy.config.settings import DataSettings, ResolvedLaunch, TrainSettings
from scalestudy.config.task_defaults import task_defaults
from scalestudy.features.check.check_files import (
    REPORT_FILE,
    CheckPlan,
    Exchange,
    read_report,
    write_plan,
)
from scalestudy.features.check.check_report import (
    Line,
    Report,
    report_failure,
    report_pass,
)
from scalestudy.launch.polling import LONGEST
from scalestudy.launch.queue.job_script import render_script
from scalestudy.launch.queue.launchers import SLURM
from scalestudy.launch.queue.point_job import JobLayout, JobScript, layout
from scalestudy.launch.queue.site_profile import Site
from scalestudy.launch.scheduler import (
    QUEUE_ERRORS,
    QueueAbsent,
    QueueRefused,
    QueueUnreachable,
)
from scalestudy.launch.waiting import Waiting
from scalestudy.plugins.engines import engine_traits
from scalestudy.util.errors import RunError
from scalestudy.util.files import write_atomically
from scalestudy.util.text import plural

SECONDS = 1800
"""Time limit of the job."""
ASK = 5.0
"""Seconds between two queries to Slurm while the job's state changes; they grow to `polling.LONGEST`."""
TASK = "cnn"
"""Task of the point of a check without a study; it is not trained."""
LAG = 30.0
"""Seconds that a report may take to appear here after its job has ended."""


def check_point(point: Point | None, plan: CheckPlan) -> Point:
    """Return a point with a process for each worker, based on the study's point if there is one."""
    across = engine_traits(plan.engine).across
    # The study's strategy may hold all workers in one process, which would have no ranks to check.
    update = {
        "name": "check",
        "engine": plan.engine,
        "strategy": across,
        "workers": plan.workers,
    }
    if point is not None:
        return point.model_copy(update=update).on(implementation=across)
    defaults = task_defaults(TASK)
    return Point(
        study="check",
        task=TASK,
        seed=0,
        data=defaults.complete_data(DataSettings()),
        train=defaults.complete_train(TrainSettings()),
        terms=Terms(implementation=across, launch=ResolvedLaunch(on="slurm")),
        **update,
    )


def check_layout(point: Point, site: Site, nodes: int | None) -> JobLayout:
    """Return the layout of the check's job, on `nodes` nodes if given, with a short time limit."""
    shape = layout(point, site)
    # Rounded up: the last node may have fewer processes.
    if nodes is not None:
        shape = replace(shape, nodes=nodes, tasks_per_node=-(-point.workers // nodes))
    # A short job fits into gaps of a queue.
    return replace(shape, seconds=min(shape.seconds or SECONDS, SECONDS))


def queue_lines(site: Site, point: Point, layouts: Iterable[JobLayout]) -> list[Line]:
    """Check whether Slurm would accept the study's jobs, with `sbatch --test-only`, which submits nothing."""
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="scalestudy-check-") as folder:
        # Points with the same layout are one question to Slurm.
        for shape in dict.fromkeys(layouts):
            script = _write_script(Path(folder), site, point, shape)
            nodes = f"{shape.nodes} {plural('node', shape.nodes)}"
            asked = f"{nodes}, {shape.tasks} {plural('task', shape.tasks)}"
            try:
                SLURM.queue.call(SLURM.queue.submits[0], "--test-only", str(script))
            except QueueAbsent as error:
                seen = f"no Slurm client ({error.received})"
                return [report_failure("slurm", "here", seen, error.action)]
            except QueueUnreachable as error:
                # For all layouts: another call would wait for its time limit as well.
                seen = f"no answer: {error.received}"
                action = "Try again later, or ask the site."
                return [report_failure("slurm", "Slurm", seen, action)]
            except QueueRefused as error:
                seen = f"{asked}: {error.words}"
                action = SLURM.queue.advice(error.words) or error.action
                lines.append(report_failure("slurm", "Slurm", seen, action))
            else:
                # An account without hours accepts jobs that never start.
                seen = f"{asked}: would be taken, if hours are left"
                lines.append(report_pass("slurm", "Slurm", seen))
    return lines


def submit_check(
    folder: Path,
    plan: CheckPlan,
    site: Site,
    point: Point,
    shape: JobLayout,
) -> str:
    """Write plan and script into `folder`, submit the job, and return its ID.

    Raises:
        QueueUnreachable, QueueRefused, QueueAbsent: If Slurm does not accept the job.
    """
    write_plan(folder, plan)
    return SLURM.queue.submit(_write_script(folder, site, point, shape))


def _write_script(
    folder: Path,
    site: Site,
    point: Point,
    shape: JobLayout,
) -> Path:
    script = folder.absolute() / "job.sh"
    job = JobScript("scalestudy-check", script, script.parent, point, shape, site)
    write_atomically(script, render_script(job, SLURM.queue))
    return script


def await_report(
    folder: Path,
    job: str,
    on_progress: Callable[[str], object],
) -> Report:
    """Wait for the job's report, and return it; `on_progress` is called with the state of the job.

    A job that does not start by itself is cancelled, and the report says why.

    Raises:
        RunError: If the job ended without a report.
    """
    waited_for: Waiting | None = None
    asked = float("-inf")
    pause = ASK
    ended = float("inf")
    last = ""
    while not (folder / REPORT_FILE).exists():
        now = time.monotonic()
        if now - asked >= pause:
            asked = now
            state, over, waiting = _state(job)
            # Seen twice, so it lasts.
            if waiting is not None and waiting.stuck and waiting == waited_for:
                with suppress(*QUEUE_ERRORS):
                    SLURM.queue.cancel([job])
                action = f"See `{waiting.next_command([job])}`. The job was cancelled; check again then."
                line = report_failure("slurm", "Slurm", waiting.described, action)
                return Report(lines=(line,))
            waited_for = waiting
            # A job that stays as it is, is asked for less and less often.
            if state == last:
                pause = min(pause * 1.5, LONGEST)
            else:
                pause = ASK
                last = state
            doing = ""
            if not state.startswith("pending"):
                doing = f", {Exchange(folder).progress()}"
            on_progress(f"job {job}: {state}{doing}")
            # A job that was requeued is no longer over.
            if over:
                ended = min(ended, now)
            else:
                ended = float("inf")
        if now - ended > LAG:
            break
        # Its folder is looked at more often than Slurm is asked.
        time.sleep(0.5)
    try:
        return read_report(folder)
    except RunError as error:
        state, _, _ = _state(job)
        raise RunError(
            error.expected,
            f"{error.received} (job {job}: {state})",
            error.action,
        ) from None


def _state(job: str) -> tuple[str, bool, Waiting | None]:
    """Return the job's state in words, whether it has ended, and why it waits."""
    try:
        view = SLURM.queue.ask([job])[job]
    # A controller that is busy says nothing of the job, which may still run.
    except QueueUnreachable as error:
        return f"Slurm does not answer ({error.received})", False, None
    if view.unseen:
        words = f"the node does not see the check's folder, {view.state.lower()}"
    else:
        words = view.state.lower()
    waiting = None
    if view.waiting:
        waiting = SLURM.queue.explain(view.reason)
    if waiting is not None:
        words += f", {waiting.described}"
        if view.start:
            words += f", expected {view.start.replace('T', ' ')}"
    if view.nodes:
        words += f" on {view.nodes}"
    return words, not view.live, waiting
