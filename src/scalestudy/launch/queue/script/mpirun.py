"""What job scripts of all queues have in common when they start workers. Pure."""

from collections.abc import Sequence

from scalestudy.launch.queue.site.layout import Layout
from scalestudy.launch.queue.site.profile import Site

WORKER = '"${worker[@]}"'
PASSED = (
    "PATH",
    "LD_LIBRARY_PATH",
    "PYTHON",
    "VIRTUAL_ENV",
    "TMPDIR",
    "NCCL_",
    "HOROVOD_",
    "OMP_",
    "TF_",
    "XLA_",
    "SCALESTUDY_",
)
"""Beginnings of the variables that mpirun is told to take to other nodes, besides the site's own."""


def mpirun_lines(layout: Layout, passed: Sequence[str], more: str = "") -> list[str]:
    """Lines that start workers by Open MPI's mpirun: node after node is filled, cores are left to them.

    Args:
        layout: How many processes, and where.
        passed: Beginnings of the variables that are taken to other nodes.
        more: More words for mpirun.
    """
    where = f"--map-by ppr:{layout.tasks_per_node}:node --rank-by slot --bind-to none"
    return [
        "launch=(",
        f"  mpirun -n {layout.tasks} {where}{f' {more}' if more else ''}",
        ")",
        f"for name in $(compgen -e | grep -E '^({'|'.join(passed)})'); do",
        '  launch+=(-x "$name")',
        "done",
        'if [ "$(id -u)" = 0 ]; then launch+=(--allow-run-as-root); fi',
        f'"${{launch[@]}}" {WORKER}',
    ]


def own_words(site: Site) -> list[str]:
    """The site's own words, which hold variables that its modules set, and are split as its users' are."""
    return [f"# shellcheck disable=SC2086\n{site.launcher} {WORKER}"]
