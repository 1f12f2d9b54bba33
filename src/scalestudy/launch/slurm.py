"""Slurm as a queue: its client commands, what they print, and its words in a job script."""

import getpass
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
from scalestudy.launch.queue.script import (
    PASSED,
    WORKER,
    Dialect,
    Job,
    job_name,
    mpirun_lines,
    own_words,
    render,
)
from scalestudy.launch.queue.site import Site, filled, notation, seconds
from scalestudy.launch.queue.submit import LARGEST_ARRAY, Batch
from scalestudy.study.strategies import Traits

TIMEOUT = 20.0
"""Seconds that a command may take; SCALESTUDY_SLURM_TIMEOUT says otherwise."""
TIMEOUT_VARIABLE = "SCALESTUDY_SLURM_TIMEOUT"
FORMATS = ("SQUEUE_", "SACCT_", "SCONTROL_", "SLURM_TIME_FORMAT", "SLURM_BITSTR_LEN")
"""Variables of a user's own taste in output, which the parsers do not share."""
UNREACHABLE = (
    "unable to contact slurm controller",
    "socket timed out",
    "connection refused",
    "connection timed out",
    "communication connection failure",
    "transport endpoint is not connected",
    "zero bytes were transmitted",
    "no route to host",
    "problem talking to the database",
    "backup controller in standby mode",
    "plugin initialization failed",
)


class SlurmSilent(QueueSilent):
    """Slurm gave no answer in time; `reason` says how, in one line."""

    def __init__(self, command: str, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"an answer of Slurm to `{command}`",
            reason,
            f"Try again later; {TIMEOUT_VARIABLE}=SECONDS sets how long to wait.",
        )


class SlurmRefused(QueueRefused):
    """Slurm said no; `words` are its own."""

    def __init__(self, command: str, words: str, action: str = "") -> None:
        self.words = words
        if command == "sbatch":
            action = action or "Correct what Slurm names, in the site profile or the study."
            super().__init__("a job that Slurm takes (`sbatch`)", words, action)
        else:
            super().__init__(f"a `{command}` that Slurm takes", words, "Correct what Slurm names.")


class SlurmAbsent(QueueAbsent):
    """This machine has no Slurm, or belongs to no cluster."""

    def __init__(self, program: str, why: str = "none in PATH") -> None:
        super().__init__(
            f"Slurm's commands on this machine ({program})",
            why,
            'Log in to the cluster (some want `module load slurm`), or set launch.on = "local".',
        )


def ask(program: str, *arguments: str) -> str:
    """What a client command prints.

    Args:
        program: "squeue", "sacct", "scontrol", "sbatch" or "scancel".
        arguments: Its arguments.

    Raises:
        SlurmSilent: If it took too long, or could not reach the controller.
        SlurmRefused: If it failed, with Slurm's own words.
        SlurmAbsent: If there is no such command.
    """
    limit = time_limit(os.environ, TIMEOUT_VARIABLE, TIMEOUT)
    try:
        code, output, errors = answer([program, *arguments], client_environment(os.environ), limit)
    except ProgramAbsent:
        raise SlurmAbsent(program) from None
    except ProgramSilent:
        raise SlurmSilent(program, f"none within {limit:g} s") from None
    if code == 0:
        return output
    words = refusal(program, errors or output)
    if "configuration source" in words:
        raise SlurmAbsent(program, "commands that know of no cluster (no slurm.conf)")
    if any(phrase in words.lower() for phrase in UNREACHABLE):
        raise SlurmSilent(program, words)
    raise SlurmRefused(program, words or f"exit code {code}, and no word why")


def client_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a client command: the user's, in the parsers' language and formats."""
    kept = {key: value for key, value in environment.items() if not key.startswith(FORMATS)}
    return kept | {"LC_ALL": "C"}


def refusal(program: str, errors: str) -> str:
    """Slurm's own words on one line, without the name of the command before each and without warnings."""
    found: list[str] = []
    for line in errors.splitlines():
        words = line.strip().removeprefix(f"{program}: ")
        if words.lower().startswith("warning"):
            continue
        words = words.removeprefix("error: ").removeprefix("fatal: ").rstrip(".")
        if words and words not in found:
            found.append(words)
    return "; ".join(found)


def chunks(ids: Sequence[str], size: int = 100) -> list[Sequence[str]]:
    """Ids in batches that fit a command line and keep the controller's answer small."""
    return [ids[start : start + size] for start in range(0, len(ids), size)]


SQUEUE_FORMAT = "%i|%T|%N|%S|%r"
"""The reason last: it alone may hold anything."""
MARKED_FORMAT = "%i|%F|%T|%j|%k"
"""The comment last, in which a site may have its own words."""
SACCT_FORMAT = "JobID,State,ExitCode,NodeList,Start"
_ID = re.compile(r"\d+(_\d+)?")
_FIELD = re.compile(r"(\S+?)=(.*?)(?= \S+?=|$)")


