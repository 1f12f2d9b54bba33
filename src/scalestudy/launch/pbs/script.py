"""A job script in the words of PBS Professional."""

from scalestudy.errors import UserError
from scalestudy.launch.pbs.options import own_options, word
from scalestudy.launch.pbs.start_lines import start_lines
from scalestudy.launch.queue.script.job import Dialect, Job
from scalestudy.launch.queue.script.quoting import job_name
from scalestudy.launch.queue.site.gpu_request import filled, is_slurms
from scalestudy.launch.queue.site.layout import Layout
from scalestudy.launch.queue.site.memory import memory_per_node
from scalestudy.launch.queue.site.profile import Site
from scalestudy.launch.queue.site.time_limit import clock


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
