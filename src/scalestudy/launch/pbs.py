"""PBS Professional and OpenPBS as a queue: client commands, what they print, and words of a job script.

States, substates and exit statuses are those of the PBS Professional Reference Guide ("States" and "Job
attributes") and of the Administrator's Guide ("Job exit status codes").
"""

import getpass
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from scalestudy.launch.queue.base import (
    UNKNOWN,
    JobView,
    MarkedJob,
    Queue,
    QueueRefused,
    QueueUnreachable,
    chunks,
    read_mark,
)
from scalestudy.launch.queue.launcher import QueueLauncher
from scalestudy.launch.queue.layout import JobLayout, memory_per_node
from scalestudy.launch.queue.quoting import job_name
from scalestudy.launch.queue.script import JobScript
from scalestudy.launch.queue.site import Site
from scalestudy.util.errors import UserError

FORGOTTEN = ("unknown job id", "job has finished", "unknown job array")
"""How PBS says of a job that there is nothing left to ask or to delete."""


class Pbs(Queue):
    """PBS Professional and OpenPBS, by their client commands."""

    name = "pbs"
    title = "PBS"
    submits = "qsub"
    cancels = ("qdel",)
    directive = "PBS"
    array_index = "PBS_ARRAY_INDEX"
    job_form = re.compile(r"(\d+(?:\[\d*\])?(?:\.[\w.-]+)?)", re.ASCII)
    reads_stdin = True
    warns = False
    unreachable = (
        "cannot connect to server", "connection refused", "connection timed out", "no route to host",
        "unknown host", "pbs_iff", "communication failure", "server shutting down",
    )  # fmt: skip

    def failed(self, program: str, code: int, output: str, errors: str) -> str:
        """Raise what a failed command means; that jobs are forgotten is no failure."""
        lines = [line.lower() for line in errors.splitlines() if line.strip()]
        if lines and all(any(phrase in line for phrase in FORGOTTEN) for line in lines):
            return output
        return super().failed(program, code, output, errors)

    # Jobs

    def ask(self, jobs: Sequence[str], *, cluster: str = "") -> Mapping[str, JobView]:
        """What PBS says of these jobs: of those that qstat has forgotten, what its history says."""
        views = self._views(jobs)
        forgotten = [job for job in jobs if job not in views]
        if forgotten:
            views |= self._views(forgotten, "-x")
        return {job: views.get(job) or JobView(job=job, state=UNKNOWN) for job in jobs}

    def _views(self, jobs: Sequence[str], *history: str) -> dict[str, JobView]:
        details = self._details([whole(job) for job in jobs], *history)
        return {job: job_view(job, details[job]) for job in jobs if job in details}

    def _details(self, jobs: Sequence[str], *history: str) -> dict[str, dict[str, Any]]:
        """What qstat prints of these jobs and their tasks, by id, a hundred jobs in a call.

        Without -E, qstat prints only the first of several jobs in JSON. One that is left out without a word
        of error was not answered about: it must not be taken for forgotten.
        """
        details: dict[str, dict[str, Any]] = {}
        for ids in chunks(list(dict.fromkeys(jobs))):
            code, output, errors = self.run("qstat", *history, "-E", "-t", "-f", "-F", "json", *ids)
            if code != 0:
                output = self.failed("qstat", code, output, errors)
            try:
                shown = parse_qstat(output)
            except ValueError as error:
                words = f"an answer that is not its JSON ({error})"
                raise QueueRefused(self.title, "qstat", words) from None
            named = {_number_of(job) for job in shown} | set(re.findall(r"\d+", errors))
            if left := [job for job in ids if _number_of(job) not in named]:
                raise QueueUnreachable(self.title, "qstat", f"no word of {len(left)} of {len(ids)} jobs")
            details |= shown
        return details

    def marked(self) -> list[MarkedJob]:
        """This user's jobs with a mark among their variables; of an array, its tasks."""
        jobs = []
        for job, fields in self._details(self.call("qselect", "-u", getpass.getuser()).split()).items():
            view, mark = job_view(job, fields), read_mark(str(fields.get("Variable_List", "")))
            if mark is not None and view.live and "[]" not in job:
                jobs.append(MarkedJob(job, whole(job), str(fields.get("Job_Name", "")), view.state, mark))
        return jobs

    def options(self, afterok: Sequence[str]) -> list[str]:
        """Options of qsub."""
        return ["-W", f"depend={':'.join(['afterok', *afterok])}"] if afterok else []

    def advice(self, words: str) -> str:
        """Where to look."""
        return "Correct what PBS names, in the site profile or the study; `qstat -Q` shows queues."

    def task(self, job: str, index: int) -> str:
        """Id of a task: "123[].server" -> "123[4].server"."""
        return job.replace("[]", f"[{index}]", 1)

    def in_words(self, reason: str) -> str:
        """The server's comment on a waiting job: "Not Running: Insufficient …" -> "insufficient …"."""
        if reason == "Dependency":
            return "waits for another job"
        if reason.startswith("Job Array Began"):
            return "waits for free nodes"
        words = reason.removeprefix("Not Running: ").removeprefix("Can Never Run: ").strip()
        return f"{words[:1].lower()}{words[1:]}" if words else "not yet considered"

    # Job scripts

    def directives(self, job: JobScript) -> list[str]:
        """Options of qsub, each whole.

        One chunk is what the job has of one node, and chunks are scattered over nodes.

        Raises:
            UserError: If the site names what PBS has not.
        """
        site, layout = job.site, job.layout
        if site.qos:
            raise UserError(
                "a site profile without qos, which PBS does not have",
                f'qos = "{site.qos}" in {site.name}',
                "Remove it; a queue is named by partition.",
            )
        output = job.output("")
        if re.search(r"[\s:%^]", output):  # to qsub, more than a path on this machine
            output = "/dev/null"
        lines = [
            f"-N {job_name(job.name)}",
            "-S /bin/bash",
            "-j oe",
            f"-o {output}",
            f"-l select={_select(site, layout)}",
            f"-l place=scatter{':excl' if site.exclusive else ''}",
            "-r y",
        ]
        if layout.seconds is not None:
            minutes = -(-layout.seconds // 60)
            lines.append(f"-l walltime={minutes // 60:02}:{minutes % 60:02}:00")
        lines += [f"-v SCALESTUDY_MARK={job.mark}"] if job.mark else []
        lines += [f"-q {word(site.partition, 'partition', site)}"] if site.partition else []
        lines += [f"-A {word(site.account, 'account', site)}"] if site.account else []
        lines += [f"-J 0-{len(job.runs) - 1}"] if len(job.runs) > 1 else []
        return [*lines, *site_options(site)]

    def launch_words(self, site: Site, layout: JobLayout) -> list[str] | None:
        """By mpiexec, which takes the nodes from PBS itself: as HPE's PALS has it, or MPICH's "hydra".

        "srun", which a profile names by default, is Slurm's: here it is PALS's. PBS's own `mpiexec` is
        neither.
        """
        if site.launcher in ("srun", "mpiexec"):
            return [
                f"mpiexec -n {layout.tasks} --ppn {layout.tasks_per_node}",
                f"--depth={layout.cpus_per_task} --cpu-bind depth",
            ]
        if site.launcher == "hydra":
            return [f"mpiexec.hydra -n {layout.tasks} -ppn {layout.tasks_per_node} -bind-to none"]
        return None

    def mpirun_words(self) -> tuple[list[str], str, tuple[str, ...]]:
        """With the nodes of the job, and the variables that name them."""
        return [], '--hostfile "$PBS_NODEFILE"', ("PBS_",)

    def everywhere(self, layout: JobLayout) -> str:
        """By pbsdsh."""
        return "pbsdsh -- /usr/bin/env " if layout.nodes > 1 else ""

    def prepare(self, job: JobScript) -> list[str]:
        """The nodes, for all ranks: only the first one has PBS's file."""
        nodes = "$(awk '!seen[$0]++' \"$PBS_NODEFILE\" | paste -sd,)"
        return [f"SCALESTUDY_NODES={nodes}", "export SCALESTUDY_NODES"]

    # Inside a job

    def own_job(self, variables: Mapping[str, str]) -> str:
        """By PBS_JOBID."""
        return variables.get("PBS_JOBID", "none")

    def own_nodes(self, variables: Mapping[str, str]) -> str:
        """By SCALESTUDY_NODES, which the script has set."""
        return variables.get("SCALESTUDY_NODES", "this machine")


PBS = QueueLauncher(Pbs())


STATES = {
    "Q": "PENDING", "W": "PENDING", "H": "PENDING", "T": "PENDING", "M": "PENDING",
    "R": "RUNNING", "B": "RUNNING", "E": "COMPLETING", "S": "SUSPENDED", "U": "SUSPENDED",
}  # fmt: skip
"""PBS's letters of jobs that are not over, in the common words."""
OVER = ("F", "X")
"""A job that is in the history; a task of an array that has ended."""
TERMINATED = 91
"""Substate of a job that was deleted."""
FINISHED = 92
"""Substate of a job that has ended; without an exit status, since a job it waited for did not succeed."""
SIGNALLED = 256
"""Exit statuses from here on are this plus the number of the signal that ended the job."""
STATUSES = {-20: "NODE_FAIL", -26: "OUT_OF_MEMORY", -27: "OUT_OF_MEMORY", -29: "TIMEOUT"}
"""Exit statuses by which PBS says itself why a job ended."""


def parse_qstat(text: str) -> dict[str, dict[str, Any]]:
    """Attributes of jobs by id from `qstat -t -f -F json`; the whole of an array is beside its tasks.

    Raises:
        ValueError: If it is not what qstat prints.
    """
    if not text.strip():
        return {}
    answer = json.loads(text, strict=False)
    jobs = answer.get("Jobs", {}) if isinstance(answer, dict) else None
    if not isinstance(jobs, dict):
        raise ValueError("no jobs")
    return {job: fields for job, fields in jobs.items() if isinstance(fields, dict)}


def _number_of(job: str) -> str:
    return re.split(r"\D", job, maxsplit=1)[0]


def whole(job: str) -> str:
    """Id of the whole of an array: "123[4].server" -> "123[].server"; other ids stay."""
    return re.sub(r"\[\d+\]", "[]", job, count=1)


def job_view(job: str, fields: dict[str, Any]) -> JobView:
    """A job by its attributes."""
    letter = str(fields.get("job_state", ""))
    if letter in OVER:
        return _ended(job, fields)
    state = STATES.get(letter, letter or "PENDING")
    waits = state == "PENDING"
    # A task of a held array is queued, and has the array's dependency.
    reason = "Dependency" if letter in "HQ" and fields.get("depend") else str(fields.get("comment", ""))
    start = fields.get("estimated", {}).get("start_time") if waits else fields.get("stime")
    if letter == "H":  # nobody can expect when somebody will release it
        start = None
    return JobView(
        job=job, state=state, reason=reason if waits else "", nodes=_nodes(fields), start=_time(start)
    )


def _ended(job: str, fields: dict[str, Any]) -> JobView:
    status = _number(fields.get("Exit_status"))
    substate = _number(fields.get("substate"))
    dependent = substate == FINISHED and status is None
    signal = _signal(status)
    if status in STATUSES:
        state = STATUSES[status]
    elif dependent or substate == TERMINATED:
        state = "CANCELLED"
    elif signal and _used_up(fields):
        state = "TIMEOUT"
    elif status == 0:
        state = "COMPLETED"
    else:
        state = "FAILED"
    code = status if status is not None and 0 <= status < SIGNALLED and not signal else None
    return JobView(
        job=job, state=state, nodes=_nodes(fields), start=_time(fields.get("stime")), exit_code=code,
        signal=signal if state == "FAILED" else None,
        reason="Dependency" if dependent else "",
    )  # fmt: skip


def _signal(status: int | None) -> int | None:
    """The signal that ended a job or, as shells have it, the last command of its script."""
    if status is None or status <= 128 or 192 < status <= SIGNALLED:
        return None
    return status - (SIGNALLED if status > SIGNALLED else 128)


def _used_up(fields: dict[str, Any]) -> bool:
    """Whether a job has had all the time that it asked for."""
    used = _seconds(fields.get("resources_used", {}).get("walltime"))
    limit = _seconds(fields.get("Resource_List", {}).get("walltime"))
    return used is not None and limit is not None and used >= limit


def _nodes(fields: dict[str, Any]) -> str:
    """Hosts of "n1/0*4+n2/0*4", each once: "n1,n2"."""
    places = [place.partition("/")[0] for place in str(fields.get("exec_host", "")).split("+")]
    return ",".join(dict.fromkeys(place for place in places if place))


def _time(text: object) -> str:
    """ISO 8601 of "Tue Oct 11 08:13:45 2022"; "" for what is none."""
    try:
        return datetime.strptime(str(text), "%a %b %d %H:%M:%S %Y").isoformat()
    except ValueError:
        return ""


def _seconds(text: object) -> int | None:
    match = re.fullmatch(r"(?:(\d+):)?(\d+):(\d+)", str(text))
    return None if match is None else (int(match[1] or 0) * 60 + int(match[2])) * 60 + int(match[3])


def _number(value: object) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None


KEYS = {"q": "partition", "A": "account", "v": "env", "t": "sweep"}
COMPUTED = "JNSoejrCIfzX"
"""Letters of qsub that follow from the points, or that the job script relies on."""
FLAGS = "hV"
"""Letters that take no value."""
RESOURCES = (
    "select", "place", "walltime", "nodes", "ncpus", "mpiprocs", "ompthreads", "ngpus", "mem", "min_walltime",
    "max_walltime",
)  # fmt: skip
"""What -l may not name."""
ATTRIBUTES = ("depend", "block", "array_indices_submitted", "interactive", "run_count")
"""What -W may not name."""


def site_options(site: Site) -> list[str]:
    """The profile's `directives`, each "-x" or "-x value".

    Raises:
        UserError: If one of them would change what the job asks for, or is more than one option.
    """
    return [_option(text.strip(), site) for text in site.directives]


def _option(text: str, site: Site) -> str:
    match = re.fullmatch(r"-([A-Za-z])\s*(.*)", text)
    letter, value = match.groups() if match else ("", "")
    named = {part.partition("=")[0] for part in value.split(",")}
    action = ""
    if not letter or (letter in FLAGS and value):
        action = 'Write each option as a text of its own, "-l name=value".'
    elif letter in KEYS:
        action = f"Write it as `{KEYS[letter]}`."
    elif letter in COMPUTED or named & set({"l": RESOURCES, "W": ATTRIBUTES}.get(letter, ())):
        action = "Remove it: the job's own value follows from the point."
    if action:
        received = f"{text!r} in the site profile {site.name}"
        raise UserError("directives that leave a job's layout alone", received, action)
    return f"-{letter} {word(value, 'directives', site)}".rstrip()


def word(text: str, key: str, site: Site) -> str:
    """A value that qsub reads as one word.

    Raises:
        UserError: If it holds blanks or quotes, at which qsub would split it.
    """
    if re.search(r"[\s\"'\\#]", text):
        raise UserError(
            f"one plain word for `{key}` of the site profile {site.name}, as qsub takes it",
            repr(text),
            "Write it without blanks and quotes.",
        )
    return text


def _select(site: Site, layout: JobLayout) -> str:
    parts = [
        str(layout.nodes),
        f"ncpus={layout.cpus_per_node}",
        f"mpiprocs={layout.tasks_per_node}",
    ]
    if layout.gpus_per_node and site.gpu_request:
        # Slurm's form is the profile's default, and says nothing to PBS.
        request = "ngpus={gpus}" if site.gpu_request.startswith("-") else site.gpu_request
        parts.append(request.replace("{gpus}", str(layout.gpus_per_node)))
    memory = memory_per_node(site, layout)
    if memory:
        parts.append(f"mem={_memory(memory)}")
    if site.constraint:
        parts.append(word(site.constraint, "constraint", site))
    return ":".join(parts)


def _memory(text: str) -> str:
    """PBS's form of "180G" (and of a bare number, which is in MiB): "180gb"."""
    number = text.rstrip("BbKkMmGgTt")
    unit = text[len(number) :].lower().removesuffix("b") or "m"
    return f"{number}{unit}b"
