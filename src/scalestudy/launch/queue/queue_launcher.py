"""The launcher that submits points to a queue: plans submissions, writes job scripts, and cancels jobs."""

import itertools
import os
import secrets
import shlex
import shutil
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from scalestudy.config.file import Study
from scalestudy.config.point import Point
from scalestudy.launch.environments import refuse_missing_software
from scalestudy.launch.job_failures import INTERRUPTED
from scalestudy.launch.job_view import UNKNOWN
from scalestudy.launch.launcher import (
    Note,
    Options,
    Overview,
    PointStatus,
    Step,
    Submitted,
)
from scalestudy.launch.point_run import queue_of
from scalestudy.launch.polling import forget_answers
from scalestudy.launch.queue.batch_queue import Queue
from scalestudy.launch.queue.job_script import render_script
from scalestudy.launch.queue.point_job import JobScript, allocation, expand_for, layout
from scalestudy.launch.queue.site_profile import Site, find_site
from scalestudy.launch.scheduler import QueueRefused, QueueUnreachable
from scalestudy.launch.study_status import study_status
from scalestudy.store.records import Failure, JobRecord
from scalestudy.store.run_folder import RunFolder, write_point
from scalestudy.store.state import UNSUCCESSFUL
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import RunError, ScalestudyError, UserError
from scalestudy.util.files import make_inside, touch
from scalestudy.util.text import count_noun


@dataclass(frozen=True)
class Submission:
    """A planned submission of a point.

    Attributes:
        attempt: Number of the submission, from 1.
        resume: Run to continue in its own folder; None for a new run.
    """

    attempt: int = 1
    resume: RunFolder | None = None


def next_submission(status: PointStatus, *, limit: int) -> Submission | None:
    """Plan the submission of a point; None if it is done, queued or running, or was submitted too often.

    An interrupted run (time limit, node failure, preemption, cancelled) with a checkpoint continues in its
    own folder. Any other starts again in a new folder. A point is submitted again at most `limit` times; jobs
    that were cancelled before they started do not count.
    """
    if not status.runnable:
        return None
    if status.job is None or status.run is None:
        return Submission()
    never_started = status.state == "cancelled" and not status.run.has_begun
    attempt = status.job.attempt if never_started else status.job.attempt + 1
    if attempt > limit + 1:
        return None
    if _resumable(status.run, status.failure):
        return Submission(attempt, status.run)
    return Submission(attempt)


def next_submissions(
    overview: Overview,
    names: Sequence[str],
    options: Options,
) -> tuple[dict[str, Submission], list[Note]]:
    """Plan the submissions of these points, in their order, with notes about points that are left out."""
    submissions: dict[str, Submission] = {}
    notes = []
    for status in map(overview.of, names):
        submission = next_submission(status, limit=options.resubmissions)
        if submission is not None:
            submissions[status.name] = submission
        elif status.state in UNSUCCESSFUL and status.job:
            times = f"{status.job.attempt} times"
            if status.job.attempt == 1:
                times = "once"
            text = f"{status.name} has been submitted {times} and is not submitted again; use --resubmit N."
            notes.append(Note(text))
    if options.at_most is None:
        return submissions, notes
    room = max(0, options.at_most - len(overview.open))
    left = len(submissions) - room
    if left > 0 and not options.feeds:
        limit = f"--at-most {options.at_most} allows no more in the queue"
        points = count_noun(left, "point")
        notes.append(Note(f"{points} left for later: {limit}; submit again."))
    return dict(itertools.islice(submissions.items(), room)), notes


def can_continue(status: PointStatus) -> bool:
    """Whether a run was interrupted by the cluster, not by a person, and can continue from its checkpoint."""
    if status.state != "failed" or status.job is None or status.run is None:
        return False
    return _resumable(status.run, status.failure)


def _resumable(run: RunFolder, failure: Failure | None) -> bool:
    # The failure of the status: a dry run records none that only the queue knows.
    if failure is None or not run.checkpoint.exists():
        return False
    # For a job that its queue has forgotten, the reason is unknown unless a rank recorded it.
    lost = (
        failure.job_state == UNKNOWN
        and failure.exit_code is None
        and failure.rank is None
    )
    return lost or failure.job_state in INTERRUPTED


def job_script(
    point: Point,
    script: Path,
    run: Path,
    site: Site,
    queue: Queue,
    submission: str,
) -> str:
    """Return the job script of a point; `script` and `run` (its folder) are absolute paths."""
    name = f"{point.study}-{point.name}"
    place = site.in_environment(point.environment)
    return render_script(
        JobScript(name, script, run, point, layout(point, site), place, submission),
        queue,
    )


