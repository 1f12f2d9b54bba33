"""The record of a diagnosis: `diagnosis/POINT/diagnosis.json` in a study's folder."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from scalestudy.study.point import Point
from scalestudy.study.record_file import read_record, write_record
from scalestudy.study.records import Count, Record, Seconds

DIAGNOSIS_SCHEMA: Literal[1] = 1
FOLDER = "diagnosis"
PartName = Literal["input", "exchange", "imbalance", "contention", "fixed", "rest"]
FactorName = Literal["load balance", "communication efficiency", "computation scaling"]


class Interval(Record):
    """A value with the ends of its 95 % interval; both None after a single round."""

    value: float
    low: float | None = None
    high: float | None = None


class Part(Record):
    """One part of the lost efficiency."""

    name: PartName
    share: Interval
    """Of a step's time, which is also of 1 - E(n) what this part makes of it. Negative where it gains."""
    seconds: float
    """Of a step."""


class Factor(Record):
    """One of POP's factors of E(n)."""

    name: FactorName
    value: Interval


class RankSpeed(Record):
    """How long one worker computes for its slice, beside the others."""

    rank: Count
    host: str
    cpus: tuple[int, ...] = ()
    seconds: Seconds
    """Of a step."""
    ratio: Interval
    """That, over the mean of the other workers."""


class Terms(Record):
    """What the point ran under, as far as advice depends on it."""

    device: Literal["cpu", "gpu"]
    cores: Count
    """That this machine grants."""
    cpus_per_worker: Count
    batch: Literal["per-worker", "global"]
    batch_size: Count
    encoded: bool
    """Whether the data are decoded while training."""
    augmented_by_loader: bool
    xla: bool
    steps_per_call: Count
    bucket_size: str
    bucket_bytes: Count | None
    communication: str
    gradient_bytes: Count


class Diagnosis(Record):
    """Why a point's efficiency is below 1."""

    schema_version: Literal[1] = DIAGNOSIS_SCHEMA
    point: str
    """Its name."""
    digest: str
    """Of what the point computes and runs under: another one means that the study has changed since."""
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
    efficiency: Interval
    """E(n), by the ablations: 1 less all parts' shares, and the product of POP's factors."""
    input: Interval
    """Share of the point's step that its input costs in all, whether one worker loses as much or not."""
    reference_input: Interval
    """The same of the one-worker run, whose loss no efficiency shows."""
    parts: tuple[Part, ...]
    factors: tuple[Factor, ...]
    ranks: tuple[RankSpeed, ...]
    terms: Terms
    oversubscribed: str | None = None
    """Why these times say little: more workers than cores, or cores that another study had as well."""
    trace: str | None = None
    """File of the trace, beside this one."""


def digest_of(point: Point) -> str:
    """Digest of what a point computes and runs under."""
    told = {"is": point.identity(), "terms": point.terms.timing()}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def diagnosis_folder(study: Path, point: str) -> Path:
    """Where the diagnosis of a point is kept, in a study's folder."""
    return study / FOLDER / point


def write_diagnosis(study: Path, diagnosis: Diagnosis) -> Path:
    """Keep a diagnosis in the place of the point's last; its file."""
    file = diagnosis_folder(study, diagnosis.point) / "diagnosis.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_record(file, diagnosis)
    return file


def diagnoses(study: Path) -> list[Diagnosis]:
    """The diagnoses that a study's folder keeps and that can be gone by, the newest first."""
    files = (study / FOLDER).glob("*/diagnosis.json")
    found = [read_record(file, Diagnosis).record for file in files]
    return sorted((each for each in found if each), key=lambda each: each.made, reverse=True)
