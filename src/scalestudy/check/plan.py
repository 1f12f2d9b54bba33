"""What is to be checked: `check.json`, which every rank reads."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from scalestudy.check.line import Topic
from scalestudy.errors import UserError
from scalestudy.measure.bandwidth import SIZES
from scalestudy.study.settings import Section

PLAN_FILE, REPORT_FILE = "check.json", "report.json"


class Folder(Section):
    """A folder that workers write to."""

    path: str
    """Absolute; may hold `~` and $VARIABLES of the node."""
    purpose: str
    bytes: int = 0
    """Space that will be needed there."""


class Plan(Section):
    """What every rank is to look at. Seconds are limits: what takes longer counts as stalled."""

    schema_version: Literal[1] = 1
    workers: Annotated[int, Field(gt=0)]
    device: Literal["auto", "cpu", "gpu"] = "auto"
    gpus_per_node: int = 0
    """GPUs that the site promises on each node; 0 where it promises none."""
    cpus_per_worker: Annotated[int, Field(gt=0)] = 1
    needs: tuple[Literal["auto", "ring", "nccl", "horovod"], ...] | None = None
    """The collectives that the study uses; None without a study: then each is a failure if it fails."""
    cache_bytes: int = 0
    """Bytes that a node's page cache holds once the whole data set was read."""
    folders: tuple[Folder, ...] = ()
    skip: tuple[Topic, ...] = ()
    sizes: tuple[int, ...] = SIZES
    """Message sizes in bytes."""
    start_limit: float = 120.0
    """For a rank to appear, and for a framework to be imported for the first time."""
    limit: float = 60.0
    """Between two signs of life of a collective."""
    connect_limit: float = 5.0
    """For one connection, or one look-up of a name."""

    @property
    def horovod(self) -> bool:
        """Whether the study needs Horovod."""
        return self.needs is not None and "horovod" in self.needs

    def wants(self, topic: Topic) -> bool:
        """Whether a topic is not left out."""
        return topic not in self.skip


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
