"""The job script of a point, from a template. Pure but for reading the template."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import scalestudy
from scalestudy.cluster.promise import PROMISED
from scalestudy.cluster.proxies import PROXIES
from scalestudy.launch.queue.base import Mark, Queue
from scalestudy.launch.queue.layout import Layout
from scalestudy.launch.queue.site import Container, Site
from scalestudy.study.point import Point
from scalestudy.util import modules
from scalestudy.util.errors import UserError
from scalestudy.util.files import contents

_VARIABLE = re.compile(r"(\$\$|\$[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*\})")
_MARKS = re.compile("[\x01\x7f]+")
"""Characters that bash uses itself: 5.2 puts a 1 before each in double quotes within NAME=(…)."""


def literal(text: str) -> str:
    """A word that bash leaves as it is, whatever is in it: newlines, and bytes that are no text."""
    if _MARKS.search(text) or any(0xDC80 <= ord(each) <= 0xDCFF for each in text):
        return _ansi(text)
    if "$" not in text and "`" not in text:
        return shlex.quote(text)
    # In single quotes it would do as well, but look to readers and linters like a forgotten variable.
    return f'"{_escaped(text)}"'


def expandable(text: str) -> str:
    """A word in which bash puts in $NAME and ${NAME}, and runs nothing; $$ is one plain $."""
    parts = _VARIABLE.split(text)  # text, variable, text, variable, …, text
    if all(part == "$$" for part in parts[1::2]):
        return literal(text.replace("$$", "$"))
    for index, part in enumerate(parts):
        if part == "$$" or index % 2 == 0:
            escaped = _escaped("$" if index % 2 else part)
            parts[index] = _MARKS.sub(lambda found: f'"{_ansi(found[0])}"', escaped)
    return f'"{"".join(parts)}"'


def _escaped(text: str) -> str:
    return re.sub(r'([\\"`$])', r"\\\1", text)


def _ansi(text: str) -> str:
    data = text.encode("utf-8", "surrogateescape")
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b"\\'" else f"\\x{byte:02x}" for byte in data)
    return f"$'{''.join(plain)}'"


def one_line(text: str) -> str:
    """A text for a comment: on one line, without what could end or hide it."""
    return "".join(each if each.isprintable() else "?" for each in text)


def job_name(text: str) -> str:
    """A name that Slurm takes and shows whole: plain characters, at most 60."""
    return re.sub(r"[^A-Za-z0-9._=+-]+", "_", text)[:60].strip("_") or "scalestudy"


def directive(option: str) -> str:
    """An option for an #SBATCH line, quoted where sbatch would split or strip it."""
    name, equals, value = option.partition("=")
    if not equals or re.fullmatch(r"[^\s\"'\\#]+", value):
        return option
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}="{escaped}"'


SYSTEM = frozenset(
    ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "opt", "proc", "run", "sbin", "sys", "usr", "var")
)
"""Folders that an image has of its own, which the machine's must not hide."""


def container_words(container: Container, binds: Sequence[Path], *, gpus: bool) -> list[str]:
    """Words of bash that run what follows them in the container.

    All runtimes pass the environment on (Apptainer all of it but PATH and LD_LIBRARY_PATH, which are the
    image's; pyxis all that the image does not set). The folders in `binds` are seen inside under their own
    paths. Under pyxis it is srun that enters the container: see `srun_words`.

    Args:
        container: The container.
        binds: Folders that the workers read and write.
        gpus: Whether the job has GPUs.

    Raises:
        UserError: If Charliecloud cannot bind one of the folders.
    """
    if container.runtime == "pyxis":
        return []
    if container.runtime == "charliecloud":
        return _charliecloud(container, binds)
    return _apptainer(container, binds, gpus=gpus)


