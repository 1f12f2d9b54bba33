"""The job script of a point, from a template. Pure but for reading the template."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalestudy import modules
from scalestudy.cluster.promise import PROMISED
from scalestudy.cluster.proxies import PROXIES
from scalestudy.errors import UserError
from scalestudy.files import contents
from scalestudy.launch.queue.script.container import container_exports, container_words
from scalestudy.launch.queue.script.mpirun import takes_module_variables
from scalestudy.launch.queue.script.quoting import directive, expandable, job_name, literal, one_line
from scalestudy.launch.queue.site.layout import Layout
from scalestudy.launch.queue.site.profile import Site
from scalestudy.launch.queue.submit.mark import Mark
from scalestudy.study.point import Point
from scalestudy.study.strategies import Traits


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
        throttle: Tasks of the array that may run at once; None for all.
        template: The user's own template.
        source: Folder of Scalestudy's own source, for a container that may not hold it; None where it is
            installed like any other package.
        mark: Of the submission whose runs these are; None for a job that no study has.
    """

    name: str
    runs: tuple[Path, ...]
    point: Point
    layout: Layout
    site: Site
    python: str
    throttle: int | None = None
    template: Path | None = None
    source: Path | None = None
    mark: Mark | None = None


@dataclass(frozen=True)
class Dialect:
    """What job scripts say in the words of one queue.

    Attributes:
        mark: What its directives begin with: "SBATCH" for #SBATCH.
        program: The command that takes a script.
        directives: The options of a job, each whole.
        start_lines: Lines of bash that start the worker's command on all ranks; the last is the command.
        everywhere: Words of bash that run what follows once on each node, or "" where one node is all.
        job: Variable that holds the id of the job.
        shared: Lines of bash that export SCALESTUDY_NODES_SHARED: "yes", "no", or "" where nobody says.
        own: Word with the id that a run's record has: of a task, the array's and its number.
        nodes: Variable that names its nodes.
        rename: Words of bash that give the running job the name that follows; "" where a job cannot.
        task: Variable that counts the tasks of an array.
        prepare: Lines of bash to begin with.
        restarts: Variable that counts how often the job was put back into the queue; "" where none does.
        requeue: Command by which a job puts itself back into the queue; "" where a user's job cannot.
        piped: Whether a shell may read the script from its standard input, which must stay as it is then.
        warns: Whether the queue sends USR1 before the time limit; elsewhere the script reminds itself.
    """

    mark: str
    program: str
    directives: Callable[[Job], list[str]]
    start_lines: Callable[[Site, Layout, Traits], list[str]]
    everywhere: Callable[[Layout], str]
    job: str
    own: str
    shared: Callable[[Job], Sequence[str]]
    nodes: str
    task: str
    prepare: tuple[str, ...] = ()
    rename: str = ""
    restarts: str = ""
    requeue: str = ""
    piped: bool = False
    warns: bool = True


def render(job: Job, dialect: Dialect) -> str:
    """The job script, to be given to the queue that speaks this dialect.

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
        return environment.from_string(text).render(_variables(job, dialect))
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


def _variables(job: Job, dialect: Dialect) -> dict[str, Any]:
    site, point, layout = job.site, job.point, job.layout
    gpus = layout.gpus_per_node > 0
    start = dialect.start_lines(job.site, layout, point.traits)
    return {
        "title": one_line(job.name),
        "summary": one_line(_summary(point, layout, len(job.runs))),
        "directives": [directive(each) for each in dialect.directives(job)],
        "runs": [literal(str(run)) for run in job.runs],
        "names": [literal(job_name(f"{point.study}-{run.parent.name}")) for run in job.runs],
        "rename": dialect.rename,
        "modules": [literal(module) for module in site.modules],
        "module_purge": site.module_purge,
        "exports": _exports(job, gpus=gpus),
        "unset": PROXIES if point.traits.meets == "tensorflow" else (),
        "scratch": expandable(site.scratch) if site.scratch else None,
        "gpus": gpus,
        "container": site.container is not None,
        "worker": _worker(job, gpus=gpus),
        "launch": start[:-1],
        "start": start[-1],
        "requeue_limit": site.requeue_limit,
        "mark": dialect.mark,
        "program": dialect.program,
        "submission": job.mark.submission if job.mark else "",
        "own": dialect.own,
        "job_id": f"${{{dialect.job}:-none}}",
        "job_nodes": f"${{{dialect.nodes}:-this machine}}",
        "array_task": f"${{{dialect.task}:-0}}",
        "restarted": f"${{{dialect.restarts}:-0}}" if dialect.restarts else "",
        "requeue": dialect.requeue,
        "prepare": dialect.prepare,
        "piped": dialect.piped,
        "everywhere": dialect.everywhere(layout),
        "shared": dialect.shared(job),
        "inherited": takes_module_variables(site, point.traits),
        "warning": None
        if dialect.warns or layout.seconds is None
        else layout.seconds - site.warning(layout.seconds),
        "silent_after": math.ceil(point.launch.silent_after),
        "site": site,
        "layout": layout,
        "point": point,
    }


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
        values |= container_exports(site.container, site.scratch)
        values["USER"] = '"${USER:-$(id -un)}"'
        values["PYTHONNOUSERSITE"] = "1"  # packages in the user's home are for another Python
        if job.source:
            values["PYTHONPATH"] = f'{literal(str(job.source))}"${{PYTHONPATH:+:$PYTHONPATH}}"'
    values |= {name: expandable(value) for name, value in site.env.items()}
    if job.mark:
        values["SCALESTUDY_SUBMISSION"] = job.mark.submission
    return list(values.items())


def _worker(job: Job, *, gpus: bool) -> list[str]:
    site = job.site
    words = [literal(word) for word in site.wrapper]
    if site.container:
        words += container_words(site.container, _binds(job), gpus=gpus)
        python = expandable(site.container.python)
    elif site.environment:
        python = '"$VIRTUAL_ENV/bin/python"'
    else:
        python = literal(job.python)
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
