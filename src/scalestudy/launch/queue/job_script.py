"""The job script of a point, rendered from a template."""

import itertools
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scalestudy.cluster.resolve import PROXIES
from scalestudy.cluster.worker_environment import ASSIGNED
from scalestudy.config.point import Point
from scalestudy.launch.queue.batch_queue import WORKER, Queue
from scalestudy.launch.queue.point_job import JobLayout, JobScript, shares_nodes
from scalestudy.launch.queue.site_profile import Container
from scalestudy.util import modules
from scalestudy.util.files import contents

_VARIABLE = re.compile(r"(\$\$|\$[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*\})")
_BINARY = re.compile("[\x01\x7f\udc80-\udcff]")
"""Bytes that are not valid text, and two that bash uses internally."""
_PASSED = """
    PATH LD_LIBRARY_PATH LD_PRELOAD PYTHON VIRTUAL_ENV TMPDIR NCCL_ UCX_ UCC_ FI_ PSM2_ PSM3_ HCOLL_ SHARP_
    MLX5_ GLOO_ RCCL_ KERAS_ CUDA_HOME CUDA_PATH CUDA_CACHE_ MKL_ OPENBLAS_ KMP_ HOROVOD_ OMP_ TF_ XLA_
    SCALESTUDY_
"""
PASSED = tuple(_PASSED.split())
"""Prefixes of the variables that mpirun exports to other nodes, besides those of the site and of its modules.
CUDA_VISIBLE_DEVICES differs between nodes and is not exported."""


def literal(text: str) -> str:
    """Quote a text, which may hold newlines and invalid bytes, as a word that bash does not change."""
    if not _BINARY.search(text):
        return shlex.quote(text)
    data = text.encode("utf-8", "surrogateescape")
    plain = (
        chr(byte) if 32 <= byte < 127 and byte not in b"\\'" else f"\\x{byte:02x}"
        for byte in data
    )
    return f"$'{''.join(plain)}'"


def expandable(text: str) -> str:
    """Quote a text as a word in which bash expands only $NAME and ${NAME}; $$ is a plain $."""
    words = []
    parts = (
        (part, index % 2 == 1 and part != "$$")
        for index, part in enumerate(_VARIABLE.split(text))
    )
    for is_variable, group in itertools.groupby(parts, key=lambda part: part[1]):
        joined = [part for part, _ in group]
        if is_variable:
            words += [f'"{part}"' for part in joined]
        else:
            words.append("".join("$" if part == "$$" else part for part in joined))
            words[-1] = literal(words[-1]) if words[-1] else ""
    return "".join(words) or "''"


def comment_text(text: str) -> str:
    """Return a text for a comment: unprintable characters, which could end or hide it, become "?"."""
    return "".join(character if character.isprintable() else "?" for character in text)


def job_name(text: str) -> str:
    """Return a job name of at most 60 plain characters, which Slurm accepts and shows in full."""
    return re.sub(r"[^A-Za-z0-9._=+-]+", "_", text)[:60].strip("_") or "scalestudy"


def directive(option: str) -> str:
    """Return an option for an #SBATCH line, quoted if sbatch would split or strip it."""
    name, equals, value = option.partition("=")
    if not equals or re.fullmatch(r"[^\s\"'\\#]+", value):
        return option
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}="{escaped}"'


def render_script(job: JobScript, queue: Queue) -> str:
    """Return the text of a job script for a queue.

    Raises:
        UserError: If the site's directives do not suit the queue.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    text = contents(Path(__file__).parent / "templates" / "job.sh.j2").decode()
    return environment.from_string(text).render(_variables(job, queue))


def _variables(job: JobScript, queue: Queue) -> dict[str, Any]:
    site, point, layout = job.site, job.point, job.layout
    gpus = layout.gpus_per_node > 0
    start = start_lines(job, queue)
    return {
        "title": comment_text(job.name),
        "summary": _summary(point, layout),
        "directive": queue.directive,
        "options": [directive(option) for option in queue.options(job)],
        "submits": queue.submits[0],
        "run": literal(str(job.run)),
        "reads_stdin": queue.reads_stdin,
        "prepare": queue.prepare(),
        "module_purge": site.purges_modules,
        "modules": [literal(module) for module in site.modules],
        "inherited": site.starter == "mpirun" and not point.traits.one_process,
        "exports": _exports(job, gpus=gpus),
        "unset": PROXIES
        if point.traits.rendezvous and point.traits.rendezvous.unproxied
        else (),
        "worker": _worker(job, gpus=gpus),
        "launch": start[:-1],
        "start": start[-1],
        "wrapper": _wrapper(job, queue),
    }


def _summary(point: Point, layout: JobLayout) -> str:
    nodes = f"{layout.nodes} node{'s' * (layout.nodes > 1)}"
    tasks = f"{layout.tasks} process{'es' * (layout.tasks > 1)}"
    return f"{point.implementation}, {point.workers} worker{'s' * (point.workers > 1)}: {tasks} on {nodes}"


def start_lines(job: JobScript, queue: Queue) -> list[str]:
    """Return lines of bash, the last of which starts all ranks.

    A strategy with a single process is started on the first node without a launcher.
    """
    site, layout = job.site, job.layout
    if job.point.traits.one_process:
        return [WORKER]
    if site.starter == "mpirun":
        return _mpirun_lines(job, queue)
    words = queue.launch_command(site, layout)
    if words is None:
        return [f"{site.launcher} {WORKER}"]
    if site.starter_options:
        words = [*words, " ".join(site.starter_options)]
    return [
        "launch=(",
        *(f"  {line}" for line in words),
        ")",
        f'"${{launch[@]}}" {WORKER}',
    ]


def _mpirun_lines(job: JobScript, queue: Queue) -> list[str]:
    """Return the lines for Open MPI's mpirun, which fills node after node and binds no cores."""
    site, layout = job.site, job.layout
    before, more, named = queue.mpirun_options()
    passed = (*PASSED, *named, *site.env)
    new = ' || ! grep -qx "$name" <<<"$inherited"' if site.modules else ""
    options = " ".join(filter(None, [more, *site.starter_options]))
    where = f"--map-by ppr:{layout.tasks_per_node}:node --rank-by slot --bind-to none"
    return [
        *before,
        "launch=(",
        f"  mpirun -n {layout.tasks} {where} {options}".rstrip(),
        ")",
        "for name in $(compgen -e); do",
        f"  if [[ $name =~ ^({'|'.join(passed)}) ]]{new}; then",
        '    launch+=(-x "$name")',
        "  fi",
        "done",
        'if [ "$(id -u)" = 0 ]; then launch+=(--allow-run-as-root); fi',
        f'"${{launch[@]}}" {WORKER}',
    ]


