"""PBS Professional and OpenPBS: their client commands, and the options of their job scripts."""

import getpass
import re
from collections.abc import Mapping, Sequence
from typing import Any

from scalestudy.launch.job_view import UNKNOWN, JobView
from scalestudy.launch.queue.batch_queue import Queue
from scalestudy.launch.queue.job_script import job_name
from scalestudy.launch.queue.pbs_output import HOLDS, job_view, parse_qstat
from scalestudy.launch.queue.point_job import (
    JobLayout,
    JobScript,
    gpu_request,
    memory_per_node,
)
from scalestudy.launch.queue.site_profile import Site, memory_bytes
from scalestudy.launch.scheduler import (
    MARK,
    QueueRefused,
    QueueUnreachable,
    chunks,
    read_mark,
)
from scalestudy.launch.waiting import Group, Waiting
from scalestudy.util.errors import UserError

FORGOTTEN = ("unknown job id", "job has finished")
"""Messages of PBS about a job that can no longer be queried or deleted."""


class Pbs(Queue):
    """PBS Professional and OpenPBS, used through their client commands."""

    name = "pbs"
    title = "PBS"
    submits = ("qsub",)
    cancels = ("qdel",)
    directive = "PBS"
    reserved = (
        "C",
        "I",
        "J",
        "X",
        "e",
        "f",
        "h",
        "z",
        "W depend",
        "W block",
        "W interactive",
        "W run_count",
        "l nodes",
        "l ncpus",
        "l mpiprocs",
        "l ompthreads",
        "l ngpus",
        "l mem",
        "l walltime",
        "l min_walltime",
        "l max_walltime",
    )
    job_variable = "PBS_JOBID"
    nodes_variable = "SCALESTUDY_NODES"
    job_form = re.compile(r"(\d+(?:\.[\w.-]+)?)", re.ASCII)
    reads_stdin = True
    warns = False
    full = "would exceed"
    unreachable = (
        "cannot connect to server",
        "connection refused",
        "connection timed out",
        "no route to host",
        "unknown host",
        "pbs_iff",
        "communication failure",
        "server shutting down",
    )

    def failed(
        self,
        program: str,
        code: int,
        output: str,
        errors: str,
    ) -> str:
        """Raise the error of a failed command, unless it only reports forgotten jobs."""
        # qstat and qdel fail if one of several jobs is forgotten, although they have served the others.
        about_forgotten = [_is_about_forgotten(line) for line in _filled_lines(errors)]
        if about_forgotten and all(about_forgotten):
            return output
        return super().failed(program, code, output, errors)

    # Jobs

    def ask(self, jobs: Sequence[str], *, cluster: str = "") -> Mapping[str, JobView]:
        """Return what qstat, or else its history, reports about these jobs."""
        details = self._details(jobs)
        if forgotten := [job for job in jobs if job not in details]:
            # Not for all jobs: a site may keep a history of weeks, or none.
            details |= self._details(forgotten, "-x")
        views = {}
        for job in jobs:
            if job in details:
                views[job] = job_view(job, details[job])
            else:
                views[job] = JobView(job=job, state=UNKNOWN)
        return views

    def _details(self, jobs: Sequence[str], *history: str) -> dict[str, dict[str, Any]]:
        """Return the attributes of these jobs from qstat, by id, with a hundred jobs in a call.

        Without -E, qstat prints only the first of several jobs in JSON. A job that is missing both from the
        output and from the errors must not be taken for forgotten: QueueUnreachable is raised.
        """
        details: dict[str, dict[str, Any]] = {}
        for ids in chunks(list(dict.fromkeys(jobs))):
            code, output, errors = self.run(
                "qstat",
                *history,
                "-E",
                "-f",
                "-F",
                "json",
                *ids,
            )
            if code != 0:
                output = self.failed("qstat", code, output, errors)
            try:
                shown = parse_qstat(output)
            except ValueError as error:
                words = f"an answer that is not its JSON ({error})"
                raise QueueRefused(self.title, "qstat", words) from None
            # By number: the server's name may be printed in a longer or shorter form than it was given.
            named = set(re.findall(r"\d+", errors))
            for job in shown:
                named.add(job.partition(".")[0])
            if left := [job for job in ids if job.partition(".")[0] not in named]:
                raise QueueUnreachable(
                    self.title,
                    "qstat",
                    f"no word of {len(left)} of {len(ids)} jobs",
                )
            details |= shown
        return details

    def marked(self) -> dict[str, str]:
        """Return the ids, by submission, of this user's live jobs that carry a mark in their variables."""
        jobs = self._details(self.call("qselect", "-u", getpass.getuser()).split())
        marked = {}
        for job, fields in jobs.items():
            submission = read_mark(str(fields.get("Variable_List", "")))
            if submission and job_view(job, fields).live:
                marked[submission] = job
        return marked

    def advice(self, words: str) -> str:
        """Return where to look."""
        return "Correct what PBS names, in the site profile or the study; `qstat -Q` shows queues."

    def after(self, job: str) -> list[str]:
        """Return the options for a dependency."""
        return ["-W", f"depend=afterok:{job}"]

    def explain(self, reason: str) -> Waiting:
        """Explain why a job waits, from its hold or its comment.

        Comments are shortened: "Not Running: Insufficient …" becomes "insufficient …".
        """
        if reason in HOLDS:
            return HOLDS[reason]
        words = reason.removeprefix("Not Running: ").removeprefix("Can Never Run: ")
        words = words.strip()
        if words:
            words = f"{words[:1].lower()}{words[1:]}"
        else:
            # A job has no comment before the first cycle of the scheduler.
            words = "not yet considered"
        group: Group = "will start"
        if reason.startswith("Can Never Run: "):
            group = "needs you"
        return Waiting(group, words, "qstat -f {jobs}")

    # Job scripts

    def directives(self, job: JobScript) -> list[str]:
        """Return the options of qsub, each with its value.

        A chunk holds the job's resources on one node; chunks are scattered over nodes.

        Raises:
            UserError: If the site has a setting that PBS lacks, or a value that qsub would split.
        """
        site, layout = job.site, job.layout
        if site.qos:
            raise UserError(
                "a site profile without qos, which PBS does not have",
                f'qos = "{site.qos}" in {site.name}',
                "Remove it; a queue is named by partition.",
            )
        # qsub gives these characters a meaning of their own in paths.
        output = job.printed
        if re.search(r"[\s:%^]", output):
            output = "/dev/null"
        place = "scatter"
        if site.whole_nodes:
            place += ":excl"
        rerun = "n"
        if site.most_requeues:
            rerun = "y"
        lines = [
            f"-N {job_name(job.name)}",
            # The script is for bash, whatever the user's login shell is.
            "-S /bin/bash",
            "-j oe",
            f"-o {output}",
            f"-l select={_select(site, layout)}",
            f"-l place={place}",
            f"-r {rerun}",
        ]
        if layout.seconds is not None:
            minutes = -(-layout.seconds // 60)
            lines.append(f"-l walltime={minutes // 60:02}:{minutes % 60:02}:00")
        if job.submission:
            # PBS has no comment of the user's own, as Slurm has: the mark is a variable.
            mark = MARK.format(submission=job.submission)
            lines.append(f"-v SCALESTUDY_MARK={mark}")
        if site.partition:
            lines.append(f"-q {word(site.partition, 'partition', site)}")
        if site.account:
            lines.append(f"-A {word(site.account, 'account', site)}")
        return lines

    def option_names(self, option: str) -> set[str]:
        """Return the letter of an option ("-P value"); for -l and -W also the names of the attributes."""
        match = re.fullmatch(r"-([A-Za-z])(?: ([^\s\"'\\#]+))?", option)
        if match is None:
            return set()
        letter, value = match.groups()
        if letter in ("l", "W") and value:
            # One option may set several attributes: "-l walltime=1:00,mem=4gb".
            return {f"{letter} {part.partition('=')[0]}" for part in value.split(",")}
        return {letter}

    def launch_command(self, site: Site, layout: JobLayout) -> list[str] | None:
        """Return the command of mpiexec, which gets the nodes from PBS: of HPE's PALS, or MPICH's "hydra".

        "srun", the default of a profile, stands for the mpiexec of PALS. PBS's own `mpiexec` is neither.
        """
        if site.starter in ("srun", "mpiexec"):
            return [
                f"mpiexec -n {layout.tasks} --ppn {layout.tasks_per_node}",
                f"--depth={layout.cpus_per_task} --cpu-bind depth",
            ]
        if site.starter == "hydra":
            return [
                f"mpiexec.hydra -n {layout.tasks} -ppn {layout.tasks_per_node} -bind-to none"
            ]
        return None

    def mpirun_options(self) -> tuple[list[str], str, tuple[str, ...]]:
        """Return the option for the job's nodes and the prefix of PBS's variables."""
        return [], '--hostfile "$PBS_NODEFILE"', ("PBS_",)

    def prepare(self) -> list[str]:
        """Export the names of the nodes for all ranks: only the first node has the file of PBS."""
        nodes = "$(awk '!seen[$0]++' \"$PBS_NODEFILE\" | paste -sd,)"
        return [f"SCALESTUDY_NODES={nodes}", "export SCALESTUDY_NODES"]


def _filled_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _is_about_forgotten(line: str) -> bool:
    """Whether an error of PBS says only that it has forgotten a job."""
    words = line.lower()
    return any(phrase in words for phrase in FORGOTTEN)


def word(text: str, key: str, site: Site) -> str:
    """Return `text`, the value of a key of a site profile, if qsub reads it as one word.

    Raises:
        UserError: If it holds blanks or quotes, at which qsub would split it.
    """
    if re.search(r"[\s\"'\\#]", text):
        raise UserError(
            f"one plain word for `{key}` in the site profile {site.name}, as qsub requires",
            repr(text),
            "Remove blanks and quotes.",
        )
    return text


def _select(site: Site, layout: JobLayout) -> str:
    parts = [
        str(layout.nodes),
        f"ncpus={layout.cpus_per_node}",
        f"mpiprocs={layout.tasks_per_node}",
    ]
    if layout.gpus_per_node and site.gpu_request:
        request = gpu_request(site, layout)
        if site.gpu_request.startswith("-"):
            # The profile's default is a Slurm option, which PBS does not know.
            request = f"ngpus={layout.gpus_per_node}"
        parts.append(request)
    if memory := memory_per_node(site, layout):
        if not memory_bytes(memory):
            raise UserError(
                "an amount of memory in memory_per_node, since PBS has no word for all memory of a node",
                f'memory_per_node = "{memory}" in {site.name}',
                'Write the memory of a node that jobs may use, such as "180G", or remove the key.',
            )
        parts.append(f"mem={_memory(memory)}")
    if site.constraint:
        parts.append(word(site.constraint, "constraint", site))
    return ":".join(parts)


def _memory(text: str) -> str:
    """Convert "180G" to PBS's form, "180gb"; a bare number is in MiB."""
    number = text.rstrip("BbKkMmGgTt")
    unit = text[len(number) :].lower().removesuffix("b") or "m"
    return f"{number}{unit}b"
