"""The launcher that submits points to a queue, for all queues."""

import shlex
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path

from scalestudy.launch.base import Note, Options, Overview, Step, Submitted
from scalestudy.launch.environments import refuse_missing_software
from scalestudy.launch.queue.base import JobMark, Queue, QueueRefused, study_digest
from scalestudy.launch.queue.jobs import find_orphans
from scalestudy.launch.queue.layout import allocation, expand_for, layout
from scalestudy.launch.queue.polling import forget
from scalestudy.launch.queue.site import Site, find_site
from scalestudy.launch.queue.submit import Submission, job_script, next_submissions, script_paths, submit
from scalestudy.launch.status import study_status
from scalestudy.study.file import Study
from scalestudy.study.point import Point
from scalestudy.study.store import StudyFolder
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
        return expand_for(study, _site(study, options))

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
        for orphan in find_orphans(folder, overview):
            yield Note(f"{orphan.sentence()}; `scalestudy cancel {folder.path}` ends it.")
        submissions, notes = next_submissions(overview, [point.name for point in points], options)
        yield from notes
        site, cluster = _site(folder.study, options), self.queue.cluster_name()
        forget(folder.path)
        wanted = [point for point in points if point.name in submissions]
        if wanted and not (options.feeds and overview.open):
            yield Note(allocation(site, [layout(point, site) for point in wanted]))
        for count, point in enumerate(wanted):
            try:
                job = submit(folder, point, submissions[point.name], self.queue, site, cluster, options.after)
            except ScalestudyError as error:
                full = isinstance(error, QueueRefused) and self.queue.full in error.words
                if full and options.feeds and (count or overview.open):
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
        """Yield the job scripts, each followed by the command that would submit it."""
        submissions, notes = next_submissions(overview, list(points), options)
        yield from notes
        site, mark = _site(study, options), JobMark(study_digest(target), "0" * 16)
        if submissions:
            yield Note(allocation(site, [layout(points[name], site) for name in submissions]))
        for name, submission in submissions.items():
            run = _expected_run(target.absolute() / "points" / name, submission)
            script = next(script_paths(target, name))
            yield job_script(points[name], script, run, site, self.queue, mark).rstrip("\n")
            yield f"\n{shlex.join(self.queue.submission(script, options.after))}\n"
        yield f"# {len(overview.points)} points, {len(submissions)} to submit, results in {target}"


def _expected_run(folder: Path, submission: Submission) -> Path:
    if submission.resume is not None:
        return submission.resume.path.absolute()
    numbers = [int(path.name[4:]) for path in folder.glob("run-*") if path.name[4:].isdigit()]
    return folder / f"run-{max(numbers, default=0) + 1}"


def _site(study: Study, options: Options) -> Site:
    try:
        return find_site(study.launch.site, options.base)
    except UserError as error:
        where = study.place.of("launch.site", "launch.on", "launch")
        raise UserError(error.expected, f"{error.received}{where}", error.action) from None
