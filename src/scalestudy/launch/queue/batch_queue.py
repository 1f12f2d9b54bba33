"""The interface of a queue: a scheduler for which job scripts are written, and what it offers inside of jobs."""

import os
from abc import abstractmethod
from typing import ClassVar

from scalestudy.launch.queue.point_job import JobLayout, JobScript
from scalestudy.launch.queue.site_profile import Site
from scalestudy.launch.scheduler import Scheduler
from scalestudy.store.records import Allocation
from scalestudy.util.errors import UserError

WORKER = '"${worker[@]}"'
"""The worker's command in a job script."""


class Queue(Scheduler):
    """A scheduler that runs job scripts on the nodes of a site."""

    directive: ClassVar[str]
    """Prefix of options in a job script: "SBATCH" for #SBATCH."""
    reserved: ClassVar[tuple[str, ...]]
    """Options that a site may not add, besides those that the job has."""
    job_variable: ClassVar[str]
    """Variable in a job that holds its id."""
    nodes_variable: ClassVar[str]
    """Variable in a job that holds its nodes."""
    reads_stdin: ClassVar[bool] = False
    """Whether a shell may read the script from its standard input."""
    warns: ClassVar[bool] = True
    """Whether the queue sends USR1 before the time limit; otherwise the job measures the time itself."""
    requeues: ClassVar[bool] = False
    """Whether a job can put itself back into the queue."""

    # Job scripts

    @abstractmethod
    def directives(self, job: JobScript) -> list[str]:
        """Return the options of a job, each with its value, without those that its site adds."""

    @abstractmethod
    def option_names(self, option: str) -> set[str]:
        """Return the names that an option sets; none if it is not a single option in the expected form."""

    def options(self, job: JobScript) -> list[str]:
        """Return the options of a job, then those that its site adds.

        Raises:
            UserError: If an option of the site is malformed, or would change one of the job.
        """
        computed = self.directives(job)
        taken = set(self.reserved).union(*map(self.option_names, computed))
        for option in job.site.directives:
            names = self.option_names(option)
            if option not in computed and (not names or names & taken):
                raise UserError(
                    "directives with one option each that do not change a job's layout",
                    f"{option!r} in the site profile {job.site.name}",
                    "Remove it if the point or a key of the profile sets it; else write one option, with its"
                    " full name.",
                )
        return list(dict.fromkeys([*computed, *job.site.directives]))

    @abstractmethod
    def launch_command(self, site: Site, layout: JobLayout) -> list[str] | None:
        """Return the lines of a command that starts every process; None for a launcher of the site's own."""

    @abstractmethod
    def mpirun_options(self) -> tuple[list[str], str, tuple[str, ...]]:
        """Return for mpirun: lines of bash before it, more options, and prefixes of variables to pass on."""

    def prepare(self) -> list[str]:
        """Return lines of bash that come first in a job script."""
        return []

    # Inside a job

    def own_job(self) -> str:
        """Return the id of the job that this process runs in; "none" outside of a job."""
        return os.environ.get(self.job_variable, "none")

    def own_nodes(self) -> str:
        """Return the nodes of the job that this process runs in."""
        return os.environ.get(self.nodes_variable, "this machine")

    def own_allocation(self) -> Allocation | None:
        """Return what the job of this process holds; None if the queue does not say."""
        return None

    def is_running(self) -> bool:
        """Whether it is certain that the queue is not ending this process's job."""
        return False

    def requeue(self) -> bool:
        """Requeue this process's job; return whether that succeeded."""
        return False