def parse_squeue(text: str) -> dict[str, JobView]:
    """Jobs by id from `squeue -h -r -t all -o SQUEUE_FORMAT`; lines that are none are passed over."""
    views = {}
    for line in text.splitlines():
        fields = line.split("|", 4)
        if len(fields) == 5 and _ID.fullmatch(fields[0].strip()):
            job, state, nodes, start, reason = (field.strip() for field in fields)
            views[job] = JobView(
                job=job, state=state, nodes=_said(nodes), start=_said(start), reason=_said(reason)
            )
    return views


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

    Tasks that still wait share one line, "3_[2-5%2]", which is passed over: squeue knows them.
    """
    views = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 5 and _ID.fullmatch(fields[0]):
            job, state, code, nodes, start = fields
            state, _, by = state.partition(" by ")
            number, signal = _codes(code)
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


WORDS = {
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


def in_words(reason: str) -> str:
    """The reason of a pending job, in words where there are any: "Resources" -> "waits for free nodes".

    Limits (QOSMaxJobsPerUserLimit, AssocGrpGRES, …) are named as Slurm names them.
    """
    word = re.split(r"[,( ]", reason.strip(" ()"), maxsplit=1)[0]
    if word in WORDS:
        return WORDS[word]
    if word.startswith(("QOS", "Assoc", "MaxGRES", "User", "Account")) or "Limit" in word:
        return f"a limit is reached ({word})"
    return reason or "not yet considered"


REFUSED_OPTIONS = (
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


def explained(refused: SlurmRefused, script: Path) -> SlurmRefused:
    """The refusal of a script, with what the script asked for and where to look for what it may."""
    try:
        text = script.read_text()
    except OSError:
        return refused
    return _explained(refused.words, re.findall(r"^#SBATCH (--\S.*)$", text, re.MULTILINE))


def _explained(words: str, directives: list[str]) -> SlurmRefused:
    for phrase, options, key, command in REFUSED_OPTIONS:
        if phrase in words.lower():
            asked = [line for line in directives if _option_name(line).startswith(options)]
            found = f"{words} (asked for: {' '.join(asked)})" if asked else words
            action = f"`{command}` shows what there is; the site profile's key is {key}."
            return SlurmRefused("sbatch", found, action)
    return SlurmRefused("sbatch", words)


def _option_name(directive: str) -> str:
    return directive.removeprefix("--").partition("=")[0]


def ask_jobs(jobs: Sequence[str], *, cluster: str = "") -> dict[str, JobView]:
    """What Slurm says of these jobs; one that it has forgotten has the state "UNKNOWN".

    One squeue for a hundred jobs; how ended ones ended is asked of sacct in the same way, or, where there
    is no accounting, of `scontrol show job` as long as Slurm remembers (MinJobAge).

    Args:
        jobs: Ids, "123" or "123_4".
        cluster: Cluster that they were given to, if it is known.

    Raises:
        SlurmSilent: If Slurm does not answer, or if this machine talks to another cluster.
        SlurmRefused: If Slurm refuses to say.
        SlurmAbsent: If this machine has no Slurm.
    """
    views = _queue(jobs)
    over = [job for job in jobs if job not in views or views[job].ended]
    if not over:
        return views
    told = _ended(over, [job for job in over if job in views])
    for job in over:
        # Accounting lags behind the controller, which says "running" to nobody once a job is over.
        if job in told and told[job].ended:
            reason = views[job].reason if job in views else told[job].reason
            views[job] = told[job].model_copy(update={"reason": reason})
    lost = [job for job in jobs if job not in views]
    if lost and cluster and (here := cluster_name()) != cluster:
        raise SlurmSilent("squeue", f"this machine asks the cluster {here}, the jobs are on {cluster}")
    return views | {job: JobView(job=job, state=UNKNOWN) for job in lost}


def marked() -> list[MarkedJob]:
    """This user's jobs that are not over and carry a mark in their comment.

    Raises:
        SlurmSilent, SlurmRefused, SlurmAbsent: If Slurm does not say.
    """
    return parse_marked(ask("squeue", "-h", "-r", "-u", getpass.getuser(), "-o", MARKED_FORMAT))


def cluster_name() -> str:
    """Slurm's name of the cluster that this machine talks to; "" if it does not say.

    Raises:
        SlurmSilent: If Slurm does not answer.
        SlurmAbsent: If this machine has no Slurm.
    """
    try:
        return configuration().get("ClusterName", "")
    except SlurmRefused:
        return ""


def configuration() -> dict[str, str]:
    """Slurm's settings by their names.

    Raises:
        SlurmSilent, SlurmRefused, SlurmAbsent: If it does not say.
    """
    return parse_configuration(ask("scontrol", "show", "config"))


def bases(jobs: Sequence[str]) -> list[str]:
    """The ids of whole jobs: an array once, however many of its tasks are named."""
    return list(dict.fromkeys(job.partition("_")[0] for job in jobs))


def _queue(jobs: Sequence[str]) -> dict[str, JobView]:
    found: dict[str, JobView] = {}
    for some in chunks(bases(jobs)):
        try:
            text = ask("squeue", "-h", "-r", "-t", "all", "-o", SQUEUE_FORMAT, "-j", ",".join(some))
        except SlurmRefused as refused:
            # The only job asked for is forgotten; of several, squeue passes over the forgotten ones.
            if "invalid job id" not in refused.words.lower():
                raise
        else:
            found |= parse_squeue(text)
    return {job: found[job] for job in jobs if job in found}


def _ended(jobs: Sequence[str], remembered: Sequence[str]) -> dict[str, JobView]:
    found: dict[str, JobView] = {}
    try:
        for some in chunks(bases(jobs)):
            found |= parse_sacct(ask("sacct", "-P", "-n", "-X", "-o", SACCT_FORMAT, "-j", ",".join(some)))
    except (SlurmRefused, SlurmSilent):
        pass  # No accounting here, or it is down: the controller knows the younger ones.
    told = {job: view for job, view in found.items() if view.ended}
    for base in bases([job for job in remembered if job not in told]):
        try:
            told = parse_scontrol(ask("scontrol", "show", "job", "-o", base)) | told
        except SlurmRefused:
            continue
    return told


def scancel(jobs: Sequence[str]) -> None:
    """Cancel jobs and tasks of arrays, a hundred in a call; those that have ended are passed over.

    Raises:
        SlurmSilent: If Slurm does not answer.
        SlurmRefused: If it refuses, with its own words.
        SlurmAbsent: If this machine has no Slurm.
    """
    for some in chunks(list(jobs)):
        ask("scancel", "--quiet", *some)


def dependency_options(batch: Batch, jobs: Sequence[str]) -> list[str]:
    """Options of sbatch for a batch.

    Args:
        batch: The batch.
        jobs: Ids of the batches before it.
    """
    kinds = (("afterok", batch.afterok), ("afterany", batch.afterany))
    conditions = [":".join([kind, *(jobs[index] for index in after)]) for kind, after in kinds if after]
    if not conditions:
        return ["--parsable"]
    return ["--parsable", f"--dependency={','.join(conditions)}", "--kill-on-invalid-dep=yes"]


def sbatch(script: Path, arguments: Sequence[str]) -> str:
    """Submit a script.

    Returns:
        Id of the job.

    Raises:
        SlurmSilent: If Slurm does not answer; it may have the job all the same.
        SlurmRefused: If it refuses, with its own words.
        SlurmAbsent: If this machine has no Slurm.
    """
    try:
        printed = ask("sbatch", *arguments, str(script))
    except SlurmRefused as refused:
        raise explained(refused, script) from None
    job = parse_submitted(printed)
    if job is None:
        raise SlurmRefused("sbatch", printed.strip() or "nothing, not even the id of a job")
    return job


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


def own_options(site: Site) -> list[str]:
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


def start_lines(site: Site, layout: Layout, strategy: Traits, inside: Sequence[str] = ()) -> list[str]:
    """Lines of bash; the last one is the command, to be put into the background.

    A strategy that is one process by its nature needs no launcher: it is started on the first node as it is,
    but where srun alone enters the container.
    Processes of several ranks are laid out in blocks: the first node is filled first.

    Args:
        site: Names the launcher.
        layout: How many processes, and where.
        strategy: What it is; only Horovod's processes can be started by horovodrun, others take srun there.
        inside: Words of srun by which its tasks are in a container.

    Raises:
        UserError: If mpirun is to start several processes a node that ask for GPUs one by one, or if another
            launcher than srun is to enter a container by srun's words.
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
    if site.launcher == "srun" or (site.launcher == "horovodrun" and strategy.meets != "horovod"):
        return _srun(layout)
    if site.launcher == "mpirun":
        _refuse_gpus_by_the_task(site, layout)
        return [
            "# mpirun's own step must have all cores of a node; the workers stay on theirs by themselves.",
            "export SLURM_CPU_BIND=none",
            *mpirun_lines(layout, (*PASSED, *site.env, *site.proxies), modules=bool(site.modules)),
        ]
    if site.launcher == "horovodrun":
        return _horovodrun(layout)
    return own_words(site)


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


