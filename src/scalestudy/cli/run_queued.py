"""`scalestudy run` of a study for the queue: submitted, watched to its end, reported."""

import shlex
from typing import TYPE_CHECKING

from scalestudy.cli.console import err, out

if TYPE_CHECKING:
    from scalestudy.cli.execute import Order
    from scalestudy.launch.queue.jobs.overview import Picture
    from scalestudy.study.store import StudyFolder


def run_queued(order: "Order", *, dry_run: bool, report: bool) -> int:
    """Submit what is missing, watch until nothing is queued or running, and report.

    What was interrupted on the way (time limit, node failure, preemption) is submitted again, to go on from
    its checkpoint, as often as `submit` would.

    Returns:
        The exit code: 0 done, 1 a run failed, 130 interrupted; the jobs go on then.

    Raises:
        UserError: Before anything is submitted.
    """
    from scalestudy.cli.execute import print_failure, print_report
    from scalestudy.cli.queueing import Wishes, print_dry_run, submit_study
    from scalestudy.study.store import StudyFolder

    if dry_run:
        print_dry_run(order, Wishes())
        return 0
    submit_study(order, Wishes())
    folder = StudyFolder.open(order.target)
    try:
        picture = _watch(folder)
        while submit_study(order, Wishes(interrupted_only=True)):
            picture = _watch(folder)
    except KeyboardInterrupt:
        where = shlex.quote(str(order.target))
        err().print(
            f"\nThe jobs go on. Watch them with: scalestudy status {where} --watch"
            f"\nCancel them with: scalestudy cancel {where}",
            markup=False,
        )
        return 130
    failed = [seen for seen in picture.points if seen.state == "failed"]
    for seen in failed:
        print_failure(folder, seen.point.name, seen.run.failure() if seen.run else None)
    if report:
        print_report(folder)
    if failed:
        err().print(f"Run what failed again with: {order.resume}", markup=False)
    return 1 if failed else 0


def _watch(folder: "StudyFolder") -> "Picture":
    from scalestudy.cli.queue_table import watch_queue

    return watch_queue(folder, out())
