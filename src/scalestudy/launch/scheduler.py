"""The interface of a scheduler: its client commands, what it says about jobs, and what goes wrong."""

import contextlib
import os
import re
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from scalestudy.launch.job_view import JobView
from scalestudy.launch.waiting import Waiting
from scalestudy.util.errors import RunError, UserError

TIMEOUT = 20.0
"""Time limit of a client command in seconds."""
MARK = "scalestudy:{submission}"
"""Text that a job carries in its queue: the submission, 16 random hexadecimal digits, new for each."""


def read_mark(text: str) -> str | None:
    """Return the submission in a comment or in variables of a job; None if there is no mark."""
    match = re.search(r"scalestudy:([0-9a-f]{16})\b", text)
    if match is None:
        return None
    return match[1]


class QueueUnreachable(RunError):
    """A queue gave no answer in time; `received` describes this in one line."""

    def __init__(
        self,
        title: str,
        command: str,
        reason: str,
    ) -> None:
        super().__init__(
            f"an answer of {title} to `{command}`",
            reason,
            "Try again later.",
        )


class QueueRefused(UserError):
    """A queue refused a command; `words` is its own message."""

    def __init__(
        self,
        title: str,
        command: str,
        words: str,
        action: str = "",
    ) -> None:
        self.words = words
        action = action or "Correct what it names, in the site profile or the study."
        super().__init__(f"a `{command}` that {title} accepts", words, action)


class QueueAbsent(UserError):
    """This machine lacks the queue's commands, or belongs to no cluster."""

    def __init__(
        self,
        title: str,
        command: str,
        why: str = "none in PATH",
    ) -> None:
        super().__init__(
            f"the commands of {title} on this machine ({command})",
            why,
            f'Log in to the cluster (some need `module load {title.lower()}`), or set launch.on = "local".',
        )


QUEUE_ERRORS = (QueueUnreachable, QueueRefused, QueueAbsent)