def job_script(job: Job) -> str:
    """The job script, to be given to sbatch.

    Raises:
        UserError: If the user's template cannot be read or rendered.
    """
    return render(job, DIALECT)


def directives(job: Job) -> list[str]:
    """Options of sbatch, each whole.

    Raises:
        UserError: If the site's own would change what the others say.
    """
    site, layout = job.site, job.layout
    lines = [
        f"--job-name={job_name(job.name)}",
        "--output=/dev/null",  # a directive cannot hold every path; the script opens its log itself
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
        "partition": site.partition, "account": site.account, "qos": site.qos, "constraint": site.constraint,
        "mem": memory_per_node(site, layout), "comment": comment,
    }  # fmt: skip
    lines += [f"--{option}={value}" for option, value in named.items() if value]
    if len(job.runs) > 1:
        throttle = f"%{job.throttle}" if job.throttle else ""
        lines.append(f"--array=0-{len(job.runs) - 1}{throttle}")
    return [*lines, *own_options(site)]


def _everywhere(layout: Layout) -> str:
    return f"srun --nodes={layout.nodes} --ntasks={layout.nodes} " if layout.nodes > 1 else ""


_OWN = "${SLURM_ARRAY_TASK_ID:+${SLURM_ARRAY_JOB_ID}_}${SLURM_ARRAY_TASK_ID:-${SLURM_JOB_ID:-none}}"


