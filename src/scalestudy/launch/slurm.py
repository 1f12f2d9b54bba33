"""Slurm as a queue: its client commands, what they print, and its words in a job script."""

import getpass
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scalestudy.launch.queue.base import (
    UNKNOWN,
    JobView,
    MarkedJob,
    Queue,
    QueueAbsent,
    QueueRefused,
    QueueUnreachable,
    chunks,
    read_mark,
)
from scalestudy.launch.queue.launcher import QueueLauncher
from scalestudy.launch.queue.layout import Layout, memory_per_node
from scalestudy.launch.queue.script import PASSED, WORKER, Job, job_name, mpirun_lines, output_pattern
from scalestudy.launch.queue.site import Site, filled, notation, seconds
from scalestudy.launch.queue.submit import LARGEST_ARRAY, Batch
from scalestudy.study.strategies import Traits
from scalestudy.util.errors import UserError


class Slurm(Queue):
    """Slurm, by its client commands.

    Without a controller they wait for minutes, and what they print depends on the language and on variables.
    """

    name = "slurm"
    title = "Slurm"
    submits = "sbatch"
    directive = "SBATCH"
    array_index = "SLURM_ARRAY_TASK_ID"
    requeues = True
    unreachable = (
        "unable to contact slurm controller", "socket timed out", "connection refused",
        "connection timed out", "communication connection failure", "transport endpoint is not connected",
        "zero bytes were transmitted", "no route to host", "problem talking to the database",
        "backup controller in standby mode", "plugin initialization failed",
    )  # fmt: skip

    def client_environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The user's variables, without those that would change what is printed."""
        return {key: value for key, value in environment.items() if not key.startswith(FORMATS)}

    def submit_environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Those without the allocation that the user may be in, and without options of sbatch.

        SLURM_* of salloc or of a notebook's job would reach the new job and its srun; SBATCH_* would overrule
        the site profile.
        """
        return {
            key: value
            for key, value in environment.items()
            if key in CLIENT_VARIABLES or not key.startswith(("SLURM_", "SBATCH_"))
        }

    def failed(self, program: str, code: int, output: str, errors: str) -> str:
        """Raise what a failed command means: without a slurm.conf there is no cluster."""
        if "configuration source" in (errors or output):
            raise QueueAbsent(self.title, program, "commands that know of no cluster (no slurm.conf)")
        return super().failed(program, code, output, errors)

    # Jobs

    def ask(self, jobs: Sequence[str], *, cluster: str = "") -> dict[str, JobView]:
        """What Slurm says of these jobs.

        One squeue for a hundred jobs; how ended ones ended is asked of sacct in the same way, or, where there
        is no accounting, of `scontrol show job` as long as Slurm remembers (MinJobAge).

        Raises:
            QueueUnreachable: If Slurm does not answer, or if this machine talks to another cluster.
            QueueRefused: If Slurm refuses to say.
            QueueAbsent: If this machine has no Slurm.
        """
        views = self._in_queue(jobs)
        over = [job for job in jobs if job not in views or views[job].ended]
        if not over:
            return views
        records = self._accounted(over, [job for job in over if job in views])
        for job in over:
            view = records.get(job)
            if view is None:
                continue
            if job not in views:
                # Of another user's job squeue may be silent (PrivateData) where accounting is not.
                views[job] = view
            elif view.ended:  # accounting lags behind the controller
                views[job] = view.model_copy(update={"reason": views[job].reason})
        lost = [job for job in jobs if job not in views]
        if lost and cluster and (here := self.cluster_name()) != cluster:
            why = f"this machine asks the cluster {here}, the jobs are on {cluster}"
            raise QueueUnreachable(self.title, "squeue", why)
        return views | {job: JobView(job=job, state=UNKNOWN) for job in lost}

    def _in_queue(self, jobs: Sequence[str]) -> dict[str, JobView]:
        views: dict[str, JobView] = {}
        for ids in chunks(_array_ids(jobs)):
            try:
                text = self.call("squeue", "-h", "-r", "-t", "all", "-o", SQUEUE_FORMAT, "-j", ",".join(ids))
            except QueueRefused as refused:
                # The only job asked for is forgotten; of several, squeue passes over the forgotten ones.
                if "invalid job id" not in refused.words.lower():
                    raise
            else:
                views |= parse_squeue(text)
        return {job: views[job] for job in jobs if job in views}

    def _accounted(self, jobs: Sequence[str], remembered: Sequence[str]) -> dict[str, JobView]:
        """What sacct says of these jobs; of those whose end it has not, what the controller remembers."""
        views: dict[str, JobView] = {}
        try:
            for ids in chunks(_array_ids(jobs)):
                views |= parse_sacct(
                    self.call("sacct", "-P", "-n", "-X", "-o", SACCT_FORMAT, "-j", ",".join(ids))
                )
        except (QueueRefused, QueueUnreachable):
            pass  # No accounting here, or it is down: the controller knows the younger ones.
        for job in _array_ids([job for job in remembered if job not in views or not views[job].ended]):
            try:
                shown = parse_scontrol(self.call("scontrol", "show", "job", "-o", job))
            except QueueRefused:
                continue
            views |= {task: view for task, view in shown.items() if task not in views or view.ended}
        return views

    def marked(self) -> list[MarkedJob]:
        """This user's jobs that are not over and carry a mark in their comment."""
        return parse_marked(self.call("squeue", "-h", "-r", "-u", getpass.getuser(), "-o", MARKED_FORMAT))

    def cluster_name(self) -> str:
        """Slurm's name of the cluster that this machine talks to; "" if it does not say."""
        try:
            return self.configuration().get("ClusterName", "")
        except QueueRefused:
            return ""

    def configuration(self) -> dict[str, str]:
        """Slurm's settings by their names."""
        return parse_configuration(self.call("scontrol", "show", "config"))

    def largest_array(self) -> int:
        """By slurmctld's MaxArraySize and max_array_tasks."""
        return parse_array_limit(self.configuration())

    def accounts(self) -> list[str]:
        """Accounts that the user may charge; empty where there is no accounting, or it does not answer."""
        user = f"user={getpass.getuser()}"
        try:
            text = self.call("sacctmgr", "-n", "-P", "show", "assoc", user, "format=Account")
        except (QueueUnreachable, QueueRefused, QueueAbsent):
            return []
        return [line.strip() for line in text.splitlines() if line.strip()]

    def partitions(self) -> list["Nodes"]:
        """The nodes of all partitions."""
        return parse_sinfo(self.call("sinfo", "-h", "-e", "-o", SINFO_FORMAT))

    def options(self, batch: Batch, jobs: Sequence[str]) -> list[str]:
        """Options of sbatch for a batch."""
        if not batch.afterok:
            return ["--parsable"]
        after = ":".join(["afterok", *(jobs[index] for index in batch.afterok)])
        return ["--parsable", f"--dependency={after}", "--kill-on-invalid-dep=yes"]

    def submit(self, script: Path, options: Sequence[str]) -> str:
        """Call sbatch."""
        try:
            printed = self.call(
                "sbatch", *options, str(script), environment=self.submit_environment(os.environ)
            )
        except QueueRefused as refused:
            raise explained(refused.words, directives_of(script)) from None
        job = parse_submitted(printed)
        if job is None:
            raise QueueRefused(self.title, "sbatch", printed.strip() or "nothing, not even the id of a job")
        return job

    def task(self, job: str, index: int) -> str:
        """Id of a task: "123_4"."""
        return f"{job}_{index}"

    def cancel(self, jobs: Sequence[str]) -> None:
        """Call scancel."""
        for ids in chunks(list(jobs)):
            self.call("scancel", "--quiet", *ids)

    def in_words(self, reason: str) -> str:
        """What a pending job waits for."""
        return reason_in_words(reason)

    # Job scripts

    def directives(self, job: Job) -> list[str]:
        """Options of sbatch, each whole.

        Raises:
            UserError: If the site's own would change what the others say.
        """
        site, layout = job.site, job.layout
        lines = [
            f"--job-name={job_name(job.name)}",
            f"--output={output_pattern(job, '%A.out')}",
            f"--nodes={layout.nodes}",
            f"--ntasks={layout.tasks}",
            f"--ntasks-per-node={layout.tasks_per_node}",
            f"--cpus-per-task={layout.cpus_per_task}",
            f"--time={notation(layout.seconds)}",
            "--requeue",
            "--open-mode=append",
        ]
        if layout.seconds is not None:
            lines.append(f"--signal=B:USR1@{site.warning(layout.seconds)}")
        if site.exclusive:
            lines.append("--exclusive")
        if layout.gpus_per_node and site.gpu_request:
            lines.append(
                filled(
                    site.gpu_request, per_task=layout.gpus_per_task, tasks=layout.tasks,
                    tasks_per_node=layout.tasks_per_node,
                )
            )  # fmt: skip
        comment = " ".join(filter(None, (site.comment, str(job.mark) if job.mark else None)))
        named = {
            "partition": site.partition, "account": site.account, "qos": site.qos,
            "constraint": site.constraint, "mem": memory_per_node(site, layout), "comment": comment,
        }  # fmt: skip
        lines += [f"--{option}={value}" for option, value in named.items() if value]
        if len(job.runs) > 1:
            lines.append(f"--array=0-{len(job.runs) - 1}")
        return [*lines, *site_options(site)]

    def start_lines(
        self, site: Site, layout: Layout, strategy: Traits, inside: Sequence[str] = ()
    ) -> list[str]:
        """Lines of bash; the last are the words that start all ranks.

        Raises:
            UserError: If mpirun is to start several processes a node that ask for GPUs one by one, or if
                another launcher than srun is to enter a container by srun's words.
        """
        if inside:
            if site.launcher != "srun":
                raise UserError(
                    'launcher = "srun" for a container that pyxis runs', repr(site.launcher),
                    f"Correct the site profile {site.name}; srun starts Horovod's processes as well.",
                )  # fmt: skip
            return _srun(layout, inside)
        if strategy.one_process:
            return [WORKER]
        if site.launcher == "srun" or (
            site.launcher == "horovodrun" and not strategy.started_by(site.launcher)
        ):
            return _srun(layout)
        if site.launcher == "mpirun":
            _refuse_gpus_by_the_task(site, layout)
            return [
                "# mpirun's own step must have all cores of a node; workers stay on theirs by themselves.",
                "export SLURM_CPU_BIND=none",
                *mpirun_lines(layout, (*PASSED, *site.env, *site.proxies), modules=bool(site.modules)),
            ]
        if site.launcher == "horovodrun":
            return _horovodrun(layout)
        return [f"{site.launcher} {WORKER}"]

    def everywhere(self, layout: Layout) -> str:
        """One task of srun on each node."""
        return f"srun --nodes={layout.nodes} --ntasks={layout.nodes} " if layout.nodes > 1 else ""

    # Inside a job

    def own_job(self, variables: Mapping[str, str]) -> str:
        """Of a task of an array, the array's id and its number."""
        task = variables.get("SLURM_ARRAY_TASK_ID", "")
        return (
            f"{variables.get('SLURM_ARRAY_JOB_ID', '')}_{task}"
            if task
            else variables.get("SLURM_JOB_ID", "none")
        )

    def own_nodes(self, variables: Mapping[str, str]) -> str:
        """By SLURM_JOB_NODELIST."""
        return variables.get("SLURM_JOB_NODELIST", "this machine")

    def restarts(self, variables: Mapping[str, str]) -> str:
        """By SLURM_RESTART_COUNT."""
        return variables.get("SLURM_RESTART_COUNT", "0")

    def is_running(self, variables: Mapping[str, str]) -> bool:
        """Whether Slurm says that the job is running."""
        return " JobState=RUNNING " in self._own("job", variables.get("SLURM_JOB_ID", ""))

    def requeue(self, variables: Mapping[str, str]) -> bool:
        """Call `scontrol requeue`.

        Slurm takes a requeue of a job that is being cancelled, and brings it back: only one that runs is.
        """
        if not self.is_running(variables):
            return False
        try:
            self.call("scontrol", "requeue", variables["SLURM_JOB_ID"])
        except (QueueUnreachable, QueueRefused, QueueAbsent) as error:
            print(error, flush=True)
            return False
        return True

    def nodes_shared(self, variables: Mapping[str, str]) -> str:
        """By Slurm's word on the job, unless all CPUs of its nodes are its own."""
        job = self._own("job", self.own_job(variables))
        word = re.search(r"\bOverSubscribe=(\S+)", job)
        if word is None:
            return ""
        if word[1] == "NO":
            return "no"
        nodes = self._own("node", self.own_nodes(variables))
        cpus = sum(int(count) for count in re.findall(r"\bCPUTot=(\d+)", nodes))
        mine = sum(int(count) for count in re.findall(r"\bNumCPUs=(\d+)", job))
        return "no" if 0 < cpus <= mine else "yes"

    def _own(self, kind: str, name: str) -> str:
        """What scontrol shows of this job or of its nodes; "" where it does not answer."""
        try:
            return self.call("scontrol", "show", kind, "-o", name)
        except (QueueUnreachable, QueueRefused, QueueAbsent):
            return ""


