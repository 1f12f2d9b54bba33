"""A job script in Slurm's words."""

from scalestudy.launch.queue.script.job import Dialect, Job, render
from scalestudy.launch.queue.script.quoting import job_name
from scalestudy.launch.queue.site.gpu_request import filled
from scalestudy.launch.queue.site.layout import Layout
from scalestudy.launch.queue.site.memory import memory_per_node
from scalestudy.launch.queue.site.time_limit import notation
from scalestudy.launch.slurm.options import own_options
from scalestudy.launch.slurm.start_lines import start_lines


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
