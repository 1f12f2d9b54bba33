"""The page of an estimate, and the report's section beside what was measured."""

from dataclasses import replace

import pytest

import made
from estimated_studies import unet
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.table import summarise
from scalestudy.features.estimate.page import (
    compare,
    estimate_page,
    estimate_section,
    mean_factor,
    predicted_table,
    verdict,
)
from scalestudy.features.estimate.records import store
from scalestudy.report.as_markdown import markdown
from scalestudy.report.document import Drawing, Items, Table, drawings


@pytest.fixture(scope="module")
def estimate():
    return unet()


@pytest.fixture(scope="module")
def compared(estimate):
    return compare(estimate, summarise(made.published()))


@pytest.fixture
def section_of(tmp_path):
    """The section of a study with these runs, in whose folder an estimate lies."""
    (tmp_path / "study.json").write_text("{}")

    def section(runs, estimate):
        if estimate:
            store(tmp_path, estimate)
        return estimate_section(replace(analyse("unet", runs), folder=tmp_path))

    return section


def of(section, kind):
    return next(block for block in section.blocks if isinstance(block, kind))


def test_every_measured_row_with_several_workers_is_compared(compared):
    assert len(compared) == 14
    assert {row.key.workers for row in compared} == {2, 4, 6, 8, 10, 12, 14}
    for row in compared:
        assert row.seconds == pytest.approx(made.U_NET[row.key.workers][row.key.strategy == "horovod" and 3])


def test_the_error_is_the_share_by_which_the_measured_time_is_longer(compared):
    last = next(row for row in compared if row.key.label == "native on 14 workers")
    assert last.error == pytest.approx(718 / last.predicted.training_seconds.value - 1)
    assert last.error > 0 and last.inside


def test_the_mean_factor_counts_too_long_and_too_short_alike(compared):
    one = compared[0]
    twice = replace(one, seconds=2 * one.predicted.training_seconds.value)
    half = replace(one, seconds=0.5 * one.predicted.training_seconds.value)
    assert mean_factor([twice, half]) == pytest.approx(2.0)


def test_rows_that_shared_cores_or_were_not_predicted_are_left_out(estimate):
    rows = summarise([*made.oversubscribed(), made.run("horovod", 3)])
    assert [row.key.workers for row in compare(estimate, rows)] == [2]


@pytest.mark.parametrize("least", [2, 14], ids=["several counts", "one large job"])
def test_without_a_one_worker_run_a_measured_speed_up_is_over_the_predicted_time_of_one(estimate, least):
    """Not over the fewest workers, as the study's own is: that would lie far below the prediction."""
    runs = [run for run in made.published() if run.result.workers >= least]
    runs = [run for run in runs if run.result.strategy == "horovod"]
    (series,) = (each for each in estimate.series if each.strategy == "horovod")
    compared = compare(estimate, summarise(runs))
    assert compared
    for row in compared:
        assert row.speedup == pytest.approx(series.points[0].training_seconds.value / row.seconds)
        assert row.speedup == pytest.approx(made.U_NET[row.key.workers][4], rel=0.1)


def test_a_study_without_an_estimate_has_no_section(section_of):
    assert section_of(made.published(), None) is None
    assert estimate_section(analyse("numbers without a folder", made.published())) is None


def test_before_anything_is_measured_the_section_says_what_is_expected(section_of, estimate):
    section = section_of([run for run in made.published() if run.result.workers == 1], estimate)
    assert section.name == "predicted"
    assert of(section, Items).items == tuple(series.sentence for series in estimate.series)
    assert of(section, Drawing).figure.name == "predicted"


def test_predicted_and_measured_stand_side_by_side_with_how_far_they_differ(section_of, estimate, compared):
    table = of(section_of(made.published(), estimate), Table)
    rows = {(row[0], row[1]): row for row in table.rows}
    assert len(rows) == 14
    outside = {(row.key.strategy, str(row.key.workers)) for row in compared if not row.inside}
    assert {key for key, row in rows.items() if row[4].endswith("*")} == outside
    assert len(table.footnotes) == bool(outside)


def test_the_verdict_names_the_row_that_was_furthest_off(compared):
    worst = max(compared, key=lambda row: abs(row.error))
    assert f"{worst.key.label} ({100 * abs(worst.error):.0f} %" in verdict(compared)
    assert f"{sum(row.inside for row in compared)} of 14 rows" in verdict(compared)


def test_the_figure_has_the_predicted_band_and_the_measured_points(section_of, estimate):
    layers = of(section_of(made.published(), estimate), Drawing).figure.spec["layer"]
    assert [layer["mark"]["type"] for layer in layers] == ["line", "area", "line", "point"]
    scales = [layer["encoding"]["y"].get("scale", {}).get("type") for layer in layers]
    assert scales[0] is None, "up to 28 workers both axes are linear, or the ideal would be no straight line"


def test_the_page_has_the_predicted_table_the_assumptions_and_a_figure(estimate):
    page = estimate_page(estimate)
    text = markdown(page)
    for assumption in estimate.series[0].assumptions:
        assert assumption.name in text
    (row,) = [line for line in text.splitlines() if line.startswith("| 14 |")][:1]
    assert "| slowest worker | 7 | 224 | 32 |" in row
    (figure,) = drawings(page.blocks)
    assert figure.name == "predicted"
    wide = next(drawings(estimate_page(unet(counts=(1, 64, 128))).blocks)).spec["layer"][0]["encoding"]
    assert wide["x"]["scale"]["type"] == wide["y"]["scale"]["type"] == "log"
    assert list(drawings(estimate_page(estimate, drawn=False).blocks)) == []


def test_workers_beyond_the_training_set_are_marked():
    estimate = unet(counts=(1, 32, 64, 128))
    (note,) = predicted_table(estimate.series[0], estimate).footnotes
    assert "64 workers" in note and "896 samples" in note


def test_what_could_not_be_predicted_is_on_the_page(estimate):
    page = estimate_page(estimate.model_copy(update={"missing": ["mirrored: no run"]}), drawn=False)
    assert "mirrored: no run" in markdown(page)
