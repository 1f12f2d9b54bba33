"""The last diagnosis that a study's folder keeps, beside what the study itself has measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.analysis.runs import key_of
from scalestudy.analysis.statistics import NOTHING, Estimate
from scalestudy.analysis.table import Row
from scalestudy.features.diagnose.records import Diagnosis, diagnoses, digest_of
from scalestudy.study.store import StudyFolder


@dataclass(frozen=True)
class Kept:
    """A diagnosis in its study.

    Attributes:
        diagnosis: As it was measured.
        changed: Whether the study asks for something else under the point's name by now, or not for it.
        measured: E(n) of the point by the study's own runs; empty where these have none.
    """

    diagnosis: Diagnosis
    changed: bool = False
    measured: Estimate = NOTHING


def last_diagnosis(folder: StudyFolder, rows: Sequence[Row]) -> Kept | None:
    """The newest diagnosis of any point; None without one."""
    found = diagnoses(folder.path)
    return kept(found[0], folder, rows) if found else None


def kept(diagnosis: Diagnosis, folder: StudyFolder, rows: Sequence[Row]) -> Kept:
    """A diagnosis held against its study.

    Args:
        diagnosis: Of a point of the study.
        folder: The study.
        rows: Its table.
    """
    key = key_of(diagnosis.strategy, diagnosis.workers, dict(diagnosis.swept))
    measured = next((row.efficiency for row in rows if row.key == key), NOTHING)
    now = next((digest_of(point) for point in folder.points() if point.name == diagnosis.point), None)
    return Kept(diagnosis, now != diagnosis.digest, measured)
