"""What `check` is about: a study, a site, or this machine alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.launch.base import launcher, launcher_of
from scalestudy.study.launchers import names

if TYPE_CHECKING:
    from scalestudy.data.sources.registry import Kind
    from scalestudy.features.check.line import Line
    from scalestudy.features.check.plan import Plan, WritableFolder
    from scalestudy.launch.base import Launcher
    from scalestudy.launch.queue.site import Site
    from scalestudy.study.file import Study
    from scalestudy.study.point import Point


@dataclass(frozen=True)
class Subject:
    """What is checked. `lines` say what could not be read; a study for a queue without a site is one."""

    study: "Study | None" = None
    points: "Sequence[Point]" = ()
    kind: "Kind | None" = None
    site: "Site | None" = None
    base: Path = Path()
    results: Path | None = None
    lines: "Sequence[Line]" = ()

    @property
    def queued(self) -> bool:
        """Whether it runs through a queue."""
        return self.site is not None or (self.study is not None and launcher_of(self.study).detached)

    @property
    def launcher(self) -> "Launcher":
        """What starts it: the study's launcher, or for a site alone the first whose queue can be checked."""
        if self.study is not None:
            return launcher_of(self.study)
        return next(each for name in names() if (each := launcher(name)).checked)


def subject(what: str | None) -> Subject:
    """Read a study file, or a site profile by its name or path.

    Raises:
        UserError: If it is neither, or is not right; a study's site is then a line that says fail.
    """
    if what is None:
        return Subject()
    path = Path(what)
    if path.suffix != ".toml" or not _is_study(path):
        from scalestudy.launch.queue.site import find_site

        return Subject(site=find_site(what, Path.cwd()))
    return _study(path)


def _is_study(path: Path) -> bool:
    from scalestudy.study.file import read_text, toml_table

    table = toml_table(read_text(path), str(path))
    return "task" in table or "sweep" in table


def _study(path: Path) -> Subject:
    from scalestudy.app.task_data import with_task_data
    from scalestudy.features.check.line import failed
    from scalestudy.launch.local.launcher import points_here
    from scalestudy.study.expand import EVERYTHING, expand
    from scalestudy.study.parse import load_study
    from scalestudy.study.store import default_folder
    from scalestudy.util.errors import UserError

    study, kind = with_task_data(load_study(path))
    results, base = default_folder(path, study.name).absolute(), path.parent
    if not launcher_of(study).detached:
        points = points_here(study)
        return Subject(study, points, kind, None, base, results)
    from scalestudy.launch.queue.layout import expand_for
    from scalestudy.launch.queue.site import find_site

    try:
        site = find_site(study.launch.site, base)
    except UserError as error:
        points = expand(study, gpus=EVERYTHING, cores=EVERYTHING)
        line = failed("site", "here", error.received, error.action)
        return Subject(study, points, kind, None, base, results, [line])
    return Subject(study, expand_for(study, site), kind, site, base, results)


def workers_of(about: Subject, workers: int | None, nodes: int | None) -> int:
    """Ranks of the check: as many as asked for, or as the study's largest point has.

    Without either: a rank for each worker that fits the nodes of a site (two, where no number is given);
    on this machine two, or as many as it has devices for.
    """
    from scalestudy.hardware import cores, devices

    if workers is not None:
        return workers
    largest = max((point.workers for point in about.points if point.traits.timed), default=1)
    if about.site is not None:
        per_node = about.site.machine().workers_per_node(_cpus(about))
        return per_node * (nodes or 2) if nodes or not about.points else largest
    fitting = devices.gpus() or len(cores.granted()) // _cpus(about)
    return min(largest, max(fitting, 2)) if about.points else max(fitting, 2)


def _cpus(about: Subject) -> int:
    return max((point.launch.cpus_per_worker for point in about.points), default=1)


def plan_of(
    about: Subject,
    *,
    workers: int,
    cache_bytes: int,
    folders: "Sequence[WritableFolder]",
    skip: Sequence[str],
    limit: float,
) -> "Plan":
    """What every rank is to look at."""
    from scalestudy.features.check.plan import Plan, WritableFolder, libraries_of, needs_of
    from scalestudy.study.engines import DEFAULT

    found = [*folders]
    if about.results is not None:
        found.insert(0, WritableFolder(path=str(about.results), purpose="results"))
    if about.site is not None and about.site.scratch:
        found.append(WritableFolder(path=about.site.scratch, purpose="scratch"))
    return Plan.model_validate(
        {
            "engine": about.points[0].engine if about.points else DEFAULT,
            "workers": workers,
            "device": about.points[0].launch.device if about.points else "auto",
            "gpus_per_node": about.site.gpus_per_node if about.site is not None else 0,
            "cpus_per_worker": _cpus(about),
            "needs": needs_of(about.points) if about.points else None,
            "libraries": libraries_of(about.points),
            "cache_bytes": cache_bytes,
            "folders": found,
            "skip": tuple(skip),
            "limit": limit,
        }
    )