class Scheduler(ABC):
    """A scheduler, used through its client commands. Methods may raise any of QUEUE_ERRORS."""

    name: ClassVar[str]
    """Name in `launch.on`."""
    title: ClassVar[str]
    """Name shown to users, such as "Slurm"."""
    submits: ClassVar[tuple[str, ...]]
    """Command that submits a script."""
    cancels: ClassVar[tuple[str, ...]]
    """Command that cancels jobs."""
    job_form: ClassVar[re.Pattern[str]]
    """Pattern of the line that holds the id of a submitted job, in its first group."""
    full: ClassVar[str]
    """Phrase in a refusal because the user has too many jobs in the queue."""
    unreachable: ClassVar[tuple[str, ...]] = ()
    """Phrases, in lower case, in messages that the server could not be reached."""

    # Client commands

    def run(self, program: str, *arguments: str) -> tuple[int, str, str]:
        """Run a client command, within a time limit; return its exit code, output and errors."""
        submitting = program == self.submits[0]
        variables = self.environment(os.environ, submitting=submitting)
        # Messages are recognised by their English words, and dates are parsed.
        variables |= {"LC_ALL": "C"}
        try:
            # With a time limit: client commands hang for minutes while the server is down.
            return run_command([program, *arguments], variables, TIMEOUT)
        except (FileNotFoundError, PermissionError):
            raise QueueAbsent(self.title, program) from None
        except subprocess.TimeoutExpired:
            raise QueueUnreachable(
                self.title,
                program,
                f"none within {TIMEOUT:g} s",
            ) from None

    def call(self, program: str, *arguments: str) -> str:
        """Return the output of a client command.

        Raises:
            QueueUnreachable: If it took too long or could not reach the server.
            QueueRefused: If it failed, with the queue's message.
            QueueAbsent: If there is no such command.
        """
        code, output, errors = self.run(program, *arguments)
        if code != 0:
            return self.failed(program, code, output, errors)
        return output

    def failed(
        self,
        program: str,
        code: int,
        output: str,
        errors: str,
    ) -> str:
        """Raise the error of a failed command, or return its output if the failure does not matter."""
        words = plain_error(program, errors or output)
        if any(phrase in words.lower() for phrase in self.unreachable):
            raise QueueUnreachable(self.title, program, words)
        raise QueueRefused(
            self.title,
            program,
            words or f"exit code {code}, and no reason",
        )

    def environment(
        self,
        variables: Mapping[str, str],
        *,
        submitting: bool,
    ) -> dict[str, str]:
        """Return the variables of client commands, derived from those of this process."""
        return dict(variables)

    # Jobs

    @abstractmethod
    def ask(self, jobs: Sequence[str], *, cluster: str = "") -> Mapping[str, JobView]:
        """Return the view of each of these jobs, in few calls; a forgotten job has the state "UNKNOWN"."""

    @abstractmethod
    def marked(self) -> dict[str, str]:
        """Return the ids, by submission, of this user's jobs that are not over and carry a mark."""

    def cluster_name(self) -> str:
        """Return the queue's name of the cluster that this machine talks to; "" if unknown."""
        return ""

    @abstractmethod
    def after(self, job: str) -> list[str]:
        """Return the options of a submission that starts once this job has succeeded."""

    def submission(self, script: Path, after: str | None = None) -> list[str]:
        """Return the command that submits a script, to start after a job if one is named."""
        command = [*self.submits]
        if after:
            command += self.after(after)
        return [*command, str(script)]

    def submit(self, script: Path, after: str | None = None) -> str:
        """Submit a script, to start after a job if one is named, and return the id of the new job."""
        program, *arguments = self.submission(script, after)
        try:
            printed = self.call(program, *arguments)
        except QueueRefused as refused:
            action = self.advice(refused.words)
            raise QueueRefused(self.title, program, refused.words, action) from None
        # Sites print notices around it, of budgets for example, mostly before it.
        for line in reversed(printed.splitlines()):
            if match := self.job_form.fullmatch(line.strip()):
                return match[1]
        words = printed.strip() or "nothing, not even the id of a job"
        raise QueueRefused(self.title, program, words)

    def advice(self, words: str) -> str:
        """Return advice on a refused submission from the queue's message; "" if there is none."""
        return ""

    def cancel(self, jobs: Sequence[str]) -> None:
        """Cancel jobs. Jobs that have ended are ignored."""
        for ids in chunks(list(jobs)):
            try:
                self.call(*self.cancels, *ids)
            except QueueRefused as refused:
                action = "Only their owner or an administrator can cancel jobs."
                raise QueueRefused(
                    self.title,
                    self.cancels[0],
                    refused.words,
                    action,
                ) from None

    @abstractmethod
    def explain(self, reason: str) -> Waiting:
        """Explain why a job waits, from the queue's reason."""


def plain_error(program: str, errors: str) -> str:
    """Join the errors of a command in one line, without its name, warnings and repetitions."""
    lines: list[str] = []
    for line in errors.splitlines():
        words = line.strip().removeprefix(f"{program}: ")
        if words.lower().startswith("warning"):
            continue
        words = words.removeprefix("error: ").removeprefix("fatal: ").rstrip(".")
        if words and words not in lines:
            lines.append(words)
    return "; ".join(lines)


def chunks(ids: Sequence[str], size: int = 100) -> list[Sequence[str]]:
    """Split ids into batches that fit a command line and keep the server's answer small."""
    return [ids[start : start + size] for start in range(0, len(ids), size)]


def run_command(
    command: Sequence[str],
    environment: Mapping[str, str],
    limit: float,
) -> tuple[int, str, str]:
    """Run a command with these variables; return its exit code, output and errors.

    Raises:
        OSError: If it cannot be started.
        subprocess.TimeoutExpired: If it takes longer than `limit` seconds; it is killed then.
    """
    process = subprocess.Popen(
        list(command),
        env=dict(environment),
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=limit)
    finally:
        # A site's wrapper script may have started processes that would keep the pipes open.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()
    return process.returncode, output, errors
