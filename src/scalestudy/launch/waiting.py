"""Why jobs wait in a queue, in three groups, and what to do next about each."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Group = Literal["will start", "needs you", "needs the site", "unknown"]
STUCK = ("needs you", "needs the site")
"""Groups of jobs that do not start by themselves."""
MOST_JOBS = 5
"""Largest number of jobs in a command; a few stand for all."""


@dataclass(frozen=True)
class Waiting:
    """Why a job waits.

    Attributes:
        group: Who or what it waits for: its turn, its user, or its site; "unknown" for a new reason.
        words: The reason in words.
        command: The next command, with "{jobs}" in place of the ids of the jobs.
    """

    group: Group
    words: str
    command: str

    @property
    def stuck(self) -> bool:
        """Whether the job does not start by itself."""
        return self.group in STUCK

    @property
    def short(self) -> str:
        """The reason; of a job that does not start by itself only the group, beside a longer sentence."""
        return self.group if self.stuck else self.words

    @property
    def described(self) -> str:
        """The reason, after its group if the job does not start by itself."""
        return f"{self.group}: {self.words}" if self.stuck else self.words

    def next_command(self, jobs: Iterable[str]) -> str:
        """Return the next command for these jobs."""
        return self.command.replace("{jobs}", ",".join(list(jobs)[:MOST_JOBS]))

    def sentence(self, jobs: Iterable[str]) -> str:
        """Describe why these jobs wait and what to do: "needs you: held by you. Next: scontrol …"."""
        return f"{self.group}: {self.words}. Next: {self.next_command(jobs)}"
