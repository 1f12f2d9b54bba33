"""How far a check is, on the terminal's standard error."""

import time
from pathlib import Path

from rich.markup import escape
from rich.status import Status

from scalestudy.cli.console import err
from scalestudy.features.check.listener import CheckListener
from scalestudy.util import units


class CheckProgress(CheckListener):
    """A spinner while the check waits, and lines for what stays to be said."""

    def __init__(self) -> None:
        self._status: Status | None = None
        self._seen, self._began = "", 0.0

    def processes_started(self, processes: int) -> None:
        """Spin while processes here look."""
        self._wait(f"Checking with {processes} processes on this machine")

    def logs_kept(self, folder: Path) -> None:
        """Say where the logs are."""
        err().print(f"Logs: {folder}", markup=False)

    def job_refused(self) -> None:
        """Say that there is no job, and why."""
        err().print("Not submitted: what failed here would fail there.", style="red")

    def nodes_not_seen(self) -> None:
        """Say how the nodes are looked at."""
        err().print("The nodes were not looked at: --submit does that.", markup=False)

    def job_submitted(self, job: str, processes: int, nodes: int, folder: Path) -> None:
        """Name the job, and spin while it is waited for."""
        err().print(f"Job {job}: {processes} processes on {nodes} nodes, files in {folder}", markup=False)
        self._wait(f"job {job}")

    def job_seen(self, seen: str) -> None:
        """Show the job's state and what it waits for: beside the spinner, or a line whenever that changes."""
        if self._status is not None:
            waited = units.duration(time.monotonic() - self._began)
            self._status.update(f"{escape(seen)} ({waited})")
        if not err().is_terminal and seen != self._seen:
            err().print(seen, markup=False)
        self._seen = seen

    def job_left(self, later: str) -> None:
        """Say that the job goes on."""
        err().print(f"\nThe job is left as it is. {later}", markup=False)

    def waiting_ended(self) -> None:
        """Spin no more."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _wait(self, text: str) -> None:
        self._began = time.monotonic()
        self._status = err().status(text)
        self._status.start()
