"""The launcher that submits points to a queue, for all queues, and cancels the jobs of a study."""

import contextlib
import shlex
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path

from scalestudy.config.file import Study
from scalestudy.config.point import Point
from scalestudy.launch.environments import refuse_missing_software
from scalestudy.launch.launcher import Note, Options, Overview, PointStatus, Step, Submitted
from scalestudy.launch.queue.point_job import allocation, expand_for, layout
from scalestudy.launch.queue.scheduler import Queue, QueueRefused
from scalestudy.launch.queue.site_profile import Site, find_site
from scalestudy.launch.queue.submission import Submission, job_script, next_submissions, script_paths, submit
from scalestudy.launch.study_status import forget_answers, queue_of, study_status
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import ScalestudyError, UserError


class QueueLauncher:
    """Submits points to a queue, whose jobs continue when this process ends."""

    detached = True

    def __init__(self, queue: Queue, *, checked: bool = False) -> None:
        self.queue, self.checked = queue, checked
        self.title = queue.title

    def points(self, study: Study, options: Options) -> list[Point]:
        """Return the points of a study, expanded for the nodes of its site.

        Raises:
            UserError: If the site profile is missing or invalid, or a point is impossible on the site.
        """
        return expand_for(study, self._site(study, options))

    def refuse(self, points: Sequence[Point]) -> None:
        """Refuse points that name an unusable environment; other software of the nodes is not known here."""
        refuse_missing_software(points, images=True)

    def start(
        self, folder: StudyFolder, points: Sequence[Point], options: Options
    ) -> Generator[Step, None, None]:
        """Submit the points that are not done, queued or running, and were not submitted too often.

        A point that the queue refuses leaves no run folder, script or job; earlier submissions stay.

        Raises:
            QueueUnreachable, QueueRefused, QueueAbsent: If the queue does not answer, refuses, or is missing.
            RunError: If the folder cannot be written to.
        """
        overview = study_status(folder, must=True)
        submissions, notes = next_submissions(overview, [point.name for point in points], options)
        yield from notes
        wanted = [point for point in points if point.name in submissions]
        if not wanted:
            return
        site, cluster = self._site(folder.study, options), self.queue.cluster_name()
        forget_answers(folder.path)
        if not (options.feeds and overview.open):
            yield Note(allocation(site, [layout(point, site) for point in wanted]))
        for count, point in enumerate(wanted):
            try:
                job = submit(folder, point, submissions[point.name], self.queue, site, cluster)
            except ScalestudyError as error:
                words = error.words if isinstance(error, QueueRefused) else ""
                if self.queue.full in words and options.feeds and (count or overview.open):
                    yield Note(f"{self.title} takes no more jobs for now; other points wait: {words}.")
                    return  # the caller submits more once a job has ended
                if count:
                    yield Note(
                        f"{count} of {len(wanted)} points were submitted before {self.title} refused one."
                    )
                raise
            yield Submitted(point.name, job)

    def dry_run(
        self, target: Path, study: Study, points: Mapping[str, Point], overview: Overview, options: Options
    ) -> Iterator[str | Note]:
        """Yield job scripts, each followed by the command that would submit it.

        Only the first script is shown, and for each other one a line with its command and the options of its
        job that differ.
        """
        submissions, notes = next_submissions(overview, list(points), options)
        yield from notes
        site = self._site(study, options)
        if submissions:
            yield Note(allocation(site, [layout(points[name], site) for name in submissions]))
        first: list[str] | None = None
        prefix = f"#{self.queue.directive} "
        for name, submission in submissions.items():
            run = _expected_run(target.absolute() / "points" / name, submission)
            script = next(script_paths(target, name))
            text = job_script(points[name], script, run, site, self.queue, "0" * 16).rstrip("\n")
            command = shlex.join([*self.queue.submits, str(script)])
            lines = text.replace(name, "POINT").splitlines()
            asked = [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]
            if first is None:
                yield text
                yield f"\n{command}\n"
                first = asked
            else:
                yield f"{command}  # {_difference(first, asked)}"
        yield f"# {len(overview.points)} points, {len(submissions)} to submit, results in {target}"

    def _site(self, study: Study, options: Options) -> Site:
        try:
            return find_site(study.launch.site, options.base)
        except UserError as error:
            where = study.place.of("launch.site", "launch.on", "launch")
            raise UserError(error.expected, f"{error.received}{where}", error.action) from None


def _difference(first: Sequence[str], options: Sequence[str]) -> str:
    """Return how the options of a job differ from those of the first one."""
    new = [option for option in options if option not in first]
    keys = {option.partition("=")[0] for option in options}
    gone = [option for option in first if option.partition("=")[0] not in keys]
    return " ".join([*new, *(f"without {option}" for option in gone)]) or "the same options"


def _expected_run(folder: Path, submission: Submission) -> Path:
    if submission.resume is not None:
        return submission.resume.path.absolute()
    numbers = [int(path.name[4:]) for path in folder.glob("run-*") if path.name[4:].isdigit()]
    return folder / f"run-{max(numbers, default=0) + 1}"


def cancel_jobs(folder: StudyFolder, names: Sequence[str]) -> list[PointStatus]:
    """Cancel the queued and running jobs of these points; without names, of all points.

    Returns:
        The points whose jobs were cancelled, in their states before that.

    Raises:
        UserError: If the study runs on this machine, where runs end with their own process.
        QueueUnreachable, QueueRefused, QueueAbsent: If a queue does not answer, refuses, or is missing.
    """
    overview = study_status(folder, must=True)
    chosen = [
        status
        for status in overview.open
        if status.job and status.job.job and (not names or status.name in names)  # no id: being submitted
    ]
    jobs = [(status.job.queue, status.job.job) for status in chosen if status.job]
    if queue_of(folder.study.launch.on) is None and not any(status.job for status in overview.points):
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
            with contextlib.suppress(OSError):  # another user's folder
                status.run.cancelled.touch()
    if jobs:
        forget_answers(folder.path)
    return chosen
