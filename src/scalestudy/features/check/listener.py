"""What a check tells while it goes on, to a terminal, a notebook or nobody."""

from pathlib import Path


class CheckListener:
    """Hears how far a check is. This one tells nobody; others say what they want to say."""

    def processes_started(self, processes: int) -> None:
        """Processes on this machine look at it, and try collectives."""

    def logs_kept(self, folder: Path) -> None:
        """Logs of processes on this machine stay in a folder."""

    def job_refused(self) -> None:
        """No job was submitted, since a line says fail already."""

    def nodes_not_seen(self) -> None:
        """What runs through a queue was checked, but not its nodes: no job was asked for."""

    def job_submitted(self, job: str, processes: int, nodes: int, folder: Path) -> None:
        """A job on the nodes waits for its turn; its files are in a folder."""

    def job_seen(self, seen: str) -> None:
        """The job and its state, in words."""

    def job_left(self, later: str) -> None:
        """The user no longer waits for the job; `later` says how to get its report."""

    def waiting_ended(self) -> None:
        """The processes, or the job, are no longer waited for."""