def _shared(job: Job) -> list[str]:
    """Lines of bash that set SCALESTUDY_NODES_SHARED: by Slurm's word, unless all CPUs there are its own."""
    # Without a controller scontrol waits for minutes.
    ask = "timeout 20 scontrol show"
    told = f'{ask} job -o "{_OWN}"; {ask} node -o "${{SLURM_JOB_NODELIST:-}}"'
    fields = '$1 == "OverSubscribe" { word = $2 } $1 == "NumCPUs" { own = $2 } $1 == "CPUTot" { all += $2 }'
    end = 'END { print word == "" ? "" : word == "NO" || (all && own >= all) ? "no" : "yes" }'
    return [
        f"SCALESTUDY_NODES_SHARED=$({{ {told}; }} 2>/dev/null |",
        f"  awk -v RS='[ \\n]+' -F= '{fields} {end}')",
        "export SCALESTUDY_NODES_SHARED",
    ]


# Slurm takes a requeue of a job that is being cancelled, and brings it back: only one that runs is put back.
_RUNS = 'timeout 10 scontrol show job -o "$SLURM_JOB_ID" | grep -q " JobState=RUNNING "'

DIALECT = Dialect(
    mark="SBATCH", program="sbatch", directives=directives, start_lines=start_lines, everywhere=_everywhere,
    own=_OWN, shared=_shared, rename=f'timeout 20 scontrol update JobId="{_OWN}" JobName=',
    job="SLURM_JOB_ID", nodes="SLURM_JOB_NODELIST", task="SLURM_ARRAY_TASK_ID",
    restarts="SLURM_RESTART_COUNT", requeue=f'{_RUNS} && scontrol requeue "$SLURM_JOB_ID"',
    unless_ended=_RUNS,
)  # fmt: skip


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
    """Lines of `sinfo -h -o SINFO_FORMAT`; a count like "12+" is its lower bound."""
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


class Slurm:
    """Slurm, by its client commands."""

    name = "slurm"
    title = "Slurm"
    program = "sbatch"
    dialect = DIALECT

    def ask(self, jobs: Sequence[str], *, cluster: str = "") -> Mapping[str, JobView]:
        """What Slurm says of these jobs."""
        return ask_jobs(jobs, cluster=cluster)

    def marked(self) -> list[MarkedJob]:
        """This user's jobs with a mark in their comment."""
        return marked()

    def cluster_name(self) -> str:
        """Slurm's name of the cluster."""
        return cluster_name()

    def largest_array(self) -> int:
        """By slurmctld's MaxArraySize and max_array_tasks."""
        return parse_array_limit(configuration())

    def options(self, batch: Batch, jobs: Sequence[str]) -> list[str]:
        """Options of sbatch for a batch."""
        return dependency_options(batch, jobs)

    def submit(self, script: Path, options: Sequence[str]) -> str:
        """Call sbatch."""
        return sbatch(script, options)

    def task(self, job: str, index: int) -> str:
        """Id of a task: "123_4"."""
        return f"{job}_{index}"

    def cancel(self, jobs: Sequence[str]) -> None:
        """Call scancel."""
        scancel(jobs)

    def in_words(self, reason: str) -> str:
        """What a pending job waits for."""
        return in_words(reason)


SLURM = QueueLauncher(Slurm(), checked=True)
