"""What job scripts of all queues have in common when they start workers. Pure."""

from collections.abc import Sequence

from scalestudy.launch.queue.site.layout import Layout
from scalestudy.launch.queue.site.profile import Site
from scalestudy.study.strategies import Traits

WORKER = '"${worker[@]}"'
PASSED = (
    "PATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PYTHON",
    "VIRTUAL_ENV",
    "TMPDIR",
    "NCCL_",
    "UCX_",
    "UCC_",
    "FI_",
    "PSM2_",
    "PSM3_",
    "HCOLL_",
    "SHARP_",
    "MLX5_",
    "GLOO_",
    "RCCL_",
    "KERAS_",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_CACHE_",
    "MKL_",
    "OPENBLAS_",
    "KMP_",
    "HOROVOD_",
    "OMP_",
    "TF_",
    "XLA_",
    "SCALESTUDY_",
)
"""Beginnings of the variables that mpirun is told to take to other nodes, besides the site's own and those
that its modules set. CUDA_VISIBLE_DEVICES is each node's own."""


def takes_module_variables(site: Site, strategy: Traits) -> bool:
    """Whether mpirun starts the workers, and modules set variables that it is to take to other nodes."""
    return bool(site.modules) and site.launcher == "mpirun" and not strategy.one_process


def mpirun_lines(layout: Layout, passed: Sequence[str], more: str = "", *, modules: bool) -> list[str]:
    """Lines that start workers by Open MPI's mpirun: node after node is filled, cores are left to them.

    Args:
        layout: How many processes, and where.
        passed: Beginnings of the variables that are taken to other nodes.
        more: More words for mpirun.
        modules: Whether the variables that were not in `inherited` are taken too: those of the modules.
    """
    new = ' || ! grep -qx "$name" <<<"$inherited"' if modules else ""
    where = f"--map-by ppr:{layout.tasks_per_node}:node --rank-by slot --bind-to none"
    return [
        "launch=(",
        f"  mpirun -n {layout.tasks} {where}{f' {more}' if more else ''}",
        ")",
        "for name in $(compgen -e); do",
        f"  if [[ $name =~ ^({'|'.join(passed)}) ]]{new}; then",
        '    launch+=(-x "$name")',
        "  fi",
        "done",
        'if [ "$(id -u)" = 0 ]; then launch+=(--allow-run-as-root); fi',
        f'"${{launch[@]}}" {WORKER}',
    ]


def own_words(site: Site) -> list[str]:
    """The site's own words, which hold variables that its modules set, and are split as its users' are."""
    return [f"# shellcheck disable=SC2086\n{site.launcher} {WORKER}"]
