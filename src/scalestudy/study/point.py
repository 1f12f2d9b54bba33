"""A point of a study, fully resolved: all that a worker needs to know besides its placement."""

from typing import Annotated, Any, Literal

from pydantic import Field

from scalestudy.study.settings import (
    DataSettings,
    Implementation,
    LaunchSettings,
    Section,
    Strategy,
    TrainSettings,
)

POINT_SCHEMA: Literal[1] = 1


class Point(Section):
    """One combination of a study's swept values; stored as `point.json` in each of its run folders."""

    schema_version: Literal[1] = POINT_SCHEMA
    name: str
    """Name of the point, unique in its study and fit for a folder: `horovod-w2-s0`."""
    study: str
    task: str
    """Name of a built-in task, or the absolute path of a Python file."""
    strategy: Strategy
    """Strategy as swept."""
    implementation: Implementation
    """Strategy that does the work: `native` resolved."""
    workers: Annotated[int, Field(gt=0)]
    seed: Annotated[int, Field(ge=0)]
    swept: dict[str, Any] = Field(default_factory=dict)
    """Swept values besides strategy, workers and seed, by dotted name: `{"train.batch_size": 8}`."""
    data: DataSettings = DataSettings()
    train: TrainSettings = TrainSettings()
    """Resolved: epochs, batch_size, optimizer, learning_rate and schedule are never None here."""
    launch: LaunchSettings = LaunchSettings()
    prepared: str | None = None
    """Folder of the prepared data set; filled in when the run is started."""
    split: str | None = None
    """File of the split; filled in when the run is started."""
    oversubscribed: str | None = None
    """Why its timing says nothing about speed-up (more workers than cores or GPUs), or None."""

    @property
    def per_worker_batch(self) -> int:
        """Samples of one worker in a full step (rounded up when the global batch is given)."""
        assert self.train.batch_size is not None
        if self.train.batch == "per-worker":
            return self.train.batch_size
        return -(-self.train.batch_size // self.workers)

    @property
    def global_batch(self) -> int:
        """Samples of all workers together in a full step."""
        assert self.train.batch_size is not None
        if self.train.batch == "per-worker":
            return self.train.batch_size * self.workers
        return self.train.batch_size

    @property
    def batch_ratio(self) -> float:
        """κ: the global batch divided by the batch that the learning rate was chosen for."""
        reference = self.train.reference_batch
        if reference is None:
            reference = self.per_worker_batch if self.train.batch == "per-worker" else self.global_batch
        return self.global_batch / reference