SLURM = QueueLauncher(Slurm(), checked=True)
CLIENT_VARIABLES = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_JWT")
"""Variables by which the client commands find their cluster."""
FORMATS = ("SQUEUE_", "SACCT_", "SCONTROL_", "SLURM_TIME_FORMAT", "SLURM_BITSTR_LEN")
"""Variables of a user's own taste in output, which the parsers do not share."""


def _array_ids(jobs: Sequence[str]) -> list[str]:
    """The ids of whole jobs: an array once, however many of its tasks are named."""
    return list(dict.fromkeys(job.partition("_")[0] for job in jobs))


SQUEUE_FORMAT = "%i|%T|%N|%S|%r"
"""The reason last: it alone may hold anything."""
MARKED_FORMAT = "%i|%F|%T|%j|%k"
"""The comment last, in which a site may have its own words."""
SACCT_FORMAT = "JobID,State,ExitCode,NodeList,Start"
_ID = re.compile(r"\d+(_\d+)?")
_TASKS = re.compile(r"(?P<job>\d+)_\[(?P<tasks>\d[\d,:-]*)(?:%\d+)?\]", re.ASCII)
_RANGE = re.compile(r"(\d+)(?:-(\d+)(?::([1-9]\d*))?)?", re.ASCII)
MOST_TASKS = 100_000
"""Tasks of an array that are read of one line; no site allows more."""
_FIELD = re.compile(r"(\S+?)=(.*?)(?= \S+?=|$)")


