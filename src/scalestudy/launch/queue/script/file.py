"""The job scripts in a study's folder: `jobs/NAME.sh`."""

import itertools
import os
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

    It is its owner's alone: `env` and `proxies` of a site profile may hold what others must not know.

    Args:
        folder: The study's.
        batch: What it submits.
        text: The script.
    """
    (folder / "jobs").mkdir(exist_ok=True)
    for number in itertools.count(1):
        path = script_path(folder, batch, number)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
        except FileExistsError:
            continue
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        return path
    raise AssertionError
