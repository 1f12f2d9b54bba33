"""What a submission would do."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from scalestudy.launch.queue.script.file import script_path
from scalestudy.launch.queue.submit.mark import no_mark
from scalestudy.launch.queue.submit.resubmission import Submission
from scalestudy.launch.queue.submit.submit import JobPlan


def dry_run(folder: Path, plan: JobPlan) -> Iterator[tuple[str, str]]:
    """For each batch the script, and the line of a shell that would submit it; nothing is written.

    Args:
        folder: Results folder of the study, which need not exist.
        plan: What would be submitted.
    """
    for index, batch in enumerate(plan.batches):
        path = script_path(folder, batch)
        jobs = [f'"$job{each + 1}"' for each in range(index)]
        line = " ".join([plan.queue.program, *plan.queue.options(batch, jobs), shlex.quote(str(path))])
        runs = [_expected_run(folder, name, plan.submissions[name]) for name in batch.names]
        yield plan.script(batch, runs, no_mark(folder)), f"job{index + 1}=$({line})"


def _expected_run(folder: Path, name: str, submission: Submission) -> Path:
    if submission.resume is not None:
        return submission.resume.path.absolute()
    parent = folder.absolute() / "points" / name
    numbers = [int(path.name[4:]) for path in parent.glob("run-*") if path.name[4:].isdigit()]
    return parent / f"run-{max(numbers, default=0) + 1}"