def parse_squeue(text: str) -> dict[str, JobView]:
    """Jobs by id from `squeue -h -r -t all -o SQUEUE_FORMAT`; lines that are none are passed over."""
    views = {}
    for line in text.splitlines():
        fields = line.split("|", 4)
        if len(fields) == 5:
            ids, state, nodes, start, reason = (field.strip() for field in fields)
            for job in job_ids(ids):
                views[job] = JobView(
                    job=job, state=state, nodes=_said(nodes), start=_said(start), reason=_said(reason)
                )
    return views


def job_ids(text: str) -> list[str]:
    """Ids that a line is about: "12", "12_3", or of tasks that never started "12_[0-1,4]"; else none."""
    if _ID.fullmatch(text):
        return [text]
    array = _TASKS.fullmatch(text)
    ids: list[str] = []
    for part in array["tasks"].split(",") if array else ():
        if bounds := _RANGE.fullmatch(part):
            first, last, step = (int(bound or 0) for bound in bounds.groups())
            numbers = range(first, max(first, last) + 1, step or 1)
            ids += [f"{array['job']}_{number}" for number in numbers[:MOST_TASKS]]  # type: ignore[index]
    return ids


def parse_marked(text: str) -> list[MarkedJob]:
    """Jobs from `squeue -h -r -o MARKED_FORMAT`; those without a mark in their comment are passed over."""
    found = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|", 4)]
        if len(fields) < 5:
            continue
        job, whole, state, name, comment = fields
        mark = read_mark(comment)
        if mark is not None and _ID.fullmatch(job):
            found.append(MarkedJob(job, whole, name, state, mark))
    return found


