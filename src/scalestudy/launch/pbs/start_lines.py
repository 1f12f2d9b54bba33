"""The lines of a job script for PBS that start the worker's command on all ranks. Pure."""

from collections.abc import Sequence

from scalestudy.errors import UserError
from scalestudy.launch.queue.script.mpirun import PASSED, WORKER, mpirun_lines, own_words
from scalestudy.launch.queue.site.layout import Layout
from scalestudy.launch.queue.site.profile import Site
from scalestudy.study.strategies import Traits


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
