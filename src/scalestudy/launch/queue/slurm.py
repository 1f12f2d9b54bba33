"""Slurm: its client commands, and the options of its job scripts."""

import contextlib
import getpass
import os
import re
from collections.abc import Mapping, Sequence

import psutil

from scalestudy.cluster.slurm_lists import tasks_per_node
from scalestudy.launch.job_view import UNKNOWN, JobView
from scalestudy.launch.queue.batch_queue import Queue
from scalestudy.launch.queue.job_script import job_name
from scalestudy.launch.queue.point_job import (
    JobLayout,
    JobScript,
    gpu_request,
    memory_per_node,
)
from scalestudy.launch.queue.site_profile import Site, notation
from scalestudy.launch.queue.slurm_output import (
    MARKED_FORMAT,
    SACCT_FORMAT,
    SINFO_FORMAT,
    SQUEUE_FORMAT,
    Nodes,
    parse_sacct,
    parse_sinfo,
    parse_squeue,
    split_rows,
)
from scalestudy.launch.queue.slurm_reasons import explain_reason
from scalestudy.launch.scheduler import (
    MARK,
    QUEUE_ERRORS,
    QueueAbsent,
    QueueRefused,
    QueueUnreachable,
    chunks,
    read_mark,
)
from scalestudy.launch.waiting import Waiting
from scalestudy.store.records import Allocation
from scalestudy.util.errors import UserError

CLIENT_VARIABLES = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_JWT")
"""Variables that tell the client commands which cluster to use."""
FORMATS = ("SQUEUE_", "SACCT_", "SCONTROL_", "SLURM_TIME_FORMAT", "SLURM_BITSTR_LEN")
"""Prefixes of variables that change the output of the client commands, which the parsers do not expect."""
_OF_RANKS = """
    RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE LOCAL_SIZE GROUP_RANK GROUP_WORLD_SIZE ROLE_RANK
    ROLE_WORLD_SIZE MASTER_ADDR MASTER_PORT TORCHELASTIC_ OMPI_ PMI_ PMIX_ PALS_ MPI_LOCAL TF_CONFIG
"""
OF_RANKS = tuple(_OF_RANKS.split())
"""Prefixes of variables by which torchrun, mpirun and other launchers tell a process its rank. Others of
LOCAL_*, such as LOCAL_SCRATCH, are sites' own."""
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
"""Advice by a phrase in a message of sbatch; the first phrase found counts."""
_RESERVED = """
    array clusters comment cpus-per-gpu dependency error exclusive input mem mem-per-cpu mem-per-gpu
    no-requeue ntasks-per-core ntasks-per-gpu ntasks-per-socket oversubscribe requeue signal tasks-per-node
    test-only time-min wait wrap
"""


