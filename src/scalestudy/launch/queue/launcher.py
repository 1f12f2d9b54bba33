"""A launcher whose points wait in a queue: what all queues do alike."""

import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from scalestudy.launch.base import Note, Options, Overview, Step, Submitted
from scalestudy.launch.queue.base import LARGEST_ARRAY, QUEUE_ERRORS, JobMark, Queue
from scalestudy.launch.queue.jobs import find_orphans
from scalestudy.launch.queue.layout import expand_for, layout
from scalestudy.launch.queue.script import JobScript, own_source, render
from scalestudy.launch.queue.site import Site, find_site
from scalestudy.launch.queue.submit import (
    JobPlan,
    Submission,
    dry_run,
    goes_on,
    next_submission,
    plan_batches,
    submit,
)
from scalestudy.launch.status import study_status
from scalestudy.study.file import Study
from scalestudy.study.point import Point
from scalestudy.study.state import UNSUCCESSFUL
from scalestudy.study.store import StudyFolder
from scalestudy.util.errors import ScalestudyError, UserError

AnyQueue = TypeVar("AnyQueue", bound=Queue)


class QueueLauncher(Generic[AnyQueue]):
    """Gives points to a queue; its jobs go on when this process ends."""

    detached = True

    def __init__(self, queue: AnyQueue, *, checked: bool = False) -> None:
        self.queue, self.checked = queue, checked
        self.title = queue.title

    def points(self, study: Study, options: Options) -> list[Point]:
        """The points on the nodes of the study's site.

        Raises:
            UserError: If the site is missing or not right, or a point is impossible on it.
        """
        return expand_for(study, _site(study, options))

    def refuse(self, points: Sequence[Point]) -> None:
        """Nothing: what is installed on the nodes is not known here."""

    def start(
        self, folder: StudyFolder, points: Sequence[Point], options: Options
    ) -> Generator[Step, None, None]:
        """Submit the points that are not done, queued or running, and were not tried too often.

        A batch that the queue does not take leaves no run folder, script or job behind; those before it stay.

        Raises:
            QueueUnreachable, QueueRefused, QueueAbsent: If the queue does not answer, or refuses.
            RunError: If the folder cannot be written to.
        """
        overview = study_status(folder, must=True)
        for orphan in find_orphans(folder):
            yield Note(f"{orphan.sentence()}; `scalestudy cancel {folder.path}` ends it.")
        submissions, notes = next_submissions(overview, [point.name for point in points], options)
        yield from notes
        by_name = {point.name: point for point in points}
        plan = self._plan(folder.study, by_name, submissions, options, self.queue.cluster_name())
        count = 0
        try:
            for batch, job in submit(folder, plan):
                count += len(batch.names)
                yield Submitted(batch.names, job)
        except ScalestudyError:
            if count:
                yield Note(
                    f"{count} of {len(submissions)} points were submitted before {self.title} said no."
                )
            raise

    def dry_run(
        self, target: Path, study: Study, points: Mapping[str, Point], overview: Overview, options: Options
    ) -> Iterator[str | Note]:
        """The job scripts, each followed by the line that would submit it."""
        submissions, notes = next_submissions(overview, list(points), options)
        yield from notes
        for script, line in dry_run(target, self._plan(study, points, submissions, options)):
            yield script.rstrip("\n")
            yield f"\n{line}\n"
        yield f"# {len(overview.points)} points, {len(submissions)} to submit, results in {target}"

    def _plan(
        self,
        study: Study,
        points: Mapping[str, Point],
        submissions: Mapping[str, Submission],
        options: Options,
        cluster: str = "",
    ) -> JobPlan:
        site = _site(study, options)
        layouts = {name: layout(points[name], site) for name in submissions}

        def same_script(name: str) -> object:
            point = points[name]
            return layouts[name], point.implementation, point.launch, point.files

        def script(names: Sequence[str], runs: Sequence[Path], mark: JobMark) -> str:
            job = JobScript(
                name=f"{study.name}-{names[0]}",
                runs=tuple(runs),
                point=points[names[0]],
                layout=layouts[names[0]],
                site=site,
                python=sys.executable,
                template=options.template,
                source=own_source(),
                mark=mark,
            )
            return render(job, self.queue)

        batches = plan_batches(
            list(submissions),
            same_script,
            references={name for name in submissions if points[name].workers == 1},
            reference_first=options.reference_first,
            largest=self._largest_array() if options.arrays else 1,
        )
        return JobPlan(self.queue, batches, points, submissions, script, site.name, cluster)

    def _largest_array(self) -> int:
        """Of a queue that does not answer now, what is usual: a dry run needs none."""
        try:
            return self.queue.largest_array()
        except QUEUE_ERRORS:
            return LARGEST_ARRAY


def _site(study: Study, options: Options) -> Site:
    try:
        site = find_site(study.launch.site, options.base)
    except UserError as error:
        where = study.place.of("launch.site", "launch.on", "launch")
        raise UserError(error.expected, f"{error.received}{where}", error.action) from None
    return site.with_container(options.container) if options.container else site


def next_submissions(
    overview: Overview, names: Sequence[str], options: Options
) -> tuple[dict[str, Submission], list[Note]]:
    """How to submit those of these points that can be, in their order, and what to say of those left."""
    statuses = {status.name: status for status in overview.points}
    wanted = [statuses[name] for name in names]
    if options.interrupted_only:
        wanted = [status for status in wanted if goes_on(status)]
    room = len(wanted) if options.at_most is None else max(0, options.at_most - len(overview.open))
    submissions: dict[str, Submission] = {}
    notes, left = [], 0
    for status in wanted:
        submission = next_submission(status, limit=options.resubmissions)
        if submission is not None and len(submissions) < room:
            submissions[status.name] = submission
        elif submission is not None:
            left += 1
        elif status.state in UNSUCCESSFUL and status.job:
            times = "once" if status.job.attempt == 1 else f"{status.job.attempt} times"
            notes.append(
                Note(f"{status.name} has been submitted {times} and is left; --resubmit N tries again.")
            )
    if left:
        limit = f"--at-most {options.at_most} keeps no more in the queue"
        notes.append(Note(f"{left} point{'s' * (left > 1)} left for later: {limit}; submit again."))
    return submissions, notes
