"""Slurm as a queue: its client commands, what they print, and its words in a job script."""

import contextlib
import getpass
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scalestudy.launch.queue.base import (
    QUEUE_ERRORS,
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
from scalestudy.launch.queue.layout import JobLayout, gpu_request, memory_per_node
from scalestudy.launch.queue.quoting import job_name, literal
from scalestudy.launch.queue.script import JobScript
from scalestudy.launch.queue.site import Site, notation, seconds

CLIENT_VARIABLES = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_JWT")
"""Variables by which the client commands find their cluster."""
FORMATS = ("SQUEUE_", "SACCT_", "SCONTROL_", "SLURM_TIME_FORMAT", "SLURM_BITSTR_LEN")
"""Variables of a user's own taste in output, which the parsers do not share."""
SQUEUE_FORMAT = "%i|%T|%N|%S|%r"
"""The reason last: it alone may hold anything."""
MARKED_FORMAT = "%i|%T|%j|%k"
SACCT_FORMAT = "JobID,State,ExitCode,NodeList,Start"
SINFO_FORMAT = "%P|%a|%l|%D|%c|%m|%G"
ADVICE = {
    "maxsubmit": "`--at-most N` keeps fewer jobs in the queue; `squeue --me` lists yours.",
    "job submit limit": "The first word names the limit: see time_limit, partition and qos in the profile.",
    "account": "The site profile's key is account; `sacctmgr show associations user=$USER` lists yours.",
    "partition": "The site profile's key is partition; `sinfo -s` lists the partitions.",
    "qos": "The site profile's key is qos; `sacctmgr show associations user=$USER format=qos` lists yours.",
    "time limit": "The site profile's key is time_limit; `sinfo -o '%P %l'` shows the partitions' limits.",
    "node configuration": "`sinfo -o '%P %D %c %m %G %f'` shows nodes; correct cpus_per_node, gpus_per_node, "
    "gpu_request, memory_per_node or constraint in the site profile.",
}
"""What to do when sbatch says this; the first phrase found counts."""
REASONS = {
    "Priority": "others come first",
    "Resources": "waits for free nodes",
    "Dependency": "waits for another job",
    "DependencyNeverSatisfied": "the job that it waits for has failed",
    "BeginTime": "starts again shortly",
    "JobHeldUser": "held by its user",
    "JobHeldAdmin": "held by an administrator",
    "ReqNodeNotAvail": "its nodes are down, drained or reserved",
    "PartitionTimeLimit": "more time than the partition grants",
    "PartitionNodeLimit": "more nodes than the partition grants",
    "Reservation": "waits for a reservation",
}


class Slurm(Queue):
    """Slurm, by its client commands.

    Without a controller they wait for minutes, and what they print depends on the language and on variables.
    """

    name = "slurm"
    title = "Slurm"
    submits = ("sbatch", "--parsable")
    cancels = ("scancel", "--quiet")
    directive = "SBATCH"
    reserved = (
        "array", "clusters", "comment", "cpus-per-gpu", "dependency", "error", "exclusive", "input", "mem",
        "mem-per-cpu", "mem-per-gpu", "no-requeue", "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-socket",
        "oversubscribe", "signal", "tasks-per-node", "test-only", "time-min", "wait", "wrap",
    )  # fmt: skip
    job_variable = "SLURM_JOB_ID"
    nodes_variable = "SLURM_JOB_NODELIST"
    job_form = re.compile(r"(\d+)(?:;.*)?")
    requeues = True
    contains = True
    full = "MaxSubmit"  # AssocMaxSubmitJobLimit, QOSMaxSubmitJobPerUserLimit, …
    unreachable = (
        "unable to contact slurm controller", "socket timed out", "connection refused",
        "connection timed out", "communication connection failure", "transport endpoint is not connected",
        "zero bytes were transmitted", "no route to host", "problem talking to the database",
        "backup controller in standby mode", "plugin initialization failed",
    )  # fmt: skip

    def environment(self, variables: Mapping[str, str], *, submitting: bool) -> dict[str, str]:
        """Variables of a command, without those that would change what is printed.

        A job to submit gets nothing of the allocation that the user may be in (SLURM_* of salloc or of a
        notebook's job would reach its srun), and no options of sbatch, which would overrule the profile.
        """
        unwanted = ("SLURM_", "SBATCH_") if submitting else FORMATS
        return {
            name: value
            for name, value in variables.items()
            if name in CLIENT_VARIABLES or not name.startswith(unwanted)
        }

    def failed(self, program: str, code: int, output: str, errors: str) -> str:
        """Raise what a failed command means: without a slurm.conf there is no cluster."""
        if "configuration source" in (errors or output):
            raise QueueAbsent(self.title, program, "commands that know of no cluster (no slurm.conf)")
        return super().failed(program, code, output, errors)

    def advice(self, words: str) -> str:
        """Which key of the site profile it is about, and what shows what there is."""
        return next((advice for phrase, advice in ADVICE.items() if phrase in words.lower()), "")

    # Jobs

    def ask(self, jobs: Sequence[str], *, cluster: str = "") -> dict[str, JobView]:
        """What Slurm says of these jobs.

        One squeue for a hundred jobs, and one sacct for those that are over or that squeue does not show.

        Raises:
            QueueUnreachable: If Slurm does not answer, or if this machine talks to another cluster.
            QueueRefused: If Slurm refuses to say.
            QueueAbsent: If this machine has no Slurm.
        """
        views = self._in_queue(jobs)
        over = [job for job in jobs if job not in views or views[job].ended]
        if not over:
            return views
        for job, record in self._accounted(over).items():
            if job not in views:
                # Of another user's job squeue may be silent (PrivateData) where accounting is not.
                views[job] = record
            elif record.ended:  # accounting lags behind the controller
                views[job] = record.model_copy(update={"reason": views[job].reason})
        lost = [job for job in jobs if job not in views]
        if lost and cluster and (here := self.cluster_name()) != cluster:
            why = f"this machine uses the cluster {here}, but the jobs are on {cluster}"
            raise QueueUnreachable(self.title, "squeue", why)
        return views | {job: JobView(job=job, state=UNKNOWN) for job in lost}

    def _in_queue(self, jobs: Sequence[str]) -> dict[str, JobView]:
        views: dict[str, JobView] = {}
        for ids in chunks(jobs):
            try:
                text = self.call("squeue", "-h", "-t", "all", "-o", SQUEUE_FORMAT, "-j", ",".join(ids))
            except QueueRefused as refused:
                # The only job asked for is forgotten; of several, squeue passes over the forgotten ones.
                if "invalid job id" not in refused.words.lower():
                    raise
            else:
                views |= parse_squeue(text)
        return {job: views[job] for job in jobs if job in views}

    def _accounted(self, jobs: Sequence[str]) -> dict[str, JobView]:
        views: dict[str, JobView] = {}
        with contextlib.suppress(QueueRefused, QueueUnreachable):  # no accounting here, or it is down
            for ids in chunks(jobs):
                views |= parse_sacct(
                    self.call("sacct", "-P", "-n", "-X", "-o", SACCT_FORMAT, "-j", ",".join(ids))
                )
        return views

    def marked(self) -> list[MarkedJob]:
        """By their comments."""
        text = self.call("squeue", "-h", "-u", getpass.getuser(), "-o", MARKED_FORMAT)
        return [
            MarkedJob(job, name, state, mark)
            for job, state, name, comment in _rows(text, 4)
            if (mark := read_mark(comment)) and job.isdecimal()
        ]

    def cluster_name(self) -> str:
        """Slurm's name of the cluster that this machine talks to; "" if it does not say."""
        try:
            text = self.call("scontrol", "show", "config")
        except QueueRefused:
            return ""
        match = re.search(r"(?m)^ClusterName\s*=\s*(\S+)", text)
        return match[1] if match else ""

    def accounts(self) -> list[str]:
        """Accounts that the user may charge; empty where there is no accounting, or it does not answer."""
        user = f"user={getpass.getuser()}"
        try:
            text = self.call("sacctmgr", "-n", "-P", "show", "assoc", user, "format=Account")
        except QUEUE_ERRORS:
            return []
        return [line.strip() for line in text.splitlines() if line.strip()]

    def partitions(self) -> list["Nodes"]:
        """The nodes of all partitions; without -e, different nodes would share a line, "12+"."""
        return parse_sinfo(self.call("sinfo", "-h", "-e", "-o", SINFO_FORMAT))

    def after(self, job: str) -> list[str]:
        """A job that can never start is cancelled."""
        return [f"--dependency=afterok:{job}", "--kill-on-invalid-dep=yes"]

    def in_words(self, reason: str) -> str:
        """What a pending job waits for; limits (QOSMaxJobsPerUserLimit, …) are named as Slurm names them."""
        word = re.split(r"[,( ]", reason.strip(" ()"), maxsplit=1)[0]
        if word not in REASONS and (word.startswith(("QOS", "Assoc")) or "Limit" in word):
            return f"a limit is reached ({word})"
        return REASONS.get(word, reason) or "not yet considered"

    # Job scripts

    def directives(self, job: JobScript) -> list[str]:
        """Options of sbatch, by their long names."""
        site, layout = job.site, job.layout
        lines = [
            f"--job-name={job_name(job.name)}",
            f"--output={job.printed.replace('%', '%%')}",
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
        if site.whole_nodes:
            lines.append("--exclusive")
        if layout.gpus_per_node and site.gpu_request:
            lines.append(gpu_request(site, layout))
        named = {
            "partition": site.partition, "account": site.account, "qos": site.qos,
            "constraint": site.constraint, "mem": memory_per_node(site, layout),
            "comment": job.mark and str(job.mark),
        }  # fmt: skip
        return lines + [f"--{option}={value}" for option, value in named.items() if value]

    def option_names(self, option: str) -> set[str]:
        """By its long name, as in "--name=value"."""
        match = re.fullmatch(r"--([a-z][a-z0-9-]*)(=.*)?", option)
        return {match[1]} if match else set()

    def launch_words(self, site: Site, layout: JobLayout) -> list[str] | None:
        """By srun, which is told a number per node only where all nodes have it."""
        if site.launcher != "srun":
            return None
        even = layout.nodes * layout.tasks_per_node == layout.tasks
        per_node = f" --ntasks-per-node={layout.tasks_per_node}" if even else ""
        # Slurm's binding goes by cores; a worker chooses those that are near its GPU.
        binding = ["--cpu-bind=none"] if layout.gpus_per_node else []
        return [
            f"srun --nodes={layout.nodes} --ntasks={layout.tasks}{per_node}",
            # Not inherited from the job since Slurm 22.05.
            f"--cpus-per-task={layout.cpus_per_task} --distribution=block:block",
            f"--kill-on-bad-exit={int(not layout.survives)} --mpi=none --export=ALL",
            *map(literal, [*binding, *site.srun_options]),
        ]

    def mpirun_words(self) -> tuple[list[str], str, tuple[str, ...]]:
        """Mpirun's own step must have all cores of a node; workers stay on theirs by themselves."""
        return ["export SLURM_CPU_BIND=none # mpirun's own step must have all cores of a node"], "", ()

    # Inside a job

    def is_running(self) -> bool:
        """Whether Slurm says that the job is running."""
        try:
            job = self.call("scontrol", "show", "job", "-o", self.own_job())
        except QUEUE_ERRORS:
            return False
        return " JobState=RUNNING " in job

    def requeue(self) -> bool:
        """Call `scontrol requeue`.

        Slurm takes a requeue of a job that is being cancelled, and brings it back: only one that runs is.
        """
        if not self.is_running():
            return False
        try:
            self.call("scontrol", "requeue", self.own_job())
        except QUEUE_ERRORS as error:
            print(error, flush=True)
            return False
        return True


SLURM = QueueLauncher(Slurm(), checked=True)


def _rows(text: str, count: int) -> list[list[str]]:
    """The fields of lines that have so many, of which the last may hold the separator; others are no rows."""
    rows = ([field.strip() for field in line.split("|", count - 1)] for line in text.splitlines())
    return [row for row in rows if len(row) == count]


def parse_squeue(text: str) -> dict[str, JobView]:
    """Jobs by id from `squeue -h -t all -o SQUEUE_FORMAT`."""
    return {
        job: JobView(job=job, state=state, nodes=_value(nodes), start=_value(start), reason=_value(reason))
        for job, state, nodes, start, reason in _rows(text, 5)
        if job.isdecimal()
    }


def parse_sacct(text: str) -> dict[str, JobView]:
    """Jobs by id from `sacct -P -n -X -o SACCT_FORMAT`; of a job named twice the last line counts."""
    views = {}
    for job, state, code, nodes, start in _rows(text, 5):
        word, _, by = state.partition(" by ")
        exit_code, signal = _codes(code)
        if job.isdecimal():
            views[job] = JobView(
                job=job, state=word.rstrip("+"), nodes=_value(nodes), start=_value(start),
                exit_code=exit_code, signal=signal, by=by,
            )  # fmt: skip
    return views


def _codes(text: str) -> tuple[int | None, int | None]:
    """Exit code and signal of "3:0"."""
    match = re.fullmatch(r"(\d+):(\d+)", text.strip())
    return (int(match[1]), int(match[2]) or None) if match else (None, None)


def _value(text: str) -> str:
    """The text, or "" where Slurm has a word for nothing."""
    return "" if text in ("None", "N/A", "Unknown", "(null)", "None assigned", "n/a") else text


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
    """Lines of `sinfo -h -e -o SINFO_FORMAT`."""
    nodes = []
    for name, state, limit, count, cpus, memory, gres in _rows(text, 7):
        gpus = re.findall(r"\bgpu(?::([^:,()]+))??:(\d+)(?=[,(]|$)", gres)
        nodes.append(
            Nodes(
                name.rstrip("*"), name.endswith("*"), state == "up", partition_seconds(limit),
                _number(count), _number(cpus), _number(memory) * 2**20,
                sum(int(number) for _, number in gpus),
                tuple(dict.fromkeys(kind for kind, _ in gpus if kind)),
            )
        )  # fmt: skip
    return nodes


def partition_seconds(text: str) -> int | None:
    """Seconds of a partition's limit; None for no limit, and for what is no time ("n/a")."""
    try:
        return seconds(text)
    except ValueError:
        return None


def _number(text: str) -> int:
    digits = re.match(r"\d+", text)
    return int(digits[0]) if digits else 0
