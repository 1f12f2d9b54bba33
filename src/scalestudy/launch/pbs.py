"""PBS Professional and OpenPBS as a queue: client commands, what they print, and words of a job script."""

import getpass
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from scalestudy.errors import UserError
from scalestudy.launch.queue.base import (
    UNKNOWN,
    JobView,
    MarkedJob,
    ProgramAbsent,
    ProgramSilent,
    QueueAbsent,
    QueueRefused,
    QueueSilent,
    answer,
    read_mark,
    time_limit,
)
from scalestudy.launch.queue.launcher import QueueLauncher
from scalestudy.launch.queue.layout import Layout, memory_per_node
from scalestudy.launch.queue.script import PASSED, WORKER, Dialect, Job, job_name, mpirun_lines, own_words
from scalestudy.launch.queue.site import Site, clock, filled, is_slurms
from scalestudy.launch.queue.submit import LARGEST_ARRAY, Batch
from scalestudy.study.strategies import Traits

TIMEOUT = 20.0
"""Seconds that a command may take; SCALESTUDY_PBS_TIMEOUT says otherwise."""
TIMEOUT_VARIABLE = "SCALESTUDY_PBS_TIMEOUT"
UNREACHABLE = (
    "cannot connect to server",
    "connection refused",
    "connection timed out",
    "no route to host",
    "unknown host",
    "pbs_iff",
    "communication failure",
    "server shutting down",
)
FORGOTTEN = ("unknown job id", "job has finished", "unknown job array")
"""How PBS says of a job that there is nothing left to ask or to delete."""


class PbsSilent(QueueSilent):
    """PBS gave no answer in time; `reason` says how, in one line."""

    def __init__(self, command: str, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"an answer of PBS to `{command}`",
            reason,
            f"Try again later; {TIMEOUT_VARIABLE}=SECONDS sets how long to wait.",
        )


class PbsRefused(QueueRefused):
    """PBS said no; `words` are its own."""

    def __init__(self, command: str, words: str) -> None:
        self.words = words
        if command == "qsub":
            action = "Correct what PBS names, in the site profile or the study; `qstat -Q` shows queues."
            super().__init__("a job that PBS takes (`qsub`)", words, action)
        else:
            super().__init__(f"a `{command}` that PBS takes", words, "Correct what PBS names.")


class PbsAbsent(QueueAbsent):
    """This machine has no PBS."""

    def __init__(self, program: str) -> None:
        super().__init__(
            f"the commands of PBS on this machine ({program})",
            "none in PATH",
            'Log in to the cluster (some want `module load pbs`), or set launch.on = "local".',
        )


def ask(program: str, *arguments: str) -> str:
    """What a client command prints. That some jobs are forgotten is no failure.

    Args:
        program: "qsub", "qstat" or "qdel".
        arguments: Its arguments.

    Raises:
        PbsSilent: If it took too long, or could not reach the server.
        PbsRefused: If it failed, with PBS's own words.
        PbsAbsent: If there is no such command.
    """
    limit = time_limit(os.environ, TIMEOUT_VARIABLE, TIMEOUT)
    try:
        code, output, errors = answer([program, *arguments], os.environ | {"LC_ALL": "C"}, limit)
    except ProgramAbsent:
        raise PbsAbsent(program) from None
    except ProgramSilent:
        raise PbsSilent(program, f"none within {limit:g} s") from None
    if code == 0:
        return output
    lines = [line.strip().removeprefix(f"{program}: ").rstrip(".") for line in errors.splitlines()]
    lines = [line for line in lines if line]
    if any(phrase in errors.lower() for phrase in UNREACHABLE):
        raise PbsSilent(program, "; ".join(dict.fromkeys(lines)))
    if lines and all(any(phrase in line.lower() for phrase in FORGOTTEN) for line in lines):
        return output
    raise PbsRefused(program, "; ".join(dict.fromkeys(lines)) or f"exit code {code}, and no word why")


STATES = {
    "Q": "PENDING", "W": "PENDING", "H": "PENDING", "T": "PENDING", "M": "PENDING",
    "R": "RUNNING", "B": "RUNNING", "E": "COMPLETING", "S": "SUSPENDED", "U": "SUSPENDED",
}  # fmt: skip
"""PBS's letters of jobs that are not over, in the common words."""
OVER = ("F", "X")
"""A job that is in the history; a task of an array that has ended."""
TERMINATED = 91
"""Substate of a job that was deleted."""
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


