"""The subject of a check: a study, a site or this machine."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scalestudy.app.prepare import with_task_data
from scalestudy.config.file import Study
from scalestudy.config.parse import load_study
from scalestudy.config.point import Point
from scalestudy.config.toml_text import read_text, toml_table
from scalestudy.hardware import cores, devices
from scalestudy.launch.environments import no_folder
from scalestudy.launch.launcher import launcher_of
from scalestudy.launch.launchers import HOSTS
from scalestudy.launch.local import points_here
from scalestudy.launch.queue.point_job import expand_for
from scalestudy.launch.queue.site_profile import Site, find_site
from scalestudy.plugins.engines import (
    DEFAULT,
    engine_names,
    engine_traits,
    installed_engine,
)
from scalestudy.store.study_folder import default_folder
from scalestudy.util.errors import UserError

OnText = Callable[[str], object]


@dataclass(frozen=True)
class CheckSubject:
    """The subject of a check: a study with its points, a site, or this machine.

    Attributes:
        site: Site of the queue that the subject runs through; None without a queue.
        environment: Environment that the points name for their engine.
    """

    study: Study | None = None
    points: Sequence[Point] = ()
    site: Site | None = None
    base: Path = Path()
    results: Path | None = None
    engine: str = DEFAULT
    environment: str | None = None

    @property
    def on_hosts(self) -> bool:
        """Whether the subject runs on hosts without a queue."""
        return self.study is not None and launcher_of(self.study) is HOSTS

    @property
    def asks_queue(self) -> bool:
        """Whether it has a queue that checks can ask and submit to; that of a site alone is Slurm."""
        if self.site is None:
            return False
        return self.study is None or launcher_of(self.study).checked

    @property
    def cpus_per_worker(self) -> int:
        """Largest `cpus_per_worker` of the points."""
        largest = 1
        for point in self.points:
            largest = max(largest, point.launch.cpus_per_worker)
        return largest

    def workers(self, nodes: int | None) -> int:
        """Return the number of ranks of the check.

        On a site, these fill `nodes` nodes; by default, and on hosts, they are the workers of the study's
        largest point, or fill two nodes without a study. On this machine, there is one for each GPU, or as
        many as the cores suffice for: at least two, and no more than the study's largest point has workers.
        """
        largest = 1
        for point in self.points:
            # Workers of a strategy without times take turns on one device.
            if point.traits.timed:
                largest = max(largest, point.workers)
        if self.on_hosts:
            return largest
        if self.site is not None:
            per_node = self.site.machine().workers_per_node(self.cpus_per_worker)
            if self.points and not nodes:
                return largest
            return per_node * (nodes or 2)
        # One process alone has no collective to try.
        fitting = max(devices.gpus() or len(cores.granted()) // self.cpus_per_worker, 2)
        if self.points:
            return min(largest, fitting)
        return fitting


def subject(what: str | None) -> CheckSubject:
    """Read a study file, or a site profile by its name or path.

    Raises:
        UserError: If it is neither, or is invalid.
    """
    if what is None:
        return CheckSubject()
    path = Path(what)
    if not _is_study(path):
        return CheckSubject(site=find_site(what, Path.cwd()))
    study, _ = with_task_data(load_study(path))
    base = path.parent
    results = default_folder(path, study.name).absolute()
    if not launcher_of(study).detached:
        points: Sequence[Point] = ()
        # The points of hosts are known once these answer.
        if launcher_of(study) is not HOSTS:
            points = points_here(study)
        return CheckSubject(study, points, None, base, results)
    site = find_site(study.launch.site, base)
    return CheckSubject(study, expand_for(study, site), site, base, results)


def _is_study(path: Path) -> bool:
    """Whether a file is a study, not a site profile: both are TOML."""
    if path.suffix != ".toml":
        return False
    keys = toml_table(read_text(path), str(path)).keys()
    return "task" in keys or "sweep" in keys


def of_one_engine(
    about: CheckSubject,
    engine: str | None,
    note: OnText,
) -> CheckSubject:
    """Return the subject with the points of one engine only, in the environment that they name."""
    points_of: dict[str, list[Point]] = {}
    for point in about.points:
        points_of.setdefault(point.engine, []).append(point)
    engines = list(points_of)
    available = engines or engine_names()
    if engine is not None and engine not in available:
        expected = f"--engine with one of {', '.join(available)}"
        raise UserError(expected, engine, "Correct it.")
    engine = engine or next(iter(engines), installed_engine())
    # Engines have environments of their own, and a check starts the Python of one.
    others = [name for name in engines if name != engine]
    if others:
        note(f"Only {engine} is checked. Use --engine {others[0]} for the rest.")
    points = points_of.get(engine, [])
    place = None
    if points:
        place = points[0].environment
    if place is not None and not os.path.exists(place):
        raise no_folder(engine_traits(engine), place)
    site = about.site and about.site.in_environment(place)
    return replace(
        about,
        points=points,
        site=site,
        engine=engine,
        environment=place,
    )


def needs_of(points: Iterable[Point]) -> tuple[str, ...]:
    """Return what the collectives of points must support: `communication`, or the processes' rendezvous."""
    needs: dict[str, None] = {}
    for point in points:
        rendezvous = point.traits.rendezvous
        # Asynchronous workers sum no gradients.
        if not rendezvous or not point.traits.synchronous:
            continue
        if engine_traits(point.engine).communications(point.implementation):
            needs[point.launch.communication] = None
        else:
            needs[rendezvous.name] = None
    return tuple(needs)