def parse_sacct(text: str) -> dict[str, JobView]:
    """Jobs by id from `sacct -P -n -X -o SACCT_FORMAT`; of a job named twice the last line counts.

    Tasks that never started share one line, "3_[2-5%2]".
    """
    views = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 5:
            ids, state, code, nodes, start = fields
            state, _, by = state.partition(" by ")
            number, signal = _codes(code)
            for job in job_ids(ids):
                views[job] = JobView(
                    job=job, state=state.rstrip("+"), nodes=_said(nodes), start=_said(start),
                    exit_code=number, signal=signal, by=by,
                )  # fmt: skip
    return views


def parse_scontrol(text: str) -> dict[str, JobView]:
    """Jobs by id from `scontrol show job -o ID`: a line for each job, or for each task of an array."""
    return {view.job: view for line in text.splitlines() for view in _of_line(line)}


def parse_configuration(text: str) -> dict[str, str]:
    """Settings by name from `scontrol show config`; of one that is named twice the first counts."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals:
            found.setdefault(key.strip(), value.strip())
    return found


def parse_array_limit(settings: Mapping[str, str]) -> int:
    """Tasks that one array may have; 1 where arrays are switched off.

    Slurm takes indices below MaxArraySize, and no more tasks than `max_array_tasks` of SchedulerParameters:
    see slurm.conf(5).
    """
    size = settings.get("MaxArraySize", "")
    limit = int(size) if size.isdecimal() else LARGEST_ARRAY
    tasks = re.search(r"\bmax_array_tasks=(\d+)", settings.get("SchedulerParameters", ""))
    return max(1, min(limit, int(tasks[1]) if tasks else limit))


def parse_submitted(text: str) -> str | None:
    """The id that `sbatch --parsable` printed, "123" or "123;cluster", whatever a site prints around it."""
    for line in reversed(text.splitlines()):
        job = line.strip().partition(";")[0]
        if job.isdigit():
            return job
    return None


def _of_line(line: str) -> Iterator[JobView]:
    fields = dict(_FIELD.findall(line.strip()))
    if "JobId" not in fields or "JobState" not in fields:
        return
    job = fields["JobId"]
    if "ArrayJobId" in fields:
        job = f"{fields['ArrayJobId']}_{fields.get('ArrayTaskId', '')}"
    if not _ID.fullmatch(job):
        return
    number, signal = _codes(fields.get("ExitCode", ""))
    yield JobView(
        job=job, state=fields["JobState"], reason=_said(fields.get("Reason", "")),
        nodes=_said(fields.get("NodeList", "")), start=_said(fields.get("StartTime", "")),
        exit_code=number, signal=signal,
    )  # fmt: skip


def _codes(text: str) -> tuple[int | None, int | None]:
    """Exit code and signal of "3:0"."""
    match = re.fullmatch(r"(\d+):(\d+)", text.strip())
    if not match:
        return None, None
    code, signal = int(match[1]), int(match[2])
    return code, signal or None


def _said(value: str) -> str:
    """The value, or "" where Slurm has a word for nothing."""
    return "" if value in ("None", "N/A", "Unknown", "(null)", "None assigned", "n/a") else value


REASONS = {
    "Priority": "others are before it",
    "Resources": "waits for free nodes",
    "Dependency": "waits for another job",
    "DependencyNeverSatisfied": "what it waits for has failed",
    "JobArrayTaskLimit": "waits for others of its array",
    "BeginTime": "starts again shortly",
    "JobHeldUser": "held by its user",
    "JobHeldAdmin": "held by an administrator",
    "JobLaunchFailure": "could not be started",
    "ReqNodeNotAvail": "its nodes are down, drained or reserved",
    "NodeDown": "its nodes are down",
    "PartitionDown": "the partition is down",
    "PartitionInactive": "the partition is inactive",
    "PartitionNodeLimit": "more nodes than the partition grants",
    "PartitionTimeLimit": "more time than the partition grants",
    "PartitionConfig": "the partition does not take it",
    "Reservation": "waits for a reservation",
    "Licenses": "waits for a licence",
    "Cleaning": "being cleaned up",
    "Prolog": "the nodes are being prepared",
    "InvalidAccount": "its account is invalid",
    "InvalidQOS": "its QoS is invalid",
    "AccountNotAllowed": "the partition does not take its account",
    "QOSNotAllowed": "its QoS is not allowed",
    "BadConstraints": "no node can satisfy it",
}


def reason_in_words(reason: str) -> str:
    """The reason of a pending job, in words where there are any: "Resources" -> "waits for free nodes".

    Limits (QOSMaxJobsPerUserLimit, AssocGrpGRES, …) are named as Slurm names them.
    """
    word = re.split(r"[,( ]", reason.strip(" ()"), maxsplit=1)[0]
    if word in REASONS:
        return REASONS[word]
    if word.startswith(("QOS", "Assoc", "MaxGRES", "User", "Account")) or "Limit" in word:
        return f"a limit is reached ({word})"
    return reason or "not yet considered"


REFUSED_OPTIONS = (
    ("job submit limit", (), "none: `submit --at-most N` keeps fewer jobs in the queue", "squeue --me"),
    ("account", ("account", "partition"), "account", "sacctmgr show associations user=$USER"),
    ("partition", ("partition",), "partition", "sinfo -s"),
    ("qos", ("qos", "account"), "qos", "sacctmgr show associations user=$USER format=account,partition,qos"),
    ("feature", ("constraint",), "constraint", "sinfo -o '%P %D %f'"),
    ("time limit", ("time", "partition"), "time_limit", "sinfo -o '%P %l'"),
    ("gres", ("gres", "gpus"), "gpu_request", "sinfo -o '%P %D %G'"),
    ("memory", ("mem",), "memory_per_node", "sinfo -o '%P %D %m'"),
    ("reservation", ("reservation",), "directives", "scontrol show reservation"),
    (
        "node configuration",
        ("nodes", "ntasks-per-node", "cpus-per-task", "mem", "gres", "gpus", "constraint"),
        "tasks_per_node, cpus_per_node, gpus_per_node or memory_per_node", "sinfo -o '%P %D %c %m %G %f'",
    ),
)  # fmt: skip
"""A phrase of Slurm's, the options of sbatch that it may speak of (gpus: each that begins so), the key of the
site profile that they come from, and the command that shows what there is. The first phrase found counts."""


def explained(words: str, directives: Sequence[str]) -> QueueRefused:
    """A refusal by sbatch, with what the script asked for and where to look for what it may."""
    for phrase, options, key, command in REFUSED_OPTIONS:
        if phrase in words.lower():
            asked = [line for line in directives if line[2:].partition("=")[0].startswith(options)]
            received = f"{words} (asked for: {' '.join(asked)})" if asked else words
            action = f"`{command}` shows what there is; the site profile's key is {key}."
            return QueueRefused("Slurm", "sbatch", received, action)
    return QueueRefused("Slurm", "sbatch", words)


def directives_of(script: Path) -> list[str]:
    """The options in a script; none where it cannot be read."""
    try:
        return re.findall(r"^#SBATCH (--\S.*)$", script.read_text(), re.MULTILINE)
    except OSError:
        return []


KEYS = {
    "partition": "partition", "account": "account", "qos": "qos", "constraint": "constraint",
    "mem": "memory_per_node", "mem-per-cpu": "memory_per_node", "mem-per-gpu": "memory_per_node",
    "time": "time_limit", "time-min": "time_limit", "comment": "comment", "exclusive": "exclusive",
    "oversubscribe": "exclusive", "share": "exclusive", "signal": "signal_lead",
    **dict.fromkeys(
        ("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "tres-per-task"), "gpu_request"
    ),
}  # fmt: skip
"""Options that a key of the profile stands for."""
COMPUTED = (
    "array", "nodes", "ntasks", "ntasks-per-node", "tasks-per-node", "ntasks-per-core", "ntasks-per-socket",
    "ntasks-per-gpu", "cpus-per-task", "cpus-per-gpu", "job-name", "output", "error", "input", "requeue",
    "no-requeue", "open-mode", "dependency", "kill-on-invalid-dep", "wait", "wrap", "parsable", "test-only",
    "clusters", "cluster", "help", "usage", "version",
)  # fmt: skip
"""Options that follow from the points, or that the job script relies on."""
SHORT = {
    "a": "array", "A": "account", "b": "begin", "B": "extra-node-info", "c": "cpus-per-task",
    "C": "constraint", "d": "dependency", "D": "chdir", "e": "error", "F": "nodefile", "G": "gpus",
    "H": "hold", "i": "input", "J": "job-name", "k": "no-kill", "L": "licenses", "m": "distribution",
    "M": "clusters", "N": "nodes", "n": "ntasks", "O": "overcommit", "o": "output", "p": "partition",
    "q": "qos", "Q": "quiet", "s": "oversubscribe", "S": "core-spec", "t": "time", "w": "nodelist",
    "W": "wait", "x": "exclude",
}  # fmt: skip
"""Letters of sbatch, each with the option that it stands for."""
FLAGS = ("hold", "no-kill", "overcommit", "quiet")
"""Those letters' options that take no value."""
_LONG = re.compile(r"--([a-z][a-z0-9-]*)(?:(=)(.*)|\s+(.*))?")
_LETTER = re.compile(r"-([A-Za-z])\s*(.*)")


