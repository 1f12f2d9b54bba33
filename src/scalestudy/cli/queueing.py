"""What `submit` and `run` share of a study for the queue: everything checked, then given to Slurm."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.cli.console import err, out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scalestudy.cli.execute import Order
    from scalestudy.launch.queue.jobs.overview import Seen
    from scalestudy.launch.queue.site.profile import Site
    from scalestudy.launch.queue.submit.plan import Batch
    from scalestudy.launch.queue.submit.resubmission import Turn
    from scalestudy.launch.queue.submit.submit import Order as SlurmOrder
    from scalestudy.study.file import Study
    from scalestudy.study.point import Point
    from scalestudy.study.store import StudyFolder


@dataclass(frozen=True)
class Wishes:
    """The options of `submit`; `interrupted_only` leaves alone what cannot go on from a checkpoint."""

    at_most: int | None = None
    reference_first: bool = False
    arrays: bool = True
    resubmissions: int = 3
    container: str | None = None
    template: Path | None = None
    interrupted_only: bool = False


@dataclass(frozen=True)
class Checked:
    """A study that can be submitted: `ready` are the points to be submitted, with their prepared data."""

    study: "Study"
    points: "list[Point]"
    site: "Site"
    ready: "Mapping[str, Point]"
    existing: "StudyFolder | None"
    seen: "list[Seen]"


def submit_study(order: "Order", wishes: Wishes) -> int:
    """Submit what is missing.

    Returns:
        How many points Slurm has taken.

    Raises:
        UserError: Before anything is written; or what Slurm refused.
    """
    from scalestudy.launch.queue.jobs.overview import look
    from scalestudy.launch.queue.submit.submit import submit
    from scalestudy.launch.slurm.queue.ask_jobs import cluster_name
    from scalestudy.study.store import StudyFolder

    checked = check(order, wishes)
    cluster = cluster_name()
    folder = StudyFolder.create_or_open(order.target, checked.study, checked.points, order.text)
    try:
        with folder.lock():
            turns = _turns(look(folder, must=True).points, wishes, checked)
            wanted = slurm_order(checked, turns, wishes)
            outcome = submit(folder, replace(wanted, cluster=cluster))
    finally:
        if checked.existing is None:
            _remove_if_unused(folder)
    for each in outcome.taken:
        _print_taken(each.batch, each.job)
    if outcome.error:
        count = sum(len(each.batch.names) for each in outcome.taken)
        if count:
            err().print(f"{count} of {len(turns)} points were submitted before Slurm said no.", markup=False)
        raise outcome.error
    return len(turns)


def print_dry_run(order: "Order", wishes: Wishes) -> None:
    """Print the job scripts, each followed by the line that would submit it; nothing is written."""
    from scalestudy.launch.queue.submit.dry_run import dry_run

    checked = check(order, wishes, must=False)
    turns = _turns(checked.seen, wishes, checked)
    for script, line in dry_run(order.target, slurm_order(checked, turns, wishes)):
        print(script.rstrip("\n"))
        print(f"\n{line}\n")
    print(f"# {len(checked.points)} points, {len(turns)} to submit, results in {order.target}")


def check(order: "Order", wishes: Wishes, *, must: bool = True) -> Checked:
    """Check all that can be known before the queue: the site, the points, the folder, the data.

    Args:
        order: The study.
        wishes: How to submit it.
        must: Whether Slurm has to answer.

    Raises:
        UserError: Naming the first thing that is not right. Nothing is written.
    """
    from scalestudy.cli.preparing import found, with_task_data
    from scalestudy.errors import UserError
    from scalestudy.launch.queue.jobs.overview import Seen, look
    from scalestudy.launch.queue.site.find import find_site
    from scalestudy.launch.queue.site.points import expand_for
    from scalestudy.study.store import StudyFolder

    place = order.study.place
    try:
        site = find_site(order.study.launch.site, order.base)
    except UserError as error:
        where = place.of("launch.site", "launch.on", "launch")
        raise UserError(error.expected, f"{error.received}{where}", error.action) from None
    if wishes.container:
        site = site.with_container(wishes.container)
    study, kind = with_task_data(order.study)
    points = expand_for(study, site)
    existing = StudyFolder.check(order.target, study, points)
    known = {each.point.name: each for each in look(existing, must=must).points} if existing else {}
    seen = [known.get(point.name) or Seen(point, "missing") for point in points]
    todo = [point for point, each in zip(points, seen, strict=True) if each.state in ("failed", "missing")]
    ready = {point.name: point for point in found(todo, kind, order.base, place)}
    return Checked(study, points, site, ready, existing, seen)


def slurm_order(checked: Checked, turns: "Mapping[str, Turn]", wishes: Wishes) -> "SlurmOrder":
    """The calls of sbatch for these points."""
    from scalestudy.launch.queue.script.job import Job, job_script
    from scalestudy.launch.queue.script.own_source import own_source
    from scalestudy.launch.queue.site.layout import layout
    from scalestudy.launch.queue.submit.plan import Wanted, plan
    from scalestudy.launch.queue.submit.submit import Order as SlurmOrder

    site, points = checked.site, checked.ready
    layouts = {name: layout(points[name], site) for name in turns}
    wanted = [
        Wanted(
            name,
            (layouts[name], points[name].implementation, points[name].launch, points[name].files),
            layouts[name].seconds,
            points[name].workers == 1,
        )
        for name in turns
    ]
    batches = plan(
        wanted, at_most=wishes.at_most, reference_first=wishes.reference_first, arrays=wishes.arrays
    )

    def script(batch: "Batch", runs: Sequence[Path]) -> str:
        first = batch.names[0]
        return job_script(
            Job(
                name=f"{checked.study.name}-{first}",
                runs=tuple(runs),
                point=points[first],
                layout=layouts[first],
                site=site,
                python=sys.executable,
                throttle=batch.throttle,
                template=wishes.template,
                source=own_source(),
            )
        )

    return SlurmOrder(batches, points, turns, script, site.name)


def _turns(seen: "Sequence[Seen]", wishes: Wishes, checked: Checked) -> "dict[str, Turn]":
    from scalestudy.launch.queue.submit.resubmission import goes_on, turn

    wanted = [each for each in seen if each.point.name in checked.ready]
    if wishes.interrupted_only:
        wanted = [each for each in wanted if goes_on(each)]
    turns = {each.point.name: turn(each, limit=wishes.resubmissions) for each in wanted}
    for each in wanted:
        if turns[each.point.name] is None and each.state == "failed" and each.job:
            times = "once" if each.job.attempt == 1 else f"{each.job.attempt} times"
            err().print(
                f"{each.point.name} has been submitted {times} and is left; --resubmit N tries again.",
                markup=False,
            )
    return {name: each for name, each in turns.items() if each is not None}


def _print_taken(batch: "Batch", job: str) -> None:
    first, last = batch.names[0], batch.names[-1]
    names = first if len(batch.names) == 1 else f"{first} … {last} (an array of {len(batch.names)})"
    out().print(f"Submitted {names} as job {job}", markup=False)


def _remove_if_unused(folder: "StudyFolder") -> None:
    """Take away the folder of a study of which nothing was submitted: Slurm refused the first job."""
    import shutil

    if not any(folder.runs(point.name) for point in folder.points()):
        shutil.rmtree(folder.path, ignore_errors=True)