def srun_words(container: Container | None, binds: Sequence[Path]) -> list[str]:
    """Words of bash for srun that have pyxis start its tasks in the container; none under other runtimes.

    Source: https://github.com/NVIDIA/pyxis/wiki/Usage

    Raises:
        UserError: If a folder's path holds what would begin the next folder, or its place inside.
    """
    if container is None or container.runtime != "pyxis":
        return []
    mounts = [expandable(each if ":" in each else f"{each}:{each}") for each in container.binds]
    for bind in binds:
        if "," in str(bind) or ":" in str(bind):
            raise UserError(
                "a path without commas and colons, at which pyxis splits it", str(bind),
                "Keep the study elsewhere.",
            )  # fmt: skip
        mounts.append(literal(f"{bind}:{bind}"))
    mounted = [f"--container-mounts={','.join(mounts)}"] if mounts else []
    return [f"--container-image={expandable(container.image)}", *mounted, '--container-workdir="$run"']


def container_exports(container: Container, scratch: str | None, *, gpus: bool) -> dict[str, str]:
    """Variables of bash (quoted) that the runtime reads: its cache stays out of the home folder.

    Without a folder named for it, it is in the run's: one in /tmp another user could have made before us.
    """
    if container.runtime == "charliecloud":
        return {}
    if container.runtime == "pyxis":
        # What enroot's hook brings the driver's libraries by, where the image does not say so itself.
        wanted = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
        return wanted if gpus and container.gpu == "nv" else {"NVIDIA_VISIBLE_DEVICES": "void"}
    name = f"{container.runtime.upper()}_CACHEDIR"
    cache = container.cache or (f"{scratch}/{container.runtime}" if scratch else None)
    return {name: expandable(cache) if cache else f'"$run/.{container.runtime}"'}


def _apptainer(container: Container, binds: Sequence[Path], *, gpus: bool) -> list[str]:
    words = [container.runtime, "exec"]
    if gpus and container.gpu != "none":
        words.append(f"--{container.gpu}")
    for given in container.binds:
        words += ["--bind", expandable(given)]
    for bind in binds:
        # For --bind, a comma or a colon would begin the next folder or the place inside.
        words += ["--mount", literal(_mount(str(bind)))]
    for overlay in container.overlay:
        words += ["--overlay", expandable(overlay)]
    return [*words, "--pwd", '"$run"', expandable(container.image)]


def _mount(path: str) -> str:
    """Apptainer's --mount, which takes any path: CSV, in which a quote is doubled."""
    doubled = path.replace('"', '""')
    return f'type=bind,"source={doubled}","destination={doubled}"'


def _charliecloud(container: Container, binds: Sequence[Path]) -> list[str]:
    words = ["ch-run", "--cd", '"$run"']
    for given in container.binds:
        words += ["--bind", expandable(given)]
    for place in dict.fromkeys(_place(bind) for bind in binds):
        if place is not None and str(place) not in container.binds:
            words += ["--bind", literal(_bindable(place))]
    return [*words, expandable(container.image), "--"]


def _place(path: Path) -> Path | None:
    """What is bound to see a path: ch-run makes no folders in an image, which has only the topmost ones.

    The machine's /tmp is seen without.
    """
    if len(path.parts) < 2 or path.parts[1] == "tmp":
        return None
    return path if path.parts[1] in SYSTEM else Path("/", path.parts[1])


def _bindable(path: Path) -> str:
    if ":" in str(path):
        raise UserError(
            "a path without a colon, at which ch-run splits it", str(path), "Keep the study elsewhere."
        )
    return str(path)


def own_source() -> Path | None:
    """The folder that Scalestudy is imported from, where it is not installed like any other package.

    What the workers' environment or container has installed may be another version.
    """
    folder = Path(scalestudy.__file__).resolve().parents[1]
    return None if folder.name in ("site-packages", "dist-packages") else folder


