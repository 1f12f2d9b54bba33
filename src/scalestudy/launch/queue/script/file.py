"""The job scripts in a study's folder: `jobs/NAME.sh`."""

import itertools
from pathlib import Path

from scalestudy.launch.queue.submit.plan import Batch


def script_path(folder: Path, batch: Batch, number: int = 1) -> Path:
    """Absolute path of a batch's script; later ones of the same name are numbered."""
    name = script_name(batch)
    return folder.absolute() / "jobs" / (f"{name}.sh" if number == 1 else f"{name}-{number}.sh")


def script_name(batch: Batch) -> str:
    """Name of a batch's script: its point's, or what the names of an array's points have in common."""
    if len(batch.names) == 1:
        return batch.names[0]
    parts = zip(*(name.split("-") for name in batch.names), strict=False)
    common = "-".join(part[0] for part in itertools.takewhile(lambda part: len(set(part)) == 1, parts))
    return f"{common or batch.names[0]}-x{len(batch.names)}"


def write_script(folder: Path, batch: Batch, text: str) -> Path:
    """Write a script under a name that no earlier one has: each tells what was submitted.

    Args:
        folder: The study's.
        batch: What it submits.
        text: The script.
    """
    (folder / "jobs").mkdir(exist_ok=True)
    for number in itertools.count(1):
        path = script_path(folder, batch, number)
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            continue
        path.chmod(path.stat().st_mode | 0o111 & (path.stat().st_mode >> 2))
        return path
    raise AssertionError