def submit_point(
    folder: StudyFolder,
    point: Point,
    submission: Submission,
    queue: Queue,
    site: Site,
    cluster: str = "",
    after: str | None = None,
) -> str:
    """Submit a point with its prepared data to a queue, and return the id of its job.

    If the queue refuses it, no run folder, script or job is left. If the queue may have accepted it, and on
    Ctrl-C, the run stays without a job id, which a later query of the queue finds.

    Args:
        folder: The study, locked by the caller.
        point: The point.
        submission: Whether to continue a run, and the number of the submission.
        queue: The queue.
        site: The site profile.
        cluster: The queue's name of the cluster.
        after: Job that must succeed before this one starts.

    Raises:
        QueueUnreachable, QueueRefused, QueueAbsent: If the queue does not answer, refuses, or is missing.
        RunError: If the folder cannot be written to.
    """
    # Random: the job carries it, and is found by it if the queue's answer is lost.
    mark = secrets.token_hex(8)
    # What has been done is undone in reverse after an error, unless the queue may have taken the job.
    with ExitStack() as undo:
        try:
            run = _run(folder, point, submission, undo)
            script = _unused_script(folder, point)
            write_script(
                script,
                job_script(point, script, run.path.absolute(), site, queue, mark),
            )
            undo.callback(script.unlink, missing_ok=True)
            record = JobRecord(
                queue=queue.name,
                job="",
                submission=mark,
                submitted=time.time(),
                site=site.name,
                script=str(script),
                attempt=submission.attempt,
                cluster=cluster,
            )
            # Written before submission: the job may begin before the queue answers, and reads this file.
            run.write_job(record)
            try:
                job = queue.submit(script, after)
            except QueueUnreachable:
                # A busy queue may have accepted it all the same.
                known = _job_of(queue, mark)
                if known is None:
                    # Nobody knows: the run stays, and a later query finds its job, or that there is none.
                    (run.path / "failure.json").unlink(missing_ok=True)
                    undo.pop_all()
                if not known:
                    raise
                job = known
            undo.callback(_try_to_cancel, queue, job)
            run.write_job(record.model_copy(update={"job": job}))
            (run.path / "failure.json").unlink(missing_ok=True)
        except OSError as error:
            raise RunError(
                "a writable results folder",
                f"{error.filename or folder.path}: {error.strerror}",
                "Free some space (see your quota), and submit again.",
            ) from error
        except KeyboardInterrupt:
            # The queue may have accepted the job: a later query finds it by its mark.
            undo.pop_all()
            raise
        undo.pop_all()
    return job


def _unused_script(folder: StudyFolder, point: Point) -> Path:
    """Return the first path of a point's job scripts that does not exist."""
    paths = script_paths(folder.path, point.name)
    return next(path for path in paths if not path.exists())


def _job_of(queue: Queue, mark: str) -> str | None:
    """Return the id of the job with this mark; "" if there is none, None if the queue does not answer."""
    try:
        return queue.marked().get(mark, "")
    except ScalestudyError:
        return None


def _run(
    folder: StudyFolder,
    point: Point,
    submission: Submission,
    undo: ExitStack,
) -> RunFolder:
    """Return the folder of a new run, or that of a run to continue, cleared of its last job's files."""
    run = submission.resume
    if run is None:
        run = folder.new_run(point)
        undo.callback(_remove, run)
        return run
    before = run.job()
    if before is not None:
        undo.callback(run.write_job, before)
    run.write_launcher_process()
    # With the limits and the environment of now, which may differ from those of the last submission.
    write_point(run.path / "point.json", point)
    # What the last job left would be taken for the next one's.
    for left in ("exit", "began", "requeues", "cancelled"):
        (run.path / left).unlink(missing_ok=True)
    run.forget_stop()
    run.forget_signs()
    return run


def _remove(run: RunFolder) -> None:
    shutil.rmtree(run.path, ignore_errors=True)
    with suppress(OSError):
        run.path.parent.rmdir()


def _try_to_cancel(queue: Queue, job: str) -> None:
    with suppress(ScalestudyError):
        queue.cancel([job])


