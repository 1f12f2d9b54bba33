"""The job script of a point, rendered from a template."""

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
from scalestudy.util.text import count_noun

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
    quoted = ""
    for byte in text.encode("utf-8", "surrogateescape"):
        if 32 <= byte < 127 and byte not in b"\\'":
            quoted += chr(byte)
        else:
            # bash takes at most two digits after \x: what follows cannot become part of it.
            quoted += f"\\x{byte:02x}"
    return f"$'{quoted}'"


def expandable(text: str) -> str:
    """Quote a text as a word in which bash expands only $NAME and ${NAME}; $$ is a plain $."""
    words = []
    plain = ""
    # The pattern has one group, so that plain text and what the pattern matches alternate.
    for index, part in enumerate(_VARIABLE.split(text)):
        if part == "$$":
            plain += "$"
        elif index % 2 == 0:
            plain += part
        else:
            if plain:
                words.append(literal(plain))
            plain = ""
            words.append(f'"{part}"')
    if plain:
        words.append(literal(plain))
    return "".join(words) or "''"


def comment_text(text: str) -> str:
    """Return a text for a comment: unprintable characters, which could end or hide it, become "?"."""
    shown = [character if character.isprintable() else "?" for character in text]
    return "".join(shown)


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

    # A misspelt variable of the template must be an error, not an empty word of a script.
    environment = Environment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    text = contents(Path(__file__).parent / "templates" / "job.sh.j2").decode()
    return environment.from_string(text).render(_variables(job, queue))


def _variables(job: JobScript, queue: Queue) -> dict[str, Any]:
    """Return the variables of the template."""
    site, point, layout = job.site, job.point, job.layout
    gpus = layout.gpus_per_node > 0
    *launch, start = start_lines(job, queue)
    rendezvous = point.traits.rendezvous
    unproxied = rendezvous is not None and rendezvous.unproxied
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
        "unset": PROXIES if unproxied else (),
        "worker": _worker(job, gpus=gpus),
        "launch": launch,
        "start": start,
        "wrapper": _wrapper(job, queue),
    }


def _summary(point: Point, layout: JobLayout) -> str:
    workers = count_noun(point.workers, "worker")
    tasks = count_noun(layout.tasks, "process", "processes")
    nodes = count_noun(layout.nodes, "node")
    return f"{point.implementation}, {workers}: {tasks} on {nodes}"


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
    lines = ["launch=("]
    lines += [f"  {line}" for line in words]
    lines += [")", f'"${{launch[@]}}" {WORKER}']
    return lines


def _mpirun_lines(job: JobScript, queue: Queue) -> list[str]:
    """Return the lines for Open MPI's mpirun, which fills node after node and binds no cores."""
    site, layout = job.site, job.layout
    before, more, named = queue.mpirun_options()
    passed = "|".join((*PASSED, *named, *site.env))
    # What the site's modules have set is passed on too, whatever its name.
    new = ""
    if site.modules:
        new = ' || ! grep -qx "$name" <<<"$inherited"'
    command = f"mpirun -n {layout.tasks} --map-by ppr:{layout.tasks_per_node}:node"
    # By default, Open MPI binds each rank, to as little as one core, and all its threads with it.
    command += " --rank-by slot --bind-to none"
    for options in (more, *site.starter_options):
        if options:
            command += f" {options}"
    return [
        *before,
        "launch=(",
        f"  {command}",
        ")",
        "for name in $(compgen -e); do",
        f"  if [[ $name =~ ^({passed}) ]]{new}; then",
        '    launch+=(-x "$name")',
        "  fi",
        "done",
        # Open MPI refuses to start for root, as in containers.
        'if [ "$(id -u)" = 0 ]; then launch+=(--allow-run-as-root); fi',
        f'"${{launch[@]}}" {WORKER}',
    ]


def _wrapper(job: JobScript, queue: Queue) -> list[str]:
    """Return the command of the job wrapper, which runs on the first node, outside of any container."""
    limit = job.layout.seconds
    # PBS sends no signal before the time limit, so that the wrapper itself measures the time.
    warn_after = 0
    if limit is not None and not queue.warns:
        warn_after = limit - job.site.warning(limit)
    requeues = str(job.site.most_requeues)
    command = [_python(job), "-P", "-m", modules.JOB_WRAPPER, queue.name]
    return [*command, str(warn_after), requeues, '"$run"']


def _python(job: JobScript) -> str:
    if job.site.environment and not job.site.container:
        return '"$VIRTUAL_ENV/bin/python"'
    return literal(job.python)


def _exports(job: JobScript, *, gpus: bool) -> list[tuple[str, str]]:
    """Return the variables to export, each with its value quoted for bash, in this order."""
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
        # Packages in the user's home are for another Python.
        values["PYTHONNOUSERSITE"] = "1"
    if job.source:
        source = literal(str(job.source))
        values["PYTHONPATH"] = f'{source}"${{PYTHONPATH:+:$PYTHONPATH}}"'
    for name, value in site.env.items():
        values[name] = expandable(value)
    shared = shares_nodes(site, job.layout)
    values["SCALESTUDY_NODES_SHARED"] = "yes" if shared else "no"
    if job.submission:
        values["SCALESTUDY_SUBMISSION"] = job.submission
    return list(values.items())


def _worker(job: JobScript, *, gpus: bool) -> list[str]:
    """Return the command of a worker, inside of the site's wrapper and container."""
    site = job.site
    words = [literal(word) for word in site.wrapper]
    if site.scratch:
        # Created on each node, by the worker: the job script runs on the first one only.
        make = literal('mkdir -p "$TMPDIR" || unset TMPDIR; exec "$@"')
        words += ["bash", "-c", make, "bash"]
    python = _python(job)
    if site.container:
        words += container_command(site.container, _binds(job), gpus=gpus)
        python = expandable(site.container.python)
    return [*words, python, "-m", modules.WORKER, '"$run"']


def _binds(job: JobScript) -> Sequence[Path]:
    """Return the folders that a worker in a container needs, each without those inside of it."""
    folders = [job.study]
    files = job.point.files
    if files is not None:
        folders += [Path(files.prepared).parent, Path(files.split).parent]
    if job.point.task.endswith(".py"):
        folders.append(Path(job.point.task).parent)
    if job.source:
        folders.append(job.source)
    outermost = []
    for folder in dict.fromkeys(folders):
        if not set(folder.parents) & set(folders):
            outermost.append(folder)
    return outermost


def container_command(
    container: Container,
    binds: Sequence[Path],
    *,
    gpus: bool,
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
    for bind in container.binds:
        words += ["--bind", expandable(bind)]
    for folder in binds:
        # In --bind, a comma or a colon separates; --mount takes CSV, in which quotes are doubled.
        path = str(folder).replace('"', '""')
        words += ["--mount", literal(f'type=bind,"source={path}","destination={path}"')]
    return [*words, "--pwd", '"$run"', expandable(container.image)]


def container_exports(container: Container, scratch: str | None) -> dict[str, str]:
    """Return variables, quoted for bash, that keep the runtime's cache out of the home folder.

    Without scratch, the cache is in the run's folder: in /tmp, another user might own the folder.
    """
    cache = f'"$run/.{container.runtime}"'
    if scratch:
        cache = expandable(f"{scratch}/{container.runtime}")
    return {f"{container.runtime.upper()}_CACHEDIR": cache}