def _wrapper(job: JobScript, queue: Queue) -> list[str]:
    """Return the command of the job wrapper, which runs on the first node, outside of any container."""
    words = [_python(job), "-P", "-m", modules.JOB_WRAPPER, queue.name]
    limit = job.layout.seconds
    warn_after = 0 if queue.warns or limit is None else limit - job.site.warning(limit)
    return [*words, str(warn_after), str(job.site.most_requeues), '"$run"']


def _python(job: JobScript) -> str:
    in_environment = job.site.environment and not job.site.container
    return '"$VIRTUAL_ENV/bin/python"' if in_environment else literal(job.python)


def _exports(job: JobScript, *, gpus: bool) -> list[tuple[str, str]]:
    site = job.site
    values = {}
    if site.environment and not site.container:
        values["VIRTUAL_ENV"] = expandable(site.environment)
        values["PATH"] = '"$VIRTUAL_ENV/bin:$PATH"'
    if site.scratch:
        values["TMPDIR"] = expandable(site.scratch)
    values["PYTHONUNBUFFERED"] = "1"
    values["OMP_NUM_THREADS"] = str(job.layout.cpus_per_task)
    if gpus:
        values[ASSIGNED] = str(job.layout.gpus_per_node)
        values["TF_GPU_THREAD_MODE"] = "gpu_private"
        values["NCCL_DEBUG"] = '"${NCCL_DEBUG:-WARN}"'
    if site.container:
        values |= container_exports(site.container, site.scratch)
        values["USER"] = '"${USER:-$(id -un)}"'
        values["PYTHONNOUSERSITE"] = (
            "1"  # packages in the user's home are for another Python
        )
    if job.source:
        values["PYTHONPATH"] = (
            f'{literal(str(job.source))}"${{PYTHONPATH:+:$PYTHONPATH}}"'
        )
    values |= {name: expandable(value) for name, value in site.env.items()}
    values["SCALESTUDY_NODES_SHARED"] = (
        "yes" if shares_nodes(site, job.layout) else "no"
    )
    if job.submission:
        values["SCALESTUDY_SUBMISSION"] = job.submission
    return list(values.items())


def _worker(job: JobScript, *, gpus: bool) -> list[str]:
    words, python = [literal(word) for word in job.site.wrapper], _python(job)
    if job.site.scratch:  # created on each node
        words += [
            "bash",
            "-c",
            literal('mkdir -p "$TMPDIR" || unset TMPDIR; exec "$@"'),
            "bash",
        ]
    if job.site.container:
        words += container_command(job.site.container, _binds(job), gpus=gpus)
        python = expandable(job.site.container.python)
    return [*words, python, "-m", modules.WORKER, '"$run"']


def _binds(job: JobScript) -> Sequence[Path]:
    folders = [job.study]
    if job.point.files is not None:
        folders += [
            Path(job.point.files.prepared).parent,
            Path(job.point.files.split).parent,
        ]
    if job.point.task.endswith(".py"):
        folders.append(Path(job.point.task).parent)
    if job.source:
        folders.append(job.source)
    unique = dict.fromkeys(folders)
    return [
        folder
        for folder in unique
        if not any(other in folder.parents for other in unique)
    ]


def container_command(
    container: Container, binds: Sequence[Path], *, gpus: bool
) -> list[str]:
    """Return words of bash that run a command in the container.

    The environment is passed on, except PATH and LD_LIBRARY_PATH, which are the image's.

    Args:
        container: The container.
        binds: Folders that the workers read and write, mounted inside under the same paths.
        gpus: Whether the job has GPUs.
    """
    words = [container.runtime, "exec"]
    if gpus:
        words.append("--nv")
    words += [word for bind in container.binds for word in ("--bind", expandable(bind))]
    for bind in binds:
        # In --bind, a comma or a colon separates; --mount takes CSV, in which quotes are doubled.
        path = str(bind).replace('"', '""')
        words += ["--mount", literal(f'type=bind,"source={path}","destination={path}"')]
    return [*words, "--pwd", '"$run"', expandable(container.image)]


def container_exports(container: Container, scratch: str | None) -> dict[str, str]:
    """Return variables, quoted for bash, that keep the runtime's cache out of the home folder.

    Without scratch, the cache is in the run's folder: in /tmp, another user might own the folder.
    """
    value = (
        expandable(f"{scratch}/{container.runtime}")
        if scratch
        else f'"$run/.{container.runtime}"'
    )
    return {f"{container.runtime.upper()}_CACHEDIR": value}
