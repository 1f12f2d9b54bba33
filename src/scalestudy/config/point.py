"""A fully resolved point of a study: everything that a worker needs to know besides its placement."""

import hashlib
import json
import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, NamedTuple

from pydantic import Field

from scalestudy.config.settings import (
    ResolvedData,
    ResolvedLaunch,
    ResolvedTrain,
    StoredSettings,
)
from scalestudy.config.value_types import (
    EngineName,
    Implementation,
    Seed,
    Strategy,
    Workers,
)
from scalestudy.plugins.engines import DEFAULT
from scalestudy.plugins.strategies import traits
from scalestudy.plugins.traits import Traits
from scalestudy.util.errors import UserError

NOT_TIMED = {"environments", "hosts", "open_ports", "progress_timeout"}
"""Keys of `[launch]` that are not compared: they do not decide how fast a point runs, or its records tell."""
NOT_COMPUTED = {
    "name",
    "study",
    "schema_version",
    "swept",
    "also",
    "terms",
    "why",
    "files",
    "place",
    "blocks",
}
"""Fields of a point that do not decide what it computes."""
REPEATS = ("data.seed",)
"""Swept keys whose values repeat a point as seeds do, with other samples held out."""


def without_repeats(swept: Mapping[str, Any]) -> dict[str, Any]:
    """Swept values other than repeats."""
    return {name: value for name, value in swept.items() if name not in REPEATS}


class Terms(StoredSettings):
    """How a point runs: this affects how fast it is, not what it computes."""

    implementation: Implementation
    """Strategy that does the work, with `native` resolved."""
    launch: ResolvedLaunch = ResolvedLaunch()
    oversubscribed: str | None = None
    """Why its times cannot be used for speed-up (more workers than cores or GPUs), or None."""

    @cached_property
    def traits(self) -> Traits:
        """Traits of that strategy."""
        return traits(self.implementation)

    def timing(self) -> dict[str, Any]:
        """The settings that affect its speed, as JSON values."""
        # Two runs that differ in these keys alone may be compared.
        return self.model_dump(mode="json", exclude={"launch": NOT_TIMED})


class PointFiles(StoredSettings):
    """Paths of a run's data."""

    prepared: str
    """Folder of the prepared data set."""
    split: str
    """File of the split."""
    class_weights: tuple[float, ...] | None = None
    """`train.class_weights` as numbers, one for each class; "balanced" is computed from the split."""
    initial: str | None = None
    """File of its initial weights, if several engines train its task; the first run of a seed writes it."""


