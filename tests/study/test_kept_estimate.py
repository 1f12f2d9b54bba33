"""Which estimate of a study stays."""

from pathlib import Path

import pytest

from scalestudy.study.estimate_record import EstimateRecord, Interval
from scalestudy.study.kept_estimate import home, keep, kept_estimate, one_worker_folder


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
    assert keep(results, first) is None
    assert keep(results, estimate("later", before=False)) == first
    assert kept_estimate(results).record == first


def test_another_from_before_replaces_it_and_so_does_one_from_after_one_from_after(results: Path):
    for before in (True, False):
        (results / "estimate.json").unlink(missing_ok=True)
        keep(results, estimate("first", before=before))
        assert keep(results, estimate("second", before=before)) is None
        assert kept_estimate(results).record.study == "second"


def test_until_there_is_a_results_folder_it_lies_beside_it_and_is_found_from_there(tmp_path: Path):
    results = tmp_path / "study"
    one_worker_folder(results).mkdir()
    keep(results, estimate("early", before=True))
    assert home(results) == tmp_path / "study-one-worker"
    assert not results.exists()
    assert kept_estimate(results).record.study == "early"


def test_a_damaged_estimate_is_none_and_says_why(results: Path):
    keep(results, estimate("first", before=True))
    file = results / "estimate.json"
    file.write_text(file.read_text()[:40])
    found = kept_estimate(results)
    assert (found.record, found.word) == (None, "corrupt")


def test_an_interval_holds_its_ends():
    found = Interval(value=2, low=1, high=3)
    assert found.holds(1) and found.holds(3) and not found.holds(3.1)
