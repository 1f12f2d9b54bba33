"""What `check` is about: a study, a site, or this machine alone; and what every rank looks at for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.app.prepare import with_task_data
from scalestudy.features.check.plan import Plan, WritableFolder, libraries_of, needs_of
from scalestudy.features.check.report import Topic
from scalestudy.hardware import cores, devices
from scalestudy.launch.base import Launcher, launcher, launcher_of
from scalestudy.launch.local.launcher import points_here
from scalestudy.launch.queue.layout import expand_for
from scalestudy.launch.queue.site import Site, find_site
from scalestudy.study.engines import DEFAULT
from scalestudy.study.file import Study, read_text, toml_table
from scalestudy.study.launchers import names
from scalestudy.study.parse import load_study
from scalestudy.study.point import Point
from scalestudy.study.store import default_folder

if TYPE_CHECKING:
    from scalestudy.data.sources.registry import Kind


@dataclass(frozen=True)
class CheckSubject:
    """What is checked: a study with its points, a site, or this machine."""

    study: Study | None = None
    points: Sequence[Point] = ()
    kind: "Kind | None" = None
    site: Site | None = None
    base: Path = Path()
    results: Path | None = None

    @property
    def queued(self) -> bool:
        """Whether it runs through a queue."""
        return self.site is not None or (self.study is not None and launcher_of(self.study).detached)

    @property
    def launcher(self) -> Launcher:
        """What starts it: the study's launcher, or for a site alone the first whose queue can be checked."""
        if self.study is not None:
            return launcher_of(self.study)
        return next(candidate for name in names() if (candidate := launcher(name)).checked)

    @property
    def cpus_per_worker(self) -> int:
        """The most that a point asks for."""
        return max((point.launch.cpus_per_worker for point in self.points), default=1)

    def workers(self, nodes: int | None) -> int:
        """Ranks of the check, as the study's largest point has.

        Without a study: a rank for each worker that fits the nodes of a site (two, where no number is given);
        on this machine two, or as many as it has devices for.
        """
        largest = max((point.workers for point in self.points if point.traits.timed), default=1)
        if self.site is not None:
            per_node = self.site.machine().workers_per_node(self.cpus_per_worker)
            return per_node * (nodes or 2) if nodes or not self.points else largest
        fitting = max(devices.gpus() or len(cores.granted()) // self.cpus_per_worker, 2)
        return min(largest, fitting) if self.points else fitting


def subject(what: str | None) -> CheckSubject:
    """Read a study file, or a site profile by its name or path.

    Raises:
        UserError: If it is neither, or is not right.
    """
    if what is None:
        return CheckSubject()
    path = Path(what)
    if path.suffix == ".toml" and toml_table(read_text(path), str(path)).keys() & {"task", "sweep"}:
        return _study(path)
    return CheckSubject(site=find_site(what, Path.cwd()))


def _study(path: Path) -> CheckSubject:
    study, kind = with_task_data(load_study(path))
    results, base = default_folder(path, study.name).absolute(), path.parent
    if not launcher_of(study).detached:
        return CheckSubject(study, points_here(study), kind, None, base, results)
    site = find_site(study.launch.site, base)
    return CheckSubject(study, expand_for(study, site), kind, site, base, results)


def plan_of(
    about: CheckSubject,
    *,
    workers: int,
    cache_bytes: int,
    folders: Sequence[WritableFolder],
    skip: Sequence[Topic],
) -> Plan:
    """What every rank is to look at."""
    points, site, written = about.points, about.site, [*folders]
    if about.results is not None:
        written.insert(0, WritableFolder(path=str(about.results), purpose="results"))
    if site is not None and site.scratch:
        written.append(WritableFolder(path=site.scratch, purpose="scratch"))
    return Plan(
        engine=points[0].engine if points else DEFAULT,
        workers=workers,
        device=points[0].launch.device if points else "auto",
        gpus_per_node=site.gpus_per_node if site is not None else 0,
        cpus_per_worker=about.cpus_per_worker,
        needs=needs_of(points) if points else None,
        libraries=libraries_of(points),
        cache_bytes=cache_bytes,
        folders=tuple(written),
        skip=tuple(skip),
    )