class Slurm(Queue):
    """Slurm, used through its client commands.

    Without a controller they wait for minutes. Their output depends on the language and on variables.
    """

    name = "slurm"
    title = "Slurm"
    submits = ("sbatch", "--parsable")
    cancels = ("scancel", "--quiet")
    directive = "SBATCH"
    reserved = tuple(_RESERVED.split())
    job_variable = "SLURM_JOB_ID"
    nodes_variable = "SLURM_JOB_NODELIST"
    job_form = re.compile(r"(\d+)(?:;.*)?")
    requeues = True
    full = "MaxSubmit"  # AssocMaxSubmitJobLimit, QOSMaxSubmitJobPerUserLimit, …
    unreachable = (
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

    def environment(
        self,
        variables: Mapping[str, str],
        *,
        submitting: bool,
    ) -> dict[str, str]:
        """Return the variables of a command, without those that would change its output.

        When a job is submitted, variables of the allocation or of the launcher that the user may be in are
        removed (SLURM_* of salloc or of a notebook's job would reach its srun, ranks of torchrun or mpirun
        its workers), as are sbatch's own (SBATCH_*), which would override the profile.
        """
        unwanted: tuple[str, ...] = FORMATS
        if submitting:
            unwanted = ("SLURM_", "SBATCH_", *OF_RANKS)
        kept = {}
        for name, value in variables.items():
            if name in CLIENT_VARIABLES or not name.startswith(unwanted):
                kept[name] = value
        return kept

    def failed(
        self,
        program: str,
        code: int,
        output: str,
        errors: str,
    ) -> str:
        """Raise the error of a failed command; without a slurm.conf there is no cluster (QueueAbsent)."""
        if "configuration source" in (errors or output):
            raise QueueAbsent(
                self.title,
                program,
                "commands that know of no cluster (no slurm.conf)",
            )
        return super().failed(program, code, output, errors)

    def advice(self, words: str) -> str:
        """Return the key of the site profile to correct, and the command that shows valid values."""
        for phrase, advice in ADVICE.items():
            if phrase in words.lower():
                return advice
        return ""

    # Jobs

    def ask(self, jobs: Sequence[str], *, cluster: str = "") -> dict[str, JobView]:
        """Return what Slurm reports about these jobs.

        squeue is called for a hundred jobs at once, and sacct for those that are over or not shown by squeue.

        Raises:
            QueueUnreachable: If Slurm does not answer, or if this machine talks to another cluster.
            QueueRefused: If Slurm refuses to answer.
            QueueAbsent: If this machine has no Slurm.
        """
        views = self._in_queue(jobs)
        over = [job for job in jobs if job not in views or views[job].ended]
        if not over:
            return views
        for job, record in self._accounted(over).items():
            if job not in views:
                # squeue may hide another user's job (PrivateData) that accounting shows.
                views[job] = record
            elif record.ended:  # accounting lags behind the controller
                views[job] = record.model_copy(update={"reason": views[job].reason})
        lost = [job for job in jobs if job not in views]
        # Login nodes of two clusters may share a home: the other cluster does not know the jobs.
        if lost and cluster and (here := self.cluster_name()) != cluster:
            why = f"this machine uses the cluster {here}, but the jobs are on {cluster}"
            raise QueueUnreachable(self.title, "squeue", why)
        return views | {job: JobView(job=job, state=UNKNOWN) for job in lost}

    def _in_queue(self, jobs: Sequence[str]) -> dict[str, JobView]:
        views: dict[str, JobView] = {}
        for ids in chunks(jobs):
            try:
                text = self.call(
                    "squeue",
                    "-h",
                    "-t",
                    "all",
                    "-o",
                    SQUEUE_FORMAT,
                    "-j",
                    ",".join(ids),
                )
            except QueueRefused as refused:
                # squeue fails if the only job is forgotten; among several, it skips forgotten ones.
                if "invalid job id" not in refused.words.lower():
                    raise
            else:
                views |= parse_squeue(text)
        return {job: views[job] for job in jobs if job in views}

    def _accounted(self, jobs: Sequence[str]) -> dict[str, JobView]:
        views: dict[str, JobView] = {}
        # Many clusters have no accounting; where it is down, squeue's last word must do.
        with contextlib.suppress(QueueRefused, QueueUnreachable):
            for ids in chunks(jobs):
                views |= parse_sacct(
                    self.call(
                        "sacct",
                        "-P",
                        "-n",
                        "-X",
                        "-o",
                        SACCT_FORMAT,
                        "-j",
                        ",".join(ids),
                    )
                )
        return views

    def marked(self) -> dict[str, str]:
        """Return the ids, by submission, of this user's jobs that carry a mark in their comment."""
        text = self.call("squeue", "-h", "-u", getpass.getuser(), "-o", MARKED_FORMAT)
        marked = {}
        for job, comment in split_rows(text, 2):
            submission = read_mark(comment)
            if submission and job.isdecimal():
                marked[submission] = job
        return marked

    def cluster_name(self) -> str:
        """Return Slurm's name of the cluster that this machine talks to; "" if unknown."""
        try:
            text = self.call("scontrol", "show", "config")
        except QueueRefused:
            return ""
        match = re.search(r"(?m)^ClusterName\s*=\s*(\S+)", text)
        if match is None:
            return ""
        return match[1]

    def accounts(self) -> list[str]:
        """Return the accounts that the user may charge; empty if accounting is absent or does not answer."""
        user = f"user={getpass.getuser()}"
        try:
            text = self.call(
                "sacctmgr",
                "-n",
                "-P",
                "show",
                "assoc",
                user,
                "format=Account",
            )
        except QUEUE_ERRORS:
            return []
        return [line.strip() for line in text.splitlines() if line.strip()]

    def partitions(self) -> list["Nodes"]:
        """Return the nodes of all partitions. Without -e, sinfo would merge different nodes ("12+")."""
        return parse_sinfo(self.call("sinfo", "-h", "-e", "-o", SINFO_FORMAT))

    def after(self, job: str) -> list[str]:
        """Return the options for a dependency; a job whose dependency has failed would wait for ever."""
        return [f"--dependency=afterok:{job}", "--kill-on-invalid-dep=yes"]

    def explain(self, reason: str) -> Waiting:
        """Explain why a job waits, from the reason that squeue shows."""
        return explain_reason(reason)

    # Job scripts

    def directives(self, job: JobScript) -> list[str]:
        """Return the options of sbatch, with their long names."""
        site, layout = job.site, job.layout
        requeue = "--no-requeue"
        if site.most_requeues:
            requeue = "--requeue"
        lines = [
            f"--job-name={job_name(job.name)}",
            # A single % would begin a pattern, such as %j for the job's id.
            f"--output={job.printed.replace('%', '%%')}",
            f"--nodes={layout.nodes}",
            f"--ntasks={layout.tasks}",
            f"--ntasks-per-node={layout.tasks_per_node}",
            f"--cpus-per-task={layout.cpus_per_task}",
            f"--time={notation(layout.seconds)}",
            # Either is written, since the default is the cluster's (JobRequeue).
            requeue,
            # A requeued job would truncate what its first start has printed.
            "--open-mode=append",
        ]
        if layout.seconds is not None:
            # B: only to the script's shell. Without it, only the steps would get the signal.
            lines.append(f"--signal=B:USR1@{site.warning(layout.seconds)}")
        if site.whole_nodes:
            lines.append("--exclusive")
        if layout.gpus_per_node and site.gpu_request:
            lines.append(gpu_request(site, layout))
        named = {
            "partition": site.partition,
            "account": site.account,
            "qos": site.qos,
            "constraint": site.constraint,
            "mem": memory_per_node(site, layout),
            "comment": job.submission and MARK.format(submission=job.submission),
        }
        return lines + [
            f"--{option}={value}" for option, value in named.items() if value
        ]

    def option_names(self, option: str) -> set[str]:
        """Return the long name of an option, "--name=value"."""
        match = re.fullmatch(r"--([a-z][a-z0-9-]*)(=.*)?", option)
        if match is None:
            return set()
        return {match[1]}

    def launch_command(self, site: Site, layout: JobLayout) -> list[str] | None:
        """Return the srun command, with a number of tasks per node only if all nodes have as many."""
        if site.starter != "srun":
            return None
        counts = f"srun --nodes={layout.nodes} --ntasks={layout.tasks}"
        if layout.nodes * layout.tasks_per_node == layout.tasks:
            counts += f" --ntasks-per-node={layout.tasks_per_node}"
        lines = [
            counts,
            # Not inherited from the job since Slurm 22.05.
            f"--cpus-per-task={layout.cpus_per_task} --distribution=block:block",
            "--kill-on-bad-exit=1 --mpi=none --export=ALL",
        ]
        if layout.gpus_per_node:
            # Slurm binds by cores only; a worker chooses cores near its GPU itself.
            lines.append("--cpu-bind=none")
        return lines

    def mpirun_options(self) -> tuple[list[str], str, tuple[str, ...]]:
        """Give mpirun's step all cores of a node; workers restrict themselves to their own."""
        unbound = "export SLURM_CPU_BIND=none # mpirun's own step must have all cores of a node"
        return [unbound], "", ()

    # Inside a job

    def own_allocation(self) -> Allocation | None:
        """Return the allocation from the variables of a job, and this process's start as its beginning.

        Newer versions of Slurm give the job's start, which precedes this process by the prolog.
        """
        try:
            cores = tasks_per_node(os.environ["SLURM_JOB_CPUS_PER_NODE"])
            gpus = int(os.environ.get("SLURM_GPUS_ON_NODE") or 0) * len(cores)
            began = float(
                os.environ.get("SLURM_JOB_START_TIME") or psutil.Process().create_time()
            )
        except (KeyError, ValueError, UserError):
            return None
        return Allocation(
            job=self.own_job(),
            nodes=len(cores),
            cores=sum(cores),
            gpus=gpus,
            began=began,
        )

    def is_running(self) -> bool:
        """Whether Slurm reports the job as running."""
        try:
            job = self.call("scontrol", "show", "job", "-o", self.own_job())
        except QUEUE_ERRORS:
            return False
        return " JobState=RUNNING " in job

    def requeue(self) -> bool:
        """Call `scontrol requeue`, if the job is running.

        Slurm would also requeue a job that is being cancelled.
        """
        if not self.is_running():
            return False
        try:
            self.call("scontrol", "requeue", self.own_job())
        except QUEUE_ERRORS as error:
            print(error, flush=True)
            return False
        return True
