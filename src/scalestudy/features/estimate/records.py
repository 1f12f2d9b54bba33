"""`estimate.json`: what larger runs of a study were expected to take, and by what."""

from typing import Any, Literal

from pydantic import Field

from scalestudy.study.records import Record

ESTIMATE_SCHEMA: Literal[1] = 1
ESTIMATE_FILE = "estimate.json"


class Interval(Record):
    """A foreseen value, the median of all draws, with the ends of its 95 % interval."""

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


class ForeseenPoint(Record):
    """A number of workers. Seconds; samples; hours."""

    workers: int
    nodes: int
    global_batch: int
    updates: int
    step_seconds: Interval
    """Of a full step."""
    training_seconds: Interval
    """As `training_seconds` of a result: without start-up, evaluation and saving."""
    wall_seconds: Interval
    """With them."""
    speedup: Interval
    """From training times."""
    efficiency: Interval
    worker_hours: Interval
    """Workers times wall time."""
    node_hours: Interval
    charge: Interval | None = None
    """What a site charges for it; None where it says no factor."""
    parts: dict[str, float]
    """Seconds of an epoch, in the mean of all draws: computing, fixed (of each step, whatever its samples),
    input, exchange (that is not hidden), slowest (waiting for that worker), uneven (slices)."""
    dominant: str
    """Part that keeps most from ideal scaling; "" for one worker."""


class ForeseenSeries(Record):
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
    points: list[ForeseenPoint]
    worth: int | None
    """Most of the workers looked at whose efficiency reaches the target; None where none does."""
    worth_low: int | None
    """The same by the lower ends of the intervals."""
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
    series: list[ForeseenSeries]
    missing: list[str] = Field(default_factory=list)
    """What could not be foreseen, each with its reason."""