WORKER = '"${worker[@]}"'
PASSED = (
    "PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHON", "VIRTUAL_ENV", "TMPDIR", "NCCL_", "UCX_", "UCC_",
    "FI_", "PSM2_", "PSM3_", "HCOLL_", "SHARP_", "MLX5_", "GLOO_", "RCCL_", "KERAS_", "CUDA_HOME",
    "CUDA_PATH", "CUDA_CACHE_", "MKL_", "OPENBLAS_", "KMP_", "HOROVOD_", "OMP_", "TF_", "XLA_", "SCALESTUDY_",
)  # fmt: skip
"""Beginnings of the variables that mpirun is told to take to other nodes, besides the site's own and those
that its modules set. CUDA_VISIBLE_DEVICES is each node's own."""


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


@dataclass(frozen=True)
class Job:
    """A job script to be.

    Attributes:
        name: Name of the job.
        runs: Absolute run folders; more than one make an array, one task each.
        point: What is run (of an array, the first: all are laid out alike).
        layout: What the job asks for.
        site: Where.
        python: Python of the workers, where the site names neither an environment nor a container.
        template: The user's own template.
        source: Folder of Scalestudy's own source, which the environment of the workers may not hold; None
            where it is installed like any other package.
        mark: Of the submission whose runs these are; None for a job that no study has.
    """

    name: str
    runs: tuple[Path, ...]
    point: Point
    layout: Layout
    site: Site
    python: str
    template: Path | None = None
    source: Path | None = None
    mark: Mark | None = None


def render(job: Job, queue: Queue) -> str:
    """The job script, to be given to that queue.

    A template of the user's sees the same variables as ours (templates/job.sh.j2); all are words of bash
    already quoted, or lists of such, but for `site`, `layout` and `point`.

    Raises:
        UserError: If the user's template cannot be read or rendered.
    """
    from jinja2 import StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    # A template of the user's fills in words; it neither counts for ever nor reaches into Python.
    environment = SandboxedEnvironment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    try:
        text = template_text(job.template)
        return environment.from_string(text).render(_variables(job, queue))
    except Exception as error:  # a template calls what it likes, and raises what that raises
        if job.template is None:
            raise
        line = getattr(error, "lineno", None)
        where = f", line {line}" if line else ""
        raise UserError(
            "a template of a job script (Jinja2) that can be read and filled",
            f"{job.template}{where}: {error}",
            "Correct it; `scalestudy site template` prints ours, and what a template can use.",
        ) from None


def template_text(path: Path | None = None) -> str:
    """Text of a template of job scripts: ours when no path is given."""
    own = Path(__file__).parent / "templates" / "job.sh.j2"
    return contents(path or own).decode()


def _variables(job: Job, queue: Queue) -> dict[str, Any]:
    site, point, layout = job.site, job.point, job.layout
    gpus = layout.gpus_per_node > 0
    start = queue.start_lines(site, layout, point.traits, srun_words(site.container, _binds(job)))
    return {
        "title": one_line(job.name),
        "summary": one_line(_summary(point, layout, len(job.runs))),
        "directive": queue.directive,
        "options": [directive(option) for option in queue.directives(job)],
        "submits": queue.submits,
        "runs": [literal(str(run)) for run in job.runs],
        "array_index": queue.array_index,
        "reads_stdin": queue.reads_stdin,
        "prepare": queue.prepare(job),
        "modules": [literal(module) for module in site.modules],
        "module_purge": site.module_purge,
        "inherited": site.launcher == "mpirun" and not point.traits.one_process,
        "exports": _exports(job, gpus=gpus),
        "unset": PROXIES if point.traits.rendezvous and point.traits.rendezvous.unproxied else (),
        "scratch": expandable(site.scratch) if site.scratch else None,
        "everywhere": queue.everywhere(layout),
        "worker": _worker(job, gpus=gpus),
        "launch": start[:-1],
        "start": start[-1],
        "wrapper": _wrapper(job, queue),
        "site": site,
        "layout": layout,
        "point": point,
    }


