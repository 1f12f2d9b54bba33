"""`estimate.json`: what larger runs of a study were expected to take, by what, and which estimate is kept."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from scalestudy.study.record_file import StoredRecord, read_record, write_record
from scalestudy.study.records import Record

ESTIMATE_SCHEMA: Literal[1] = 1
ESTIMATE_FILE = "estimate.json"
ONE_WORKER = "-one-worker"
"""Suffix of the folder of an estimate's short runs, beside the study's own."""


class PredictedRange(Record):
    """A predicted value, the median of all draws, with the ends between which 95 % of them lie."""

    value: float
    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether a value lies in it."""
        return self.low <= value <= self.high


class Assumption(Record):
    """Something that the estimate rests on."""

    name: str
    value: str
    """With its range and its unit, for people."""
    because: str
    """Where it is from: measured by what, stated by whom, or why it was assumed."""
    measured: bool = False


class PredictedPoint(Record):
    """A number of workers. Seconds; samples; hours."""

    workers: int
    nodes: int
    global_batch: int
    updates: int
    step_seconds: PredictedRange
    """Of a full step."""
    training_seconds: PredictedRange
    """As `training_seconds` of a result: without start-up, evaluation and saving."""
    wall_seconds: PredictedRange
    """With them."""
    speedup: PredictedRange
    """From training times."""
    efficiency: PredictedRange
    worker_hours: PredictedRange
    """Workers times wall time."""
    node_hours: PredictedRange
    charge: PredictedRange | None = None
    """What a site charges for it; None where it states no factor."""
    parts: dict[str, float]
    """Seconds of an epoch, in the mean of all draws: computing, fixed (of each step, whatever its samples),
    input, exchange (that is not hidden), slowest (waiting for that worker), uneven (slices), overhead (lost
    beside all these, as assumed)."""
    dominant: str
    """Part that keeps most from ideal scaling, of those with a cause; "" for one worker."""


class PredictedSeries(Record):
    """A strategy under one set of other swept values."""

    strategy: str
    swept: dict[str, Any] = Field(default_factory=dict)
    collective: str
    """As checks name it."""
    algorithm: str
    rule: Literal["per-worker", "global"]
    one_worker: list[str]
    """Names of the runs that it is from."""
    training_samples: int
    gradient_bytes: int
    buckets: int
    points: list[PredictedPoint]
    worth: int | None
    """Most of the workers considered whose efficiency reaches the target; None where none does."""
    worth_low: int | None
    """The same by the lower ends of the ranges."""
    worth_high: int | None
    """By the upper ends."""
    fastest: int
    """Workers with the least training time."""
    assumptions: list[Assumption]
    sentence: str


class EstimateRecord(Record):
    """An estimate of a study."""

    schema_version: Literal[1] = ESTIMATE_SCHEMA
    study: str
    made: str
    """Time of day, ISO 8601, UTC."""
    before: bool
    """Whether no run with more than one worker had ended, in this folder, when it was made."""
    seed: int
    draws: int
    target: float
    """Efficiency below which workers count as not worth their cost."""
    charge: float | None = None
    """What is charged for an hour of a node."""
    per_node: int
    """Workers of a node."""
    series: list[PredictedSeries]
    missing: list[str] = Field(default_factory=list)
    """What could not be predicted, each with its reason."""


def one_worker_folder(results: Path) -> Path:
    """Results folder of the short runs that an estimate was measured by, beside the study's own."""
    return results.with_name(results.name + ONE_WORKER)


def stored_estimate(results: Path) -> StoredRecord[EstimateRecord]:
    """The estimate of a study: in its folder, else beside it."""
    found = read_record(results / ESTIMATE_FILE, EstimateRecord)
    if found.word == "missing":
        return read_record(one_worker_folder(results) / ESTIMATE_FILE, EstimateRecord)
    return found


def store(results: Path, estimate: EstimateRecord) -> EstimateRecord | None:
    """Write an estimate, unless that would replace one that was made before anything was measured.

    It is written to the study's folder, or until there is one to that of the short runs.

    Returns:
        The one that stays in its place; None if this one was written.

    Raises:
        OSError: It cannot be written.
    """
    stored = stored_estimate(results).record
    if stored is not None and stored.before and not estimate.before:
        return stored
    folder = results if (results / "study.json").exists() else one_worker_folder(results)
    write_record(folder / ESTIMATE_FILE, estimate)
    return None
