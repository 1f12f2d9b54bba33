"""A user's own script on several workers of this machine: what `scalestudy launch` does."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scalestudy.conduct.one_point import one_point_study
from scalestudy.errors import RunError, UserError
from scalestudy.features.scripts.launch import Script, run_script, slurm_line
from scalestudy.launch.local.launcher import points_here, refuse_missing_software
from scalestudy.launch.local.run import terminable
from scalestudy.study.launchers import DEFAULT
from scalestudy.study.strategies import traits

PLAIN = ("cnn", "digits")
"""A task and data that any study may have: of this one nothing but its strategy and its terms is used."""


def script_of(
    file: Path,
    arguments: tuple[str, ...],
    *,
    strategy: str,
    workers: int,
    launch: dict[str, Any],
    on: str = DEFAULT,
) -> Script:
    """What is to be started, on this machine's devices and cores.

    Args:
        file: The script.
        arguments: Its own.
        strategy: As of a study.
        workers: How many.
        launch: Keys of [launch] of a study: device, cpus_per_worker.
        on: Where it is to run.

    Raises:
        UserError: If it cannot be started so; for a queue with the line that would do it.
    """
    if not file.is_file():
        raise UserError(
            "a Python script", f"{file}, which is no file", "Name it first, its arguments after it."
        )
    study = one_point_study(*PLAIN, {"strategy": strategy, "workers": workers, "seed": 0}, {"launch": launch})
    (point,) = (
        points_here(study) if traits(strategy).most_workers != 1 or workers == 1 else _not_alone(workers)
    )
    script = Script(
        point.model_copy(update={"name": file.name, "study": "scalestudy launch"}), str(file), arguments
    )
    if on != DEFAULT:
        line = slurm_line(script)
        raise UserError(
            f'"{DEFAULT}", this machine, for a script',
            f'"{on}"',
            f"In a job script of Slurm write: {line}",
        )
    refuse_missing_software([point])
    return script


def run_here(script: Script, logs: Path | None, told: Callable[[str], None]) -> None:
    """Run a script's workers to their end.

    Args:
        script: What is started.
        logs: Folder for logs; one among temporary files when None.
        told: Is given notes.

    Raises:
        RunError: If a worker fails; names the first, with its last lines where they were not printed.
        KeyboardInterrupt: On Ctrl-C or SIGTERM, after all workers have ended.
    """
    if logs is not None:
        logs.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="scalestudy-launch-", dir=logs))
    last = script.point.processes - 1
    if last:
        told(f"Logs of rank{'s 1 to' * (last > 1)} {last}: {folder / 'logs'}")
    with terminable():
        steps = run_script(script, folder)
        while True:
            try:
                told(next(steps).text)
            except StopIteration as end:
                failure = end.value
                break
    if failure is None:
        if logs is None:
            shutil.rmtree(folder)
        return
    tail = "".join(f"\n  | {line}" for line in failure.tail) if failure.rank else ""
    raise RunError(
        "every worker to do its work",
        failure.reason.replace("the task's file", "the script") + tail + ("\n" if tail else ""),
        f"The log of each rank but 0 is in {folder / 'logs'}." if last else "Its output stands above.",
    )


def _not_alone(workers: int) -> Any:
    raise UserError(
        "one worker for strategy single", f"{workers}", "Take mirrored, multiworker or horovod for several."
    )