class Point(StoredSettings):
    """One combination of a study's swept values; stored as `point.json` in each of its run folders."""

    # A literal, so that a point of another layout is refused and not misread.
    schema_version: Literal[1] = 1
    name: str
    """Name of the point, unique in its study and valid as a folder: `horovod-w2-s0`."""
    study: str
    task: str
    """Name of a task, or the absolute path of a Python file."""
    sources: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of the code of that file and of each local module that it imports, by relative path."""
    engine: EngineName = DEFAULT
    strategy: Strategy
    """Strategy as written in the sweep."""
    workers: Workers
    seed: Seed
    timing: bool = False
    """Whether its runs stop once the step time is stable, instead of training to the end."""
    swept: dict[str, Any] = Field(default_factory=dict)
    """Swept values other than strategy, workers and seed, by dotted name: `{"train.batch_size": 8}`."""
    also: tuple[dict[str, Any], ...] = ()
    """Further combinations of the swept values for which its training is the same; it is run once for all."""
    data: ResolvedData
    train: ResolvedTrain
    terms: Terms
    why: str = ""
    """Why it is run, if the findings of earlier runs asked for it."""
    files: PointFiles | None = None
    """Set when the run is started; None for a planned point."""
    place: int | None = None
    """Place of its run in the order of the study, from 0, among the points when it was started; set with
    `files`."""
    blocks: int | None = None
    """Number of seeds and splits of these points; set with `files`."""

    @property
    def implementation(self) -> str:
        """Strategy that does the work, with `native` resolved."""
        return self.terms.implementation

    @property
    def traits(self) -> Traits:
        """Traits of that strategy."""
        return self.terms.traits

    @property
    def launch(self) -> ResolvedLaunch:
        """Where and how it runs."""
        return self.terms.launch

    @property
    def environment(self) -> str | None:
        """Virtual environment or container image of its workers; None for the current environment."""
        return (self.launch.environments or {}).get(self.engine)

    @property
    def oversubscribed(self) -> str | None:
        """Why its times cannot be used for speed-up, or None."""
        return self.terms.oversubscribed

    @property
    def processes(self) -> int:
        """Number of processes of its runs."""
        return self.traits.processes_of(self.workers)

    @property
    def block(self) -> tuple[Any, ...]:
        """Seed and split, for which every row of a study runs once."""
        return self.seed, *(self.swept.get(name) for name in REPEATS)

    def identity(self) -> dict[str, Any]:
        """The settings that determine its results, as JSON values: equal settings compute the same."""
        values = self.model_dump(mode="json", exclude=NOT_COMPUTED)
        # Where data are prepared does not affect results.
        del values["data"]["cache"]
        return values

    def training(self) -> dict[str, Any]:
        """Its identity, without settings that change nothing.

        These are a rule of scaling at the reference batch and, if there is one worker, whose batch is given.
        """
        values = self.identity()
        # All rules give the same rate at the reference batch.
        if self.batch_ratio == 1:
            values["train"] |= {"learning_rate_scaling": "none"}
        # For one worker, its batch and the global batch are the same.
        if self.workers == 1 and self.train.accumulate == 1:
            values["train"] |= {"batch": "per-worker"}
        return values

    def same_as(self, other: "Point") -> bool:
        """Whether both are the same point on the same terms, regardless of where their data are."""
        if self.identity() != other.identity():
            return False
        return self.terms.timing() == other.terms.timing()

    @property
    def timed(self) -> "Point":
        """The timing run of this point."""
        return self.model_copy(update={"name": f"{self.name}-timing", "timing": True})

    def on(self, **terms: Any) -> "Point":
        """Return the point with other terms: `point.on(oversubscribed="…")`."""
        # Validated, which model_copy does not do.
        changed = Terms.model_validate(self.terms.model_dump() | terms)
        return self.model_copy(update={"terms": changed})

    @property
    def class_weights(self) -> tuple[float, ...] | None:
        """Factors of the loss for each class; None for 1."""
        if self.files is None:
            return None
        return self.files.class_weights

    def with_files(
        self,
        prepared: str,
        split: str,
        class_weights: tuple[float, ...] | None = None,
    ) -> "Point":
        """Return the point with the paths of its data."""
        files = PointFiles(
            prepared=prepared,
            split=split,
            class_weights=class_weights,
        )
        return self.model_copy(update={"files": files})

    def beginning_in(self, folder: str) -> "Point":
        """Return the point with its file of initial weights, in a folder that runs of all engines share.

        The file is that of all points with its seed whose models are the same.
        """
        alike = [
            self.task,
            self.sources,
            self.seed,
            # All other precisions keep their weights in float32.
            self.train.precision == "float64",
            self.train.weights,
            self.train.input_scaling,
            # Its sizes and classes are those of the layers.
            self.data.model_dump(mode="json", exclude={"cache"}),
        ]
        # Sorted, so that equal settings have one digest in whatever order they were written.
        text = json.dumps(alike, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        file = f"{folder}/s{self.seed}-{digest[:8]}.npz"
        files = self.needed_files().model_copy(update={"initial": file})
        return self.model_copy(update={"files": files})

    def needed_files(self) -> PointFiles:
        """Paths of its data; raises UserError if it is only planned."""
        if self.files is None:
            action = "Start it with `scalestudy run` or `scalestudy submit`."
            expected = "a point with a prepared data set and a split"
            raise UserError(expected, f"{self.name} without them", action)
        return self.files

    @property
    def per_worker_batch(self) -> int:
        """Samples of one worker in a full step (rounded up if `batch_size` is global)."""
        return math.ceil(self.global_batch / self.workers)

    @property
    def micro_batch(self) -> int:
        """Samples that one worker computes at once in a full step (rounded up)."""
        return math.ceil(self.per_worker_batch / self.train.accumulate)

    @property
    def global_batch(self) -> int:
        """Samples of all workers together in a full step."""
        if self.train.batch == "per-worker":
            return self.train.step_batch * self.workers
        return self.train.step_batch

    @property
    def update_batch(self) -> int:
        """Samples in a full update of the weights: those of all workers if the strategy is synchronous."""
        if self.traits.synchronous:
            return self.global_batch
        return self.per_worker_batch

    @property
    def batch_ratio(self) -> float:
        """κ: batch of an update divided by the batch that the learning rate was chosen for."""
        reference = self.train.reference_batch or self.train.batch_size
        return self.update_batch / reference


class Averages(NamedTuple):
    """The decay rates of an adaptive optimizer's averages, and its epsilon."""

    beta_1: float
    beta_2: float
    epsilon: float


def scale_averages(averages: Averages, kappa: float) -> Averages:
    """Return the averages for `kappa` reference batches, so that they span as many samples as before.

    A sample's weight falls by β over a reference batch, so by β^κ over κ of them (Marek et al. 2025,
    arXiv:2507.07101, for β₂). To first order in 1 − β this is 1 − κ(1 − β), the rule of Malladi et al. 2022
    (arXiv:2205.10287), which has no positive β₁ from κ = 10 on; ε/√κ is theirs.
    """
    beta_1, beta_2, epsilon = averages
    return Averages(beta_1**kappa, beta_2**kappa, epsilon / math.sqrt(kappa))