def script_paths(folder: Path, name: str) -> Iterator[Path]:
    """Yield the paths of a point's job scripts: the first one, then those of later submissions."""
    jobs = folder.absolute() / "jobs"
    yield jobs / f"{name}.sh"
    yield from (jobs / f"{name}-{number}.sh" for number in itertools.count(2))


def write_script(path: Path, text: str) -> None:
    """Write a script that only its owner can read: `env` of the site may hold secrets."""
    make_inside(path.parent)
    with open(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700),
        "w",
        encoding="utf-8",
    ) as file:
        file.write(text)


class QueueLauncher:
    """Submits points to a queue, whose jobs continue when this process ends."""

    detached = True

    def __init__(self, queue: Queue, *, checked: bool = False) -> None:
        self.queue, self.checked = queue, checked
        self.title = queue.title

    def points(self, study: Study, options: Options) -> list[Point]:
        """Return the points of a study, expanded for the nodes of its site.

        Raises:
            UserError: If the site profile is missing or invalid, a point is impossible on the site, or
                `Options.after` names no job that can succeed.
        """
        self._refuse_dependency(options.after)
        return expand_for(study, self._site(study, options))

    def refuse(self, points: Sequence[Point]) -> None:
        """Refuse points that name an unusable environment; other software of the nodes is not known here."""
        refuse_missing_software(points, images=True)

    def start(
        self,
        folder: StudyFolder,
        points: Sequence[Point],
        options: Options,
    ) -> Generator[Step, None, None]:
        """Submit the points that are not done, queued or running, and were not submitted too often.

        A point that the queue refuses leaves no run folder, script or job; earlier submissions stay.

        Raises:
            QueueUnreachable, QueueRefused, QueueAbsent: If the queue does not answer, refuses, or is missing.
            RunError: If the folder cannot be written to.
        """
        overview = study_status(folder, must=True)
        submissions, notes = next_submissions(
            overview,
            [point.name for point in points],
            options,
        )
        yield from notes
        wanted = [point for point in points if point.name in submissions]
        if not wanted:
            return
        site, cluster = self._site(folder.study, options), self.queue.cluster_name()
        # The next to read the states asks about the new jobs at once.
        forget_answers(folder.path)
        if not (options.feeds and overview.open):
            yield Note(self._allocation(site, wanted, submissions, options))
        for count, point in enumerate(wanted):
            try:
                job = submit_point(
                    folder,
                    point,
                    submissions[point.name],
                    self.queue,
                    site,
                    cluster,
                    options.after,
                )
            except ScalestudyError as error:
                words = ""
                if isinstance(error, QueueRefused):
                    words = error.words
                # With jobs of this study in the queue, one of them will end and make room.
                if (
                    self.queue.full in words
                    and options.feeds
                    and (count or overview.open)
                ):
                    yield Note(
                        f"{self.title} takes no more jobs for now; other points wait: {words}."
                    )
                    return  # the caller submits more once a job has ended
                if count:
                    yield Note(
                        f"{count} of {len(wanted)} points were submitted before {self.title} refused one."
                    )
                raise
            yield Submitted(point.name, job)

    def dry_run(
        self,
        target: Path,
        study: Study,
        points: Mapping[str, Point],
        overview: Overview,
        options: Options,
    ) -> Iterator[str | Note]:
        """Yield job scripts, each followed by the command that would submit it.

        Only the first script is shown, and for each other one a line with its command and the options of its
        job that differ.
        """
        submissions, notes = next_submissions(overview, list(points), options)
        yield from notes
        site = self._site(study, options)
        if submissions:
            yield Note(
                self._allocation(
                    site,
                    [points[name] for name in submissions],
                    submissions,
                    options,
                )
            )
        scripts = self.scripts(
            target,
            study,
            {name: points[name] for name in submissions},
            overview,
            options,
        )
        first: list[str] | None = None
        prefix = f"#{self.queue.directive} "
        for name in submissions:
            script = next(script_paths(target, name))
            text = scripts[name].rstrip("\n")
            command = shlex.join(self.queue.submission(script, options.after))
            # The names of the points differ between all scripts, and say nothing.
            asked = []
            for line in text.replace(name, "POINT").splitlines():
                if line.startswith(prefix):
                    asked.append(line.removeprefix(prefix))
            if first is None:
                yield text
                yield f"\n{command}\n"
                first = asked
            else:
                yield f"{command}  # {_difference(first, asked)}"
        yield f"# {len(overview.points)} points, {len(submissions)} to submit, results in {target}"

    def scripts(
        self,
        target: Path,
        study: Study,
        points: Mapping[str, Point],
        overview: Overview,
        options: Options,
    ) -> dict[str, str]:
        """Return the job script of each point, as its next submission would be; see `dry_run`."""
        submissions, _ = next_submissions(
            overview,
            list(points),
            replace(options, at_most=None),
        )
        site, found = self._site(study, options), {}
        for name, point in points.items():
            run = _expected_run(
                target.absolute() / "points" / name,
                submissions.get(name, Submission()),
            )
            found[name] = job_script(
                point,
                next(script_paths(target, name)),
                run,
                site,
                self.queue,
                "0" * 16,
            )
        return found

    def _refuse_dependency(self, job: str | None) -> None:
        """Refuse to start after a job that cannot succeed any more, or that the queue does not know."""
        if job is None:
            return
        if not self.queue.job_form.fullmatch(job):
            raise UserError(
                f"the id of one job of {self.title} after --after",
                repr(job),
                "Name it as the queue does.",
            )
        view = self.queue.ask([job])[job]
        if view.live or view.state == "COMPLETED":
            return
        # Jobs after it would never start.
        seen = f"which has ended as {view.state}"
        if view.state == UNKNOWN:
            seen = "which it does not know"
        raise UserError(
            f"--after with a job of {self.title} that waits, runs or has succeeded",
            f"{job}, {seen}",
            "Correct the id, or leave --after out.",
        )

    def _allocation(
        self,
        site: Site,
        points: Sequence[Point],
        submissions: Mapping[str, Submission],
        options: Options,
    ) -> str:
        left = []
        for point in points:
            # This submission, and those that may follow it.
            left.append(options.resubmissions + 2 - submissions[point.name].attempt)
        requeues = 0
        if self.queue.requeues:
            requeues = site.most_requeues
        layouts = [layout(point, site) for point in points]
        return allocation(site, layouts, requeues, left)

    def _site(self, study: Study, options: Options) -> Site:
        try:
            return find_site(study.launch.site, options.base)
        except UserError as error:
            where = study.place.of("launch.site", "launch.on", "launch")
            raise UserError(
                error.expected,
                f"{error.received}{where}",
                error.action,
            ) from None