def site_options(site: Site) -> list[str]:
    """The profile's `directives`, each as "--name" or "--name=value".

    sbatch takes a beginning of a name for the whole, several letters in one word, and several options on a
    line; so a name that could be one of ours, and a word that could be another option, are refused.

    Raises:
        UserError: If one of them is refused.
    """
    return [_option(text.strip(), site) for text in site.directives]


def _option(text: str, site: Site) -> str:
    name, value = _parts(text, site)
    ours = [
        each for each in (*KEYS, *COMPUTED, *(("gres",) if site.gpus_per_node else ())) if _means(name, each)
    ]
    if ours:
        key = "gpu_request" if ours[0] == "gres" else KEYS.get(ours[0])
        action = f"Write it as `{key}`." if key else "Remove it: the job's own value follows from the point."
        raise _refused_option(site, text, f"which sets --{ours[0]}", action)
    return f"--{name}" if value is None else f"--{name}={value}"


def _parts(text: str, site: Site) -> tuple[str, str | None]:
    one = 'Write each option as a text of its own, "--name=value".'
    if found := _LONG.fullmatch(text):
        name, equals, given, word = found.groups()
        if word and (word.startswith("-") or re.search(r"\s", word)):
            raise _refused_option(site, text, "which are several options", one)
        return name, given if equals else word
    if found := _LETTER.fullmatch(text):
        known = SHORT.get(found[1])
        if known is None or (known in FLAGS and found[2]) or re.search(r"^-|\s", found[2]):
            raise _refused_option(site, text, "which is no single option", one)
        return known, found[2] or None
    raise _refused_option(site, text, "which is no option", one)


