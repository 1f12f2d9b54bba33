"""PBS Professional and OpenPBS as a queue: client commands, what they print, and words of a job script.

States, substates and exit statuses are those of the PBS Professional Reference Guide ("States" and "Job
attributes") and of the Administrator's Guide ("Job exit status codes").
"""

import getpass
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

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
from scalestudy.launch.queue.layout import Layout, memory_per_node
from scalestudy.launch.queue.script import PASSED, WORKER, Job, job_name, mpirun_lines, output_pattern
from scalestudy.launch.queue.site import Site, clock, filled, is_slurms
from scalestudy.launch.queue.submit import LARGEST_ARRAY, Batch
from scalestudy.study.strategies import Traits
from scalestudy.util.errors import UserError

T = TypeVar("T")
PLAIN_PATH = re.compile(r"[^\s:%^]+")
"""What qsub takes for a path on this machine and for nothing else."""
FORGOTTEN = ("unknown job id", "job has finished", "unknown job array")
"""How PBS says of a job that there is nothing left to ask or to delete."""


class Pbs(Queue):
    """PBS Professional and OpenPBS, by their client commands."""

    name = "pbs"
    title = "PBS"
    submits = "qsub"
    directive = "PBS"
    array_index = "PBS_ARRAY_INDEX"
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
        views: dict[str, JobView] = {}
        for text in self._details([whole(job) for job in jobs], *history):
            views |= self._parsed(parse_qstat, text)
        return {job: views[job] for job in jobs if job in views}

    def _details(self, jobs: Sequence[str], *history: str) -> list[str]:
        """What qstat prints of these jobs, a hundred in a call.

        Without -E, qstat prints only the first of several jobs in JSON. One that is left out without a word
        of error was not answered about: it must not be taken for forgotten.
        """
        texts = []
        for ids in chunks(list(dict.fromkeys(jobs))):
            code, output, errors = self.run("qstat", *history, "-E", "-t", "-f", "-F", "json", *ids)
            texts.append(output if code == 0 else self.failed("qstat", code, output, errors))
            shown = {_number_of(job) for job in self._parsed(_jobs, output)}
            named = set(re.findall(r"\d+", errors))
            if left := [job for job in ids if _number_of(job) not in shown | named]:
                raise QueueUnreachable(self.title, "qstat", f"no word of {len(left)} of {len(ids)} jobs")
        return texts

    def _parsed(self, parse: Callable[[str], T], text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise QueueRefused(self.title, "qstat", f"an answer that is not its JSON ({error})") from None

    def marked(self) -> list[MarkedJob]:
        """This user's jobs with a mark among their variables."""
        ids = self.call("qselect", "-u", getpass.getuser()).split()
        return [job for text in self._details(ids) for job in self._parsed(parse_marked, text)]

    def largest_array(self) -> int:
        """Fewer than PBS takes as it comes (max_array_size: 10000)."""
        return LARGEST_ARRAY

    def options(self, batch: Batch, jobs: Sequence[str]) -> list[str]:
        """Options of qsub for a batch."""
        if not batch.afterok:
            return []
        return ["-W", "depend=" + ":".join(["afterok", *(jobs[index] for index in batch.afterok)])]

    def submit(self, script: Path, options: Sequence[str]) -> str:
        """Call qsub."""
        try:
            printed = self.call("qsub", *options, str(script))
        except QueueRefused as refused:
            action = "Correct what PBS names, in the site profile or the study; `qstat -Q` shows queues."
            raise QueueRefused(self.title, "qsub", refused.words, action) from None
        job = parse_submitted(printed)
        if job is None:
            raise QueueRefused(self.title, "qsub", printed.strip() or "nothing, not even the id of a job")
        return job

    def task(self, job: str, index: int) -> str:
        """Id of a task: "123[].server" -> "123[4].server"."""
        return job.replace("[]", f"[{index}]", 1)

    def cancel(self, jobs: Sequence[str]) -> None:
        """Call qdel; what has ended is passed over."""
        for ids in chunks(list(jobs)):
            self.call("qdel", *ids)

    def in_words(self, reason: str) -> str:
        """What a waiting job waits for."""
        return reason_in_words(reason)

    # Job scripts

    def directives(self, job: Job) -> list[str]:
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
        output = output_pattern(job, "")
        lines = [
            f"-N {job_name(job.name)}",
            "-S /bin/bash",
            "-j oe",
            f"-o {output if PLAIN_PATH.fullmatch(output) else '/dev/null'}",
            f"-l select={_select(site, layout)}",
            f"-l place=scatter{':excl' if site.exclusive else ''}",
            "-r y",
        ]
        lines += [f"-l walltime={clock(layout.seconds)}"] if layout.seconds is not None else []
        lines += [f"-v SCALESTUDY_MARK={job.mark}"] if job.mark else []
        lines += [f"-q {word(site.partition, 'partition', site)}"] if site.partition else []
        lines += [f"-A {word(site.account, 'account', site)}"] if site.account else []
        lines += [f"-J 0-{len(job.runs) - 1}"] if len(job.runs) > 1 else []
        return [*lines, *site_options(site)]

    def start_lines(
        self, site: Site, layout: Layout, strategy: Traits, inside: Sequence[str] = ()
    ) -> list[str]:
        """Lines of bash; the last are the words that start all ranks.

        "srun", which a profile names by default, is Slurm's: here it is `mpiexec`, as HPE's PALS has it,
        which takes the nodes from PBS itself. "hydra" is MPICH's and Intel MPI's; PBS's own `mpiexec` is
        neither.

        Raises:
            UserError: If a container is to be entered by srun.
        """
        if inside:
            raise UserError(
                'another container.runtime than "pyxis", which is Slurm\'s',
                f"it in the site profile {site.name}",
                'Write runtime = "apptainer", with an image of its own.',
            )
        if strategy.one_process:
            return [WORKER]
        start = f'"${{launch[@]}}" {WORKER}'
        if site.launcher in ("srun", "mpiexec") or (
            site.launcher == "horovodrun" and not strategy.started_by(site.launcher)
        ):
            return [
                "launch=(",
                f"  mpiexec -n {layout.tasks} --ppn {layout.tasks_per_node}",
                f"  --depth={layout.cpus_per_task} --cpu-bind depth",
                ")",
                start,
            ]
        if site.launcher == "hydra":
            words = f"mpiexec.hydra -n {layout.tasks} -ppn {layout.tasks_per_node} -bind-to none"
            return ["launch=(", f"  {words}", ")", start]
        if site.launcher == "mpirun":
            passed = (*PASSED, "PBS_", *site.env, *site.proxies)
            return mpirun_lines(layout, passed, '--hostfile "$PBS_NODEFILE"', modules=bool(site.modules))
        if site.launcher == "horovodrun":
            return [
                f'slots=":{layout.tasks_per_node}"',
                'hosts=$(sed "s/,/$slots,/g;s/$/$slots/" <<<"$SCALESTUDY_NODES")',
                "launch=(",
                f'  horovodrun -np {layout.tasks} -H "$hosts"',
                ")",
                start,
            ]
        return [f"{site.launcher} {WORKER}"]

    def everywhere(self, layout: Layout) -> str:
        """By pbsdsh."""
        return "pbsdsh -- /usr/bin/env " if layout.nodes > 1 else ""

    def prepare(self, job: Job) -> list[str]:
        """The nodes, and whether other jobs may share them, by what the job asks for."""
        cores = job.layout.cpus_per_task * job.layout.tasks_per_node
        alone = job.site.exclusive or cores >= job.site.cpus_per_node
        return [
            "# The nodes, for all ranks: only the first one has PBS's file",
            "SCALESTUDY_NODES=$(awk '!seen[$0]++' \"$PBS_NODEFILE\" | paste -sd,)",
            f"export SCALESTUDY_NODES SCALESTUDY_NODES_SHARED={'no' if alone else 'yes'}",
        ]

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
_ID = re.compile(r"(\d+)(\[\d*\])?((?:\.[\w.-]+)?)", re.ASCII)


def parse_qstat(text: str) -> dict[str, JobView]:
    """Jobs by id from `qstat -t -f -F json`; the whole of an array is among them beside its tasks.

    Raises:
        ValueError: If it is not what qstat prints.
    """
    return {job: _view(job, fields) for job, fields in _jobs(text).items()}


def parse_marked(text: str) -> list[MarkedJob]:
    """Jobs from the same that are not over and carry a mark; of an array, its tasks.

    Raises:
        ValueError: If it is not what qstat prints.
    """
    found = []
    for job, fields in _jobs(text).items():
        view, mark = _view(job, fields), read_mark(str(fields.get("Variable_List", "")))
        if mark is not None and view.live and "[]" not in job:
            found.append(MarkedJob(job, whole(job), str(fields.get("Job_Name", "")), view.state, mark))
    return found


def _jobs(text: str) -> dict[str, dict[str, Any]]:
    if not text.strip():
        return {}
    told = json.loads(text, strict=False)
    jobs = told.get("Jobs", {}) if isinstance(told, dict) else None
    if not isinstance(jobs, dict):
        raise ValueError("no jobs")
    return {job: fields for job, fields in jobs.items() if isinstance(fields, dict)}


def parse_submitted(text: str) -> str | None:
    """The id that qsub printed, "123.server" or "123[].server", whatever a site prints around it."""
    for line in reversed(text.splitlines()):
        if _ID.fullmatch(line.strip()):
            return line.strip()
    return None


def _number_of(job: str) -> str:
    return re.split(r"\D", job, maxsplit=1)[0]


def whole(job: str) -> str:
    """Id of the whole of an array: "123[4].server" -> "123[].server"; other ids stay."""
    return re.sub(r"\[\d+\]", "[]", job, count=1)


def _view(job: str, fields: dict[str, Any]) -> JobView:
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


def reason_in_words(reason: str) -> str:
    """The server's comment on a waiting job: "Not Running: Insufficient …" -> "insufficient …"."""
    if reason == "Dependency":
        return "waits for another job"
    if reason.startswith("Job Array Began"):
        return "waits for free nodes"
    words = reason.removeprefix("Not Running: ").removeprefix("Can Never Run: ").strip()
    return f"{words[:1].lower()}{words[1:]}" if words else "not yet considered"


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


def _option(text: str, site: Site) -> str:
    found = re.fullmatch(r"-([A-Za-z])\s*(.*)", text)
    if found is None or (found[1] in FLAGS and found[2]):
        raise _refused_option(site, text, 'Write each option as a text of its own, "-l name=value".')
    letter, value = found.groups()
    if letter in KEYS:
        raise _refused_option(site, text, f"Write it as `{KEYS[letter]}`.")
    named = {part.partition("=")[0] for part in value.split(",")}
    if (
        letter in COMPUTED
        or (letter == "l" and named & set(RESOURCES))
        or (letter == "W" and named & set(ATTRIBUTES))
    ):
        raise _refused_option(site, text, "Remove it: the job's own value follows from the point.")
    return f"-{letter} {word(value, 'directives', site)}".rstrip()


def _refused_option(site: Site, text: str, action: str) -> UserError:
    return UserError(
        "directives that leave a job's layout alone", f"{text!r} in the site profile {site.name}", action
    )


def _select(site: Site, layout: Layout) -> str:
    parts = [
        str(layout.nodes),
        f"ncpus={layout.cpus_per_task * layout.tasks_per_node}",
        f"mpiprocs={layout.tasks_per_node}",
    ]
    if layout.gpus_per_node and site.gpu_request:
        # Slurm's form is the profile's default, and says nothing to PBS.
        request = "ngpus={gpus}" if is_slurms(site.gpu_request) else site.gpu_request
        per_task, each = layout.gpus_per_task, layout.tasks_per_node
        parts.append(filled(request, per_task=per_task, tasks=layout.tasks, tasks_per_node=each))
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