def task(job: str, index: int) -> str:
    """Id of a task of an array: "123[].server" -> "123[4].server"."""
    return job.replace("[]", f"[{index}]", 1)


def whole(job: str) -> str:
    """Id of the whole of an array: "123[4].server" -> "123[].server"; other ids stay."""
    return re.sub(r"\[\d+\]", "[]", job, count=1)


def _view(job: str, fields: dict[str, Any]) -> JobView:
    letter = str(fields.get("job_state", ""))
    if letter in OVER:
        return _ended(job, fields)
    state = STATES.get(letter, letter or "PENDING")
    waits = state == "PENDING"
    reason = "Dependency" if letter == "H" and fields.get("depend") else str(fields.get("comment", ""))
    start = fields.get("estimated", {}).get("start_time") if waits else fields.get("stime")
    if letter == "H":  # nobody can expect when somebody will release it
        start = None
    return JobView(
        job=job, state=state, reason=reason if waits else "", nodes=_nodes(fields), start=_time(start)
    )


def _ended(job: str, fields: dict[str, Any]) -> JobView:
    status = _number(fields.get("Exit_status"))
    signal = status - SIGNALLED if status is not None and status > SIGNALLED else None
    if status in STATUSES:
        state = STATUSES[status]
    elif _number(fields.get("substate")) == TERMINATED:
        state = "CANCELLED"
    elif signal and _used_up(fields):
        state = "TIMEOUT"
    elif status == 0:
        state = "COMPLETED"
    else:
        state = "FAILED"
    code = status if status is not None and 0 <= status < SIGNALLED else None
    return JobView(
        job=job, state=state, nodes=_nodes(fields), start=_time(fields.get("stime")), exit_code=code,
        signal=signal if state == "FAILED" else None,
    )  # fmt: skip


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


def in_words(reason: str) -> str:
    """The server's comment on a waiting job: "Not Running: Insufficient …" -> "insufficient …"."""
    if reason == "Dependency":
        return "waits for another job"
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


def own_options(site: Site) -> list[str]:
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


def start_lines(site: Site, layout: Layout, strategy: Traits, inside: Sequence[str] = ()) -> list[str]:
    """Lines of bash; the last one is the command, to be put into the background.

    "srun", which a profile names by default, is Slurm's: here it is `mpiexec`, as HPE's PALS and MPICH have
    it, which take the nodes from PBS themselves.

    Args:
        site: Names the launcher.
        layout: How many processes, and where.
        strategy: What it is.
        inside: Words of srun by which its tasks are in a container; PBS has no srun.

    Raises:
        UserError: If there are any.
    """
    if inside:
        raise UserError(
            'another container.runtime than "pyxis", which is Slurm\'s',
            f"it in the site profile {site.name}",
            'Write runtime = "apptainer", with an image of its own.',
        )  # fmt: skip
    if strategy.one_process:
        return [WORKER]
    if site.launcher in ("srun", "mpiexec") or (
        site.launcher == "horovodrun" and strategy.meets != "horovod"
    ):
        return [
            "launch=(",
            f"  mpiexec -n {layout.tasks} --ppn {layout.tasks_per_node}",
            f"  --depth={layout.cpus_per_task} --cpu-bind depth",
            ")",
            f'"${{launch[@]}}" {WORKER}',
        ]
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
            f'"${{launch[@]}}" {WORKER}',
        ]
    return own_words(site)


def directives(job: Job) -> list[str]:
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
    lines = [
        f"-N {job_name(job.name)}",
        "-S /bin/bash",
        "-j oe",
        "-o /dev/null",  # the script opens its log itself
        f"-l select={_select(site, layout)}",
        f"-l place=scatter{':excl' if site.exclusive else ''}",
        "-r y",
    ]
    lines += [f"-l walltime={clock(layout.seconds)}"] if layout.seconds is not None else []
    lines += [f"-v SCALESTUDY_MARK={job.mark}"] if job.mark else []
    lines += [f"-q {word(site.partition, 'partition', site)}"] if site.partition else []
    lines += [f"-A {word(site.account, 'account', site)}"] if site.account else []
    if len(job.runs) > 1:
        throttle = f"%{job.throttle}" if job.throttle else ""
        lines.append(f"-J 0-{len(job.runs) - 1}{throttle}")
    return [*lines, *own_options(site)]


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


