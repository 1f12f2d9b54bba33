"""What a submission would do."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from scalestudy.launch.queue.script.file import script_path
from scalestudy.launch.queue.submit.resubmission import Turn
from scalestudy.launch.queue.submit.submit import Order
from scalestudy.launch.slurm.queue.sbatch import options


def dry_run(folder: Path, order: Order) -> Iterator[tuple[str, str]]:
    """For each batch the script, and the line of a shell that would submit it; nothing is written.

    Args:
        folder: Results folder of the study, which need not exist.
        order: What would be submitted.
    """
    for index, batch in enumerate(order.batches):
        path = script_path(folder, batch)
        jobs = [f'"$job{each + 1}"' for each in range(index)]
        line = " ".join(["sbatch", *options(batch, jobs), shlex.quote(str(path))])
        runs = [_expected_run(folder, name, order.turns[name]) for name in batch.names]
        yield order.script(batch, runs), f"job{index + 1}=$({line})"


def _expected_run(folder: Path, name: str, turn: Turn) -> Path:
    if turn.resume is not None:
        return turn.resume.path.absolute()
    parent = folder.absolute() / "points" / name
    numbers = [int(path.name[4:]) for path in parent.glob("run-*") if path.name[4:].isdigit()]
    return parent / f"run-{max(numbers, default=0) + 1}"
