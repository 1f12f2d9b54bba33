"""The record of a diagnosis, and its file in a study's folder."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from scalestudy.config.point import Point
from scalestudy.store.record_file import read_record, write_record
from scalestudy.store.records import Count, Record, Seconds
from scalestudy.util.files import make_inside

FOLDER = "diagnosis"
PartName = Literal["input", "exchange", "imbalance", "contention", "fixed", "rest"]


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
    # Not by the folder of its cache: data that were prepared elsewhere are the same.
    content = {"is": point.identity(), "terms": point.terms.timing()}
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def diagnosis_folder(study: Path, point: str) -> Path:
    """Return the folder of a point's diagnosis in a study's folder."""
    return study / FOLDER / point


def make_diagnosis_folder(study: Path, point: str) -> Path:
    """Create that folder unless it is there, and return it; raises OSError if a part of it is a link."""
    make_inside(study / FOLDER)
    return make_inside(diagnosis_folder(study, point))


def write_diagnosis(study: Path, diagnosis: Diagnosis) -> Path:
    """Write a diagnosis in place of the point's previous one, and return its file."""
    file = make_diagnosis_folder(study, diagnosis.point) / "diagnosis.json"
    write_record(file, diagnosis)
    return file


def diagnoses(study: Path) -> list[Diagnosis]:
    """Return the readable diagnoses in a study's folder, the newest first."""
    readable = []
    # By folders, not by the study's points: a diagnosis outlives the point that it is of.
    for file in (study / FOLDER).glob("*/diagnosis.json"):
        record = read_record(file, Diagnosis).record
        if record:
            readable.append(record)
    readable.sort(key=lambda record: record.made, reverse=True)
    return readable