def _wrapper(job: Job, queue: Queue) -> list[str]:
    """It runs on the first node, outside of any container."""
    words = [_python(job), "-P", "-m", modules.JOB_WRAPPER, queue.name, str(job.site.requeue_limit)]
    limit = job.layout.seconds
    return [*words, str(0 if queue.warns or limit is None else limit - job.site.warning(limit)), '"$run"']


def _python(job: Job) -> str:
    in_environment = job.site.environment and not job.site.container
    return '"$VIRTUAL_ENV/bin/python"' if in_environment else literal(job.python)


def output_pattern(job: Job, name: str) -> str:
    """Where a queue is to put what the script prints before it has opened its log: beside the script.

    Slurm has no way to name a folder with a backslash in it.
    """
    study = _study(job.runs[0])
    folder = study / "jobs" if study != job.runs[0] else study
    text = str(folder).replace("%", "%%")
    return f"{text}/{name}" if text.isprintable() and "\\" not in text else "/dev/null"


def _summary(point: Point, layout: Layout, runs: int) -> str:
    nodes = f"{layout.nodes} node{'s' * (layout.nodes > 1)}"
    tasks = f"{layout.tasks} process{'es' * (layout.tasks > 1)}"
    text = f"{point.implementation}, {point.workers} worker{'s' * (point.workers > 1)}: {tasks} on {nodes}"
    return f"{text}, {runs} runs" if runs > 1 else text


def _exports(job: Job, *, gpus: bool) -> list[tuple[str, str]]:
    site = job.site
    values = {name: expandable(value) for name, value in site.proxies.items()}
    if site.environment and not site.container:
        values["VIRTUAL_ENV"] = expandable(site.environment)
        values["PATH"] = '"$VIRTUAL_ENV/bin:$PATH"'
    values["PYTHONUNBUFFERED"] = "1"
    values["OMP_NUM_THREADS"] = str(job.layout.cpus_per_task)
    if gpus:
        values[PROMISED] = str(job.layout.gpus_per_node)
        values["TF_GPU_THREAD_MODE"] = "gpu_private"
        values["NCCL_DEBUG"] = '"${NCCL_DEBUG:-WARN}"'
    if site.container:
        values |= container_exports(site.container, site.scratch, gpus=gpus)
        values["USER"] = '"${USER:-$(id -un)}"'
        values["PYTHONNOUSERSITE"] = "1"  # packages in the user's home are for another Python
    if job.source:
        values["PYTHONPATH"] = f'{literal(str(job.source))}"${{PYTHONPATH:+:$PYTHONPATH}}"'
    values |= {name: expandable(value) for name, value in site.env.items()}
    # The wrapper knows it, and mpirun takes it along.
    values["SCALESTUDY_NODES_SHARED"] = '"${SCALESTUDY_NODES_SHARED:-}"'
    if job.mark:
        values["SCALESTUDY_SUBMISSION"] = job.mark.submission
    return list(values.items())


def _worker(job: Job, *, gpus: bool) -> list[str]:
    words, python = [literal(word) for word in job.site.wrapper], _python(job)
    if job.site.container:
        words += container_words(job.site.container, _binds(job), gpus=gpus)
        python = expandable(job.site.container.python)
    return [*words, python, "-m", modules.WORKER, '"$run"']


def _study(run: Path) -> Path:
    """STUDY of STUDY/points/NAME/run-K; a run of its own stays as it is."""
    return run.parents[2] if run.parent.parent.name == "points" else run


def _binds(job: Job) -> list[Path]:
    """Folders that the workers read and write: the study's, the prepared data's, the task's."""
    folders = [_study(run) for run in job.runs]
    if job.point.files is not None:  # their folders hold those of an array's other points, too
        folders += [Path(job.point.files.prepared).parent, Path(job.point.files.split).parent]
    if job.point.task.endswith(".py"):
        folders.append(Path(job.point.task).parent)
    if job.source:
        folders.append(job.source)
    seen = dict.fromkeys(folders)
    return [each for each in seen if not any(other in each.parents for other in seen)]
