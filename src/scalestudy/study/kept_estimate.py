"""Where the estimate of a study is kept, and which one stays."""

from pathlib import Path

from scalestudy.study.estimate_record import ESTIMATE_FILE, EstimateRecord
from scalestudy.study.record_file import StoredRecord, read_record, write_record

SUFFIX = "-one-worker"


def one_worker_folder(results: Path) -> Path:
    """Results folder of the short runs that an estimate was measured by, beside the study's own."""
    return results.with_name(results.name + SUFFIX)


def home(results: Path) -> Path:
    """Folder of the estimate: the study's, or until there is one that of the short runs."""
    return results if (results / "study.json").exists() else one_worker_folder(results)


def kept_estimate(results: Path) -> StoredRecord[EstimateRecord]:
    """The estimate of a study: in its folder, else beside it."""
    found = read_record(results / ESTIMATE_FILE, EstimateRecord)
    if found.word == "missing":
        return read_record(one_worker_folder(results) / ESTIMATE_FILE, EstimateRecord)
    return found


def keep(results: Path, estimate: EstimateRecord) -> EstimateRecord | None:
    """Write an estimate, unless that would take away one that was made before anything was measured.

    Returns:
        The one that stays in its place; None if this one was written.

    Raises:
        OSError: It cannot be written.
    """
    there = kept_estimate(results).record
    if there is not None and there.before and not estimate.before:
        return there
    write_record(home(results) / ESTIMATE_FILE, estimate)
    return None