def _means(name: str, option: str) -> bool:
    """Whether sbatch could take this name for that option."""
    return option.startswith(name)


def _refused_option(site: Site, text: str, why: str, action: str) -> UserError:
    return UserError(
        "directives that leave a job's layout alone",
        f"{text!r} in the site profile {site.name}, {why}",
        action,
    )


def _refuse_gpus_by_the_task(site: Site, layout: Layout) -> None:
    """Slurm gives each daemon of mpirun, one task a node, the GPUs of one task: too few for its ranks."""
    if layout.gpus_per_node and layout.tasks_per_node > 1 and site.gpu_request.startswith("--gpus-per-task"):
        raise UserError(
            "GPUs asked for by the node where mpirun starts several processes on it",
            f"gpu_request = {site.gpu_request!r} in the site profile {site.name}",
            'Write gpu_request = "--gres=gpu:{gpus}", or launcher = "srun".',
        )


def _srun(layout: Layout, inside: Sequence[str] = ()) -> list[str]:
    # srun takes a number per node only where all nodes have it; elsewhere it follows the job's own.
    even = layout.nodes * layout.tasks_per_node == layout.tasks
    per_node = f" --ntasks-per-node={layout.tasks_per_node}" if even else ""
    return [
        "launch=(",
        f"  srun --nodes={layout.nodes} --ntasks={layout.tasks}{per_node}",
        # Not inherited from the job since Slurm 22.05.
        f"  --cpus-per-task={layout.cpus_per_task} --distribution=block:block",
        "  --kill-on-bad-exit=1 --mpi=none --export=ALL",
        *(f"  {word}" for word in inside),
        ")",
        f'"${{launch[@]}}" {WORKER}',
    ]


