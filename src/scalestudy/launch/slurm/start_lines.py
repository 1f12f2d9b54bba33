"""The lines of a job script that start the worker's command on all ranks. Pure."""

from collections.abc import Sequence

from scalestudy.errors import UserError
from scalestudy.launch.queue.script.mpirun import PASSED, WORKER, mpirun_lines, own_words
from scalestudy.launch.queue.site.layout import Layout
from scalestudy.launch.queue.site.profile import Site
from scalestudy.study.strategies import Traits


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
