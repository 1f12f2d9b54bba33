"""A job script in Slurm's words."""

from scalestudy.launch.queue.script.job import Dialect, Job, render
from scalestudy.launch.queue.script.quoting import job_name
from scalestudy.launch.queue.site.layout import Layout
from scalestudy.launch.queue.site.time_limit import notation
from scalestudy.launch.slurm.start_lines import start_lines


def job_script(job: Job) -> str:
    """The job script, to be given to sbatch.

    Raises:
        UserError: If the user's template cannot be read or rendered.
    """
    return render(job, DIALECT)


def directives(job: Job) -> list[str]:
    """Options of sbatch, each whole."""
    site, layout = job.site, job.layout
    lines = [
        f"--job-name={job_name(job.name)}",
        "--output=/dev/null",  # a directive cannot hold every path; the script opens its log itself
        f"--nodes={layout.nodes}",
        f"--ntasks={layout.tasks}",
        f"--ntasks-per-node={layout.tasks_per_node}",
        f"--cpus-per-task={layout.cpus_per_task}",
        f"--time={notation(layout.seconds)}",
        f"--signal=B:USR1@{site.warning(layout.seconds)}",
        "--requeue",
        "--open-mode=append",
    ]
    if job.mark:
        lines.append(f"--comment={job.mark}")
    if layout.gpus_per_node:
        lines.append(site.gpu_request.format(gpus=layout.gpus_per_node))
    named = {
        "partition": site.partition, "account": site.account, "qos": site.qos,
        "constraint": site.constraint, "mem": site.memory_per_node,
    }  # fmt: skip
    lines += [f"--{option}={value}" for option, value in named.items() if value]
    if len(job.runs) > 1:
        throttle = f"%{job.throttle}" if job.throttle else ""
        lines.append(f"--array=0-{len(job.runs) - 1}{throttle}")
    return [*lines, *site.directives]


def _everywhere(layout: Layout) -> str:
    return f"srun --nodes={layout.nodes} --ntasks={layout.nodes} " if layout.nodes > 1 else ""


DIALECT = Dialect(
    mark="SBATCH", program="sbatch", directives=directives, start_lines=start_lines, everywhere=_everywhere,
    own="${SLURM_ARRAY_TASK_ID:+${SLURM_ARRAY_JOB_ID}_}${SLURM_ARRAY_TASK_ID:-${SLURM_JOB_ID:-none}}",
    job="SLURM_JOB_ID", nodes="SLURM_JOB_NODELIST", task="SLURM_ARRAY_TASK_ID",
    restarts="SLURM_RESTART_COUNT", requeue='scontrol requeue "$SLURM_JOB_ID"',
)  # fmt: skip
