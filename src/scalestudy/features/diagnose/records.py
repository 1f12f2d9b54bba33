"""What a diagnosis writes: `ablation.json` and `times/N.json` of its processes, and `diagnosis.json`."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from scalestudy.study.point import Point
from scalestudy.study.record_file import read_record, write_record
from scalestudy.study.records import Count, Record, Seconds

FOLDER = "diagnosis"
ABLATION = "ablation.json"
BlockName = Literal["whole", "without input", "without exchange", "alone", "full", "reference", "together"]
"""What a block of steps is: the point as it is; with one staged batch handed out again; that, and gradients
not exchanged; one worker's slice alone; the one-worker run's whole batch, alone; that with its input; and
every worker's slice at once, by processes that exchange nothing."""
JOINED: tuple[BlockName, ...] = ("whole", "without input", "without exchange")
"""Blocks of the point's own processes."""
ALONE: tuple[BlockName, ...] = ("alone", "full", "reference")
"""Blocks of the first worker's process, before it computes together with the others'."""
PartName = Literal["input", "exchange", "imbalance", "contention", "fixed", "rest"]


class Ablation(Record):
    """`ablation.json` beside a run's `point.json`: a worker measures these blocks instead of training."""

    blocks: tuple[BlockName, ...]
    """In their order; a block may come again."""
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """Length of a block."""
    workers: Annotated[int, Field(gt=0)]
    """Workers of the point."""
    worker: Count | None = None
    """The worker whose slice a process computes alone; None where it has joined the others."""
    peers: tuple[str, ...] = ()
    """Folders of the processes that compute "together" with this one, its own among them."""


class BlockTimes(Record):
    """What one process measured of a block."""

    name: BlockName
    steps_per_call: Annotated[int, Field(gt=0)]
    samples: Annotated[int, Field(gt=0)]
    """Of a step: of all workers, or of the slice that was computed."""
    seconds: Seconds
    """From the first call's request for input until the device has finished the last."""
    waits: tuple[Seconds, ...]
    """Of each call: waiting for its input."""
    calls: tuple[Seconds, ...]
    """Of each call: from its input to the next request."""

    @property
    def step_seconds(self) -> float:
        """Mean time of a step, waiting for input included."""
        return self.seconds / (len(self.calls) * self.steps_per_call)


class AblationTimes(Record):
    """`times/N.json`: what rank N of an ablation measured."""

    rank: Count
    """The worker whose times these are; of a process with several workers, the first."""
    host: str
    cpus: tuple[int, ...]
    blocks: tuple[BlockTimes, ...]

    def all_of(self, name: str) -> list[BlockTimes]:
        """The blocks of this name."""
        return [block for block in self.blocks if block.name == name]


class IntervalRecord(Record):
    """A value with the ends of its 95 % interval; both None after a single round."""

    value: float
    low: float | None = None
    high: float | None = None


class LostPart(Record):
    """One part of the lost efficiency."""

    name: PartName
    share: IntervalRecord
    """Of a step's time, and so of 1 - E(n). Negative where it gains."""
    seconds: float
    """Of a step."""


class RankSpeed(Record):
    """How long one worker computes its slice, compared with the others."""

    rank: Count
    host: str
    cpus: tuple[int, ...] = ()
    seconds: Seconds
    """Of a step."""
    ratio: IntervalRecord
    """That, over the mean of the other workers."""


class DiagnosisTerms(Record):
    """The settings under which the point ran, as far as suggestions depend on them."""

    device: Literal["cpu", "gpu"]
    cores: Count
    """That this machine grants."""
    cpus_per_worker: Count
    batch_size: Count
    encoded: bool
    """Whether the data are decoded while training."""
    steps_per_call: Count


class Diagnosis(Record):
    """Why a point's efficiency is below 1."""

    schema_version: Literal[1] = 1
    point: str
    """Its name."""
    digest: str
    """Of what the point computes and runs under; another one means that the study has changed since."""
    strategy: str
    implementation: str
    workers: Annotated[int, Field(gt=1)]
    global_batch: Count
    swept: Mapping[str, Any] = {}
    host: str
    made: str
    """Time of day, ISO 8601, UTC."""
    rounds: Annotated[int, Field(gt=0)]
    block_seconds: Seconds
    step_seconds: Seconds
    """Of a step of the point as it is."""
    ideal_seconds: Seconds
    """Of the one-worker run's step, for as many samples a worker."""
    efficiency: IntervalRecord
    """E(n), by the ablations: 1 less all parts' shares."""
    input: IntervalRecord
    """Share of the point's step that its input costs in all, whether one worker loses as much or not."""
    reference_input: IntervalRecord
    """The same of the one-worker run, whose loss no efficiency shows."""
    parts: tuple[LostPart, ...]
    ranks: tuple[RankSpeed, ...]
    terms: DiagnosisTerms
    oversubscribed: str | None = None
    """Why these times say little: more workers than cores, or cores shared with another study."""


def digest_of(point: Point) -> str:
    """Digest of what a point computes and runs under."""
    content = {"is": point.identity(), "terms": point.terms.timing()}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def diagnosis_folder(study: Path, point: str) -> Path:
    """Where the diagnosis of a point is stored, in a study's folder."""
    return study / FOLDER / point


def write_diagnosis(study: Path, diagnosis: Diagnosis) -> Path:
    """Replace the stored diagnosis of the point; its file."""
    file = diagnosis_folder(study, diagnosis.point) / "diagnosis.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_record(file, diagnosis)
    return file


def diagnoses(study: Path) -> list[Diagnosis]:
    """The readable diagnoses in a study's folder, the newest first."""
    records = (read_record(file, Diagnosis).record for file in (study / FOLDER).glob("*/diagnosis.json"))
    return sorted((record for record in records if record), key=lambda record: record.made, reverse=True)