def _difference(first: Sequence[str], options: Sequence[str]) -> str:
    """Return how the options of a job differ from those of the first one."""
    differences = [option for option in options if option not in first]
    keys = {option.partition("=")[0] for option in options}
    for option in first:
        if option.partition("=")[0] not in keys:
            differences.append(f"without {option}")
    if not differences:
        return "the same options"
    return " ".join(differences)


def _expected_run(folder: Path, submission: Submission) -> Path:
    if submission.resume is not None:
        return submission.resume.path.absolute()
    newest = 0
    for path in folder.glob("run-*"):
        number = path.name.removeprefix("run-")
        if number.isdigit():
            newest = max(newest, int(number))
    return folder / f"run-{newest + 1}"


def cancel_jobs(folder: StudyFolder, names: Sequence[str]) -> list[PointStatus]:
    """Cancel the queued and running jobs of these points; without names, of all points.

    Returns:
        The points whose jobs were cancelled, in their states before that.

    Raises:
        UserError: If the study runs on this machine, where runs end with their own process.
        QueueUnreachable, QueueRefused, QueueAbsent: If a queue does not answer, refuses, or is missing.
    """
    overview = study_status(folder, must=True)
    chosen = []
    jobs = []
    for status in overview.open:
        # A job without an id is being submitted.
        if status.job is None or not status.job.job:
            continue
        if not names or status.name in names:
            chosen.append(status)
            jobs.append((status.job.queue, status.job.job))
    if queue_of(folder.study.launch.on) is None and not any(
        status.job for status in overview.points
    ):
        raise UserError(
            "a study that was submitted to a queue",
            f"{folder.path}, which runs on its own machine",
            "Press Ctrl-C where it runs.",
        )
    for name in dict.fromkeys(name for name, _ in jobs):
        queue = queue_of(name)
        if queue is None:
            raise UserError(
                f"the launcher {name!r}, which submitted the jobs",
                "none",
                "Install the package that provides it.",
            )
        queue.cancel([job for launcher, job in jobs if launcher == name])
    for status in chosen:
        if status.run:
            # For queues that forget jobs at once: an unknown job with this mark was cancelled. The folder
            # may be another user's.
            with suppress(OSError):
                touch(status.run.cancelled)
    if jobs:
        forget_answers(folder.path)
    return chosen
