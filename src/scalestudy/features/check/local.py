"""A check with several processes on this machine."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from scalestudy.features.check.line import REPORT_SCHEMA, Report
from scalestudy.features.check.plan import PLAN_FILE, REPORT_FILE, Plan
from scalestudy.hardware import cores
from scalestudy.launch.failures import TAIL_LINES
from scalestudy.launch.local import reserve
from scalestudy.launch.local.workers import POLL, Workers, worker_commands
from scalestudy.study.run_folder import RunFolder
from scalestudy.util.errors import RunError
from scalestudy.util.files import write_atomically


def check_here(folder: Path, plan: Plan, *, waiting: Callable[[], None] = lambda: None) -> Report:
    """Start the plan's workers on this machine and wait for their report.

    Args:
        folder: Empty folder for the check's files.
        plan: What to check.
        waiting: Called a few times a second meanwhile.

    Raises:
        RunError: If they end without a report.
    """
    write_plan(folder, plan)
    size, each = plan.workers, plan.cpus_per_worker
    with (
        reserve.ports(size + 2) as port,
        reserve.cores(cores.granted(), size * each) as (cpus, _),
        reserve.private_run(size) as own,
    ):
        commands = worker_commands(RunFolder(folder), size, port, cpus, os.environ | own)
        with Workers(commands) as workers:
            while not workers.ended(0) and not (folder / REPORT_FILE).exists():
                waiting()
                time.sleep(POLL)
    return read_report(folder)


def write_plan(folder: Path, plan: Plan) -> None:
    """Write the plan where the workers look for it."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / PLAN_FILE, plan.model_dump_json(indent=1))


def read_report(folder: Path) -> Report:
    """The report of a check that has ended.

    Raises:
        RunError: If it left none.
    """
    file = folder / REPORT_FILE
    try:
        return Report.model_validate_json(file.read_bytes())
    except OSError:
        action = f"Look at the logs in {folder / 'logs'}."
        raise RunError(f"a report in {file}", _last_words(folder), action) from None
    except ValueError as error:
        raise RunError(
            f"a report of schema version {REPORT_SCHEMA} in {file}",
            str(error).splitlines()[0],
            "Another version of Scalestudy wrote it: check again.",
        ) from error


def _last_words(folder: Path) -> str:
    for name in ("rank-0.log", "job.log"):
        try:
            lines = (folder / "logs" / name).read_text(errors="replace").splitlines()
        except OSError:
            continue
        if tail := [line for line in lines if line.strip()][-TAIL_LINES:]:
            return f"none; the last of {name}: {tail[-1]}"
    return "none, and no logs"