def _horovodrun(layout: Layout) -> list[str]:
    slots = layout.tasks_per_node
    return [
        f'hosts=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed "s/$/:{slots}/" | paste -sd,)',
        "launch=(",
        f'  horovodrun -np {layout.tasks} -H "$hosts"',
        ")",
        f'"${{launch[@]}}" {WORKER}',
    ]


SINFO_FORMAT = "%P|%a|%l|%D|%c|%m|%G"
_GPUS = re.compile(r"\bgpu(?::(?P<type>[^:,()]+))??:(?P<count>\d+)(?=[,(]|$)")


@dataclass(frozen=True)
class Nodes:
    """Nodes of a partition that are alike, a line of sinfo.

    Attributes:
        partition: Its name.
        default: Whether jobs that name none go there.
        up: Whether it takes jobs.
        seconds: Its time limit; None for none.
        count: How many there are.
        cpus: Of each.
        memory: Bytes of each.
        gpus: Of each.
        gpu_types: What Slurm calls them: "v100"; empty where it has no names.
    """

    partition: str
    default: bool
    up: bool
    seconds: int | None
    count: int
    cpus: int
    memory: int
    gpus: int
    gpu_types: tuple[str, ...] = ()


def parse_sinfo(text: str) -> list[Nodes]:
    """Lines of `sinfo -h -e -o SINFO_FORMAT`; without -e, different nodes share a line, "12+"."""
    found = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|", 6)]
        if len(fields) == 7:
            name, state, limit, count, cpus, memory, gres = fields
            gpus = list(_GPUS.finditer(gres))
            found.append(
                Nodes(
                    name.rstrip("*"), name.endswith("*"), state == "up", partition_seconds(limit),
                    _number(count), _number(cpus), _number(memory) * 2**20,
                    sum(int(each["count"]) for each in gpus),
                    tuple(dict.fromkeys(each["type"] for each in gpus if each["type"])),
                )
            )  # fmt: skip
    return found


def partition_seconds(text: str) -> int | None:
    """Seconds of a partition's limit; None for no limit, and for what is no time ("n/a")."""
    try:
        return seconds(text)
    except ValueError:
        return None


def _number(text: str) -> int:
    digits = re.match(r"\d+", text)
    return int(digits[0]) if digits else 0