def _shared(job: Job) -> list[str]:
    """A line of bash that sets SCALESTUDY_NODES_SHARED: PBS is not asked, what the job asks for says it."""
    cores = job.layout.cpus_per_task * job.layout.tasks_per_node
    alone = job.site.exclusive or cores >= job.site.cpus_per_node
    return [f"export SCALESTUDY_NODES_SHARED={'no' if alone else 'yes'}"]


def _everywhere(layout: Layout) -> str:
    return "pbsdsh -- /usr/bin/env " if layout.nodes > 1 else ""


DIALECT = Dialect(
    mark="PBS", program="qsub", directives=directives, start_lines=start_lines, everywhere=_everywhere,
    job="PBS_JOBID", own="${PBS_JOBID:-none}", shared=_shared, nodes="SCALESTUDY_NODES",
    task="PBS_ARRAY_INDEX", prepare=(
        "# The nodes, for all ranks: only the first one has PBS's file",
        'SCALESTUDY_NODES=$(awk \'!seen[$0]++\' "$PBS_NODEFILE" | paste -sd,)',
        "export SCALESTUDY_NODES",
    ), piped=True, warns=False,
)  # fmt: skip


T = TypeVar("T")
MOST = 100
"""Ids in one call: they fit a command line, and keep the server's answer small."""


class Pbs:
    """PBS Professional and OpenPBS, by their client commands."""

    name = "pbs"
    title = "PBS"
    program = "qsub"
    dialect = DIALECT

    def ask(self, jobs: Sequence[str], *, cluster: str = "") -> Mapping[str, JobView]:
        """What PBS says of these jobs: of those that qstat has forgotten, what its history says.

        Raises:
            PbsSilent, PbsRefused, PbsAbsent: If it does not.
        """
        found = _qstat(jobs)
        forgotten = [job for job in jobs if job not in found]
        if forgotten:
            found |= _qstat(forgotten, "-x")
        return {job: found.get(job) or JobView(job=job, state=UNKNOWN) for job in jobs}

    def marked(self) -> list[MarkedJob]:
        """This user's jobs with a mark among their variables.

        Raises:
            PbsSilent, PbsRefused, PbsAbsent: If PBS does not say.
        """
        ids = ask("qselect", "-u", getpass.getuser()).split()
        return [each for text in _details(ids) for each in _parsed(parse_marked, text)]

    def cluster_name(self) -> str:
        """Nothing: the ids of jobs name their server."""
        return ""

    def largest_array(self) -> int:
        """Fewer than PBS takes as it comes (max_array_size: 10000)."""
        return LARGEST_ARRAY

    def options(self, batch: Batch, jobs: Sequence[str]) -> list[str]:
        """Options of qsub for a batch."""
        kinds = (("afterok", batch.afterok), ("afterany", batch.afterany))
        conditions = [":".join([kind, *(jobs[index] for index in after)]) for kind, after in kinds if after]
        return ["-W", f"depend={','.join(conditions)}"] if conditions else []

    def submit(self, script: Path, options: Sequence[str]) -> str:
        """Call qsub.

        Raises:
            PbsSilent, PbsRefused, PbsAbsent: If it does not take the script.
        """
        printed = ask("qsub", *options, str(script))
        job = parse_submitted(printed)
        if job is None:
            raise PbsRefused("qsub", printed.strip() or "nothing, not even the id of a job")
        return job

    def task(self, job: str, index: int) -> str:
        """Id of a task: "123[4].server"."""
        return task(job, index)

    def cancel(self, jobs: Sequence[str]) -> None:
        """Call qdel; what has ended is passed over."""
        for start in range(0, len(jobs), MOST):
            ask("qdel", *jobs[start : start + MOST])

    def in_words(self, reason: str) -> str:
        """What a waiting job waits for."""
        return in_words(reason)


def _qstat(jobs: Sequence[str], *history: str) -> dict[str, JobView]:
    found: dict[str, JobView] = {}
    for text in _details([whole(job) for job in jobs], *history):
        found |= _parsed(parse_qstat, text)
    return {job: found[job] for job in jobs if job in found}


def _details(jobs: Sequence[str], *history: str) -> Iterator[str]:
    ids = list(dict.fromkeys(jobs))
    for start in range(0, len(ids), MOST):
        yield ask("qstat", *history, "-t", "-f", "-F", "json", *ids[start : start + MOST])


def _parsed(parse: Callable[[str], T], text: str) -> T:
    try:
        return parse(text)
    except ValueError as error:
        raise PbsRefused("qstat", f"an answer that is not its JSON ({error})") from None


PBS = QueueLauncher(Pbs())
