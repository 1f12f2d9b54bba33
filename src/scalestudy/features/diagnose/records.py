"""The files of a diagnosis: `ablation.json` and `times/N.json` of its processes, and `diagnosis.json`."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from scalestudy.config.point import Point
from scalestudy.store.record_file import read_record, write_record
from scalestudy.store.records import Count, Record, Seconds

FOLDER = "diagnosis"
ABLATION = "ablation.json"
BlockName = Literal["whole", "without input", "without exchange", "alone", "full", "reference", "together"]
"""Blocks of steps, in this order: the unchanged point; with one staged batch, reused; with that and without
exchange of gradients; one worker's slice alone; the one-worker run's whole batch alone; that batch with its
input; every worker's slice at once, in processes that do not communicate."""
JOINED: tuple[BlockName, ...] = ("whole", "without input", "without exchange")
"""Blocks of the point's own processes."""
ALONE: tuple[BlockName, ...] = ("alone", "full", "reference")
"""Blocks that the first worker's process measures alone, before the block "together"."""
PartName = Literal["input", "exchange", "imbalance", "contention", "fixed", "rest"]


class Ablation(Record):
    """`ablation.json` next to a run's `point.json`: blocks that a worker measures instead of training."""

    blocks: tuple[BlockName, ...]
    """Blocks in order; a block may occur several times."""
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """Length of a block."""
    workers: Annotated[int, Field(gt=0)]
    """Number of workers of the point."""
    worker: Count | None = None
    """Worker whose slice the process computes alone; None if the process has joined the others."""
    peers: tuple[str, ...] = ()
    """Folders of all processes that compute "together", including this one."""


class BlockTimes(Record):
    """The times that a process measured for a block."""

    name: BlockName
    steps_per_call: Annotated[int, Field(gt=0)]
    samples: Annotated[int, Field(gt=0)]
    """Samples in a step: of all workers, or in the computed slice."""
    seconds: Seconds
    """From the first request for input until the device has finished the last call."""
    waits: tuple[Seconds, ...]
    """Time that each call waited for its input."""
    calls: tuple[Seconds, ...]
    """Time of each call from the arrival of its input to the next request."""

    @property
    def step_seconds(self) -> float:
        """Mean time of a step, waiting for input included."""
        return self.seconds / (len(self.calls) * self.steps_per_call)


class AblationTimes(Record):
    """`times/N.json`: the times that rank N of an ablation measured."""

    rank: Count
    """Worker that was measured; in a process with several workers, the first."""
    host: str
    cpus: tuple[int, ...]
    blocks: tuple[BlockTimes, ...]

    def all_of(self, name: str) -> list[BlockTimes]:
        """Return the blocks with this name."""
        return [block for block in self.blocks if block.name == name]


class IntervalRecord(Record):
    """A value with the ends of its 95 % interval; both None after a single round."""

    value: float
    low: float | None = None
    high: float | None = None


class LostPart(Record):
    """A part of the lost efficiency."""

    name: PartName
    share: IntervalRecord
    """Share of a step's time; the shares of all parts add up to 1 - E(n). Negative for a gain."""
    seconds: float
    """Seconds of a step."""


class RankSpeed(Record):
    """The time in which a worker computes its slice, compared with the other workers."""

    rank: Count
    host: str
    cpus: tuple[int, ...] = ()
    seconds: Seconds
    """Seconds of a step."""
    ratio: IntervalRecord
    """Ratio of `seconds` to the mean of the other workers."""


class DiagnosisTerms(Record):
    """Settings of the point that suggestions depend on."""

    device: Literal["cpu", "gpu"]
    cores: Count
    """Number of cores granted by this machine."""
    cpus_per_worker: Count
    batch_size: Count
    steps_per_call: Count


class Diagnosis(Record):
    """Why a point's efficiency is below 1."""

    schema_version: Literal[1] = 1
    point: str
    """Name of the point."""
    digest: str
    """Digest of the point's settings; it differs if the study has changed since."""
    strategy: str
    implementation: str
    workers: Annotated[int, Field(gt=1)]
    global_batch: Count
    swept: Mapping[str, Any] = {}
    host: str
    made: str
    """Date and time, ISO 8601, UTC."""
    rounds: Annotated[int, Field(gt=0)]
    block_seconds: Seconds
    step_seconds: Seconds
    """Time of a step of the unchanged point."""
    ideal_seconds: Seconds
    """Time of a step of the one-worker run, scaled to the samples per worker of the point."""
    efficiency: IntervalRecord
    """E(n) from the ablations: 1 less the shares of all parts."""
    input: IntervalRecord
    """Share of the point's step that its input costs in total, including what one worker loses too."""
    reference_input: IntervalRecord
    """The same share for the one-worker run. Efficiency does not show this loss."""
    parts: tuple[LostPart, ...]
    ranks: tuple[RankSpeed, ...]
    terms: DiagnosisTerms
    oversubscribed: str | None = None
    """Why these times are not meaningful: more workers than cores, or cores shared with another study."""


def digest_of(point: Point) -> str:
    """Return a digest of the settings that determine what a point computes and how fast."""
    content = {"is": point.identity(), "terms": point.terms.timing()}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def diagnosis_folder(study: Path, point: str) -> Path:
    """Return the folder of a point's diagnosis in a study's folder."""
    return study / FOLDER / point


def write_diagnosis(study: Path, diagnosis: Diagnosis) -> Path:
    """Write a diagnosis in place of the point's previous one, and return its file."""
    file = diagnosis_folder(study, diagnosis.point) / "diagnosis.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_record(file, diagnosis)
    return file


def diagnoses(study: Path) -> list[Diagnosis]:
    """Return the readable diagnoses in a study's folder, the newest first."""
    records = (read_record(file, Diagnosis).record for file in (study / FOLDER).glob("*/diagnosis.json"))
    return sorted((record for record in records if record), key=lambda record: record.made, reverse=True)
