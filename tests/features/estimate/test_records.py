"""Which estimate of a study stays."""

from pathlib import Path

import pytest

from scalestudy.features.estimate.records import (
    EstimateRecord,
    PredictedRange,
    one_worker_folder,
    store,
    stored_estimate,
)


def estimate(study: str, *, before: bool) -> EstimateRecord:
    return EstimateRecord(
        study=study, made="2026-01-01T00:00:00+00:00", before=before, seed=0, draws=10, target=0.7,
        per_node=1, series=[],
    )  # fmt: skip


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "study.json").write_text("{}")
    return folder


def test_one_from_before_the_measurement_is_not_replaced_by_one_from_after(results: Path):
    first = estimate("first", before=True)
    assert store(results, first) is None
    assert store(results, estimate("later", before=False)) == first
    assert stored_estimate(results).record == first


def test_another_from_before_replaces_it_and_so_does_one_from_after_one_from_after(results: Path):
    for before in (True, False):
        (results / "estimate.json").unlink(missing_ok=True)
        store(results, estimate("first", before=before))
        assert store(results, estimate("second", before=before)) is None
        assert stored_estimate(results).record.study == "second"


def test_until_there_is_a_results_folder_it_lies_beside_it_and_is_found_from_there(tmp_path: Path):
    results = tmp_path / "study"
    one_worker_folder(results).mkdir()
    store(results, estimate("early", before=True))
    assert (tmp_path / "study-one-worker" / "estimate.json").exists()
    assert not results.exists()
    assert stored_estimate(results).record.study == "early"


def test_a_damaged_estimate_is_none_and_says_why(results: Path):
    store(results, estimate("first", before=True))
    file = results / "estimate.json"
    file.write_text(file.read_text()[:40])
    found = stored_estimate(results)
    assert (found.record, found.word) == (None, "corrupt")


def test_a_range_holds_its_ends():
    found = PredictedRange(value=2, low=1, high=3)
    assert found.holds(1) and found.holds(3) and not found.holds(3.1)
