"""What is to be checked: `check.json`, which every rank reads."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from scalestudy.features.check.line import Topic
from scalestudy.measure.bandwidth import SIZES
from scalestudy.study.engines import DEFAULT, engine_traits
from scalestudy.study.point import Point
from scalestudy.study.settings import Section
from scalestudy.util.errors import UserError

PLAN_FILE, REPORT_FILE = "check.json", "report.json"


class WritableFolder(Section):
    """A folder that the study will write to."""

    path: str
    """Absolute; may hold `~` and $VARIABLES of the node."""
    purpose: str
    bytes: int = 0
    """Space that will be needed there."""


class Plan(Section):
    """What every rank is to look at. Seconds are limits: what takes longer counts as stalled."""

    schema_version: Literal[2] = 2
    engine: str = DEFAULT
    """The engine whose processes are tried."""
    workers: Annotated[int, Field(gt=0)]
    device: Literal["auto", "cpu", "gpu"] = "auto"
    gpus_per_node: int = 0
    """GPUs that the site promises on each node; 0 where it promises none."""
    cpus_per_worker: Annotated[int, Field(gt=0)] = 1
    needs: tuple[str, ...] | None = None
    """What the study's collectives must meet, as `Collective.needs` names it; None without a study: then
    each is a failure if it fails."""
    libraries: tuple[str, ...] = ()
    """Libraries that the study's strategies need beside the engine."""
    cache_bytes: int = 0
    """Bytes that a node's page cache holds once the whole data set was read."""
    folders: tuple[WritableFolder, ...] = ()
    skip: tuple[Topic, ...] = ()
    sizes: tuple[int, ...] = SIZES
    """Message sizes in bytes."""
    start_limit: float = 120.0
    """For a rank to appear, and for a framework to be imported for the first time."""
    limit: float = 60.0
    """Between two signs of life of a collective."""
    connect_limit: float = 5.0
    """For one connection, or one look-up of a name."""
    slack: float = 15.0
    """For ranks to notice an assignment and to answer, beyond what it may take."""

    def wants(self, topic: Topic) -> bool:
        """Whether a topic is not left out."""
        return topic not in self.skip


def needs_of(points: Iterable[Point]) -> tuple[str, ...]:
    """What the collectives of points must meet: each one's communication, or what its processes meet by."""
    found = dict.fromkeys(
        point.launch.communication
        if engine_traits(point.engine).communications(point.implementation)
        else point.traits.rendezvous.name
        for point in points
        if point.traits.rendezvous
    )
    return tuple(found)


def libraries_of(points: Iterable[Point]) -> tuple[str, ...]:
    """Libraries that the strategies of points need beside the engine."""
    found = {point.traits.library: None for point in points}
    return tuple(name for name in found if name)


def read_plan(folder: Path) -> Plan:
    """The plan of a check's folder.

    Raises:
        UserError: If there is none, or if it is not whole.
    """
    try:
        return Plan.model_validate_json((folder / PLAN_FILE).read_bytes())
    except (OSError, ValueError) as error:
        raise UserError(
            f"a plan in {folder / PLAN_FILE}", str(error).splitlines()[0], "Start it with `scalestudy check`."
        ) from error
