"""The report's section on foresight, and the page of an estimate."""

from dataclasses import replace

import made
import pytest
from foreseen_studies import unet

from scalestudy.analysis.findings import analyse
from scalestudy.features.estimate.against import held_against
from scalestudy.analysis.table import summarise
from scalestudy.report.as_markdown import markdown
from scalestudy.report.as_terminal import terminal
from scalestudy.report.document import Drawing, Items, Paragraph, Table, drawings
from scalestudy.features.estimate.page import estimate_page, expected
from scalestudy.features.estimate.section import estimate_section, verdict


@pytest.fixture(scope="module")
def estimate():
    return unet()


def findings(runs, estimate):
    return replace(analyse("unet", runs), estimate=estimate)


def of(section, kind):
    return next(block for block in section.blocks if isinstance(block, kind))


def test_a_study_without_an_estimate_has_no_section():
    assert estimate_section(findings(made.published(), None)) is None


def test_before_anything_is_measured_the_section_says_what_is_expected(estimate):
    ones = [run for run in made.published() if run.result.workers == 1]
    section = estimate_section(findings(ones, estimate))
    assert section.title == "Foreseen"
    assert "before any run with more than one worker" in of(section, Paragraph).text
    assert len(of(section, Items).items) == 2


def test_foreseen_and_measured_stand_side_by_side_with_how_far_they_differ(estimate):
    section = estimate_section(findings(made.published(), estimate))
    assert section.title == "Foreseen and measured"
    table = of(section, Table)
    rows = {(row[0], row[1]): row for row in table.rows}
    assert len(rows) == 14
    native, horovod = rows["native", "14"], rows["horovod", "14"]
    assert native[5].startswith("+2") and native[4].endswith("*")
    assert not horovod[4].endswith("*")
    assert table.footnotes == ("An asterisk marks times outside of the interval that was foreseen.",)


def test_the_verdict_names_the_row_that_was_furthest_off(estimate):
    held = held_against(estimate, summarise(made.published()))
    text = verdict(held)
    assert "at most on native on 14 workers (25 % longer than foreseen)" in text
    assert f"{sum(each.inside for each in held)} of 14 rows lie in the interval" in text
    assert verdict([each for each in held if each.key.label == "horovod on 2 workers"]).endswith(
        "it lies in the interval that was foreseen."
    )


def test_the_figure_has_the_foreseen_band_and_the_measured_points(estimate):
    section = estimate_section(findings(made.published(), estimate))
    spec = of(section, Drawing).figure.spec
    layers = spec["layer"]
    marks = [layer["mark"]["type"] for layer in layers]
    assert marks == ["line", "area", "line", "point"]
    scales = [layer["encoding"]["y"].get("scale", {}).get("type") for layer in layers]
    assert scales[0] is None, "up to 28 workers both axes are linear, or the ideal would be no straight line"
    assert len(spec["datasets"][layers[-1]["data"]["name"]]) == 14


def test_the_page_says_what_is_expected_and_what_that_rests_on(estimate):
    page = estimate_page(estimate)
    text = terminal(page, width=160)
    for said in ("Expected scaling of unet", "What it rests on", "spread of workers", "100 Gb/s", "nccl"):
        assert said in text
    (row,) = [line for line in markdown(page).splitlines() if line.startswith("| 14 |")][:1]
    assert "| slowest worker | 7 | 224 | 32 |" in row
    (figure,) = drawings(page.blocks)
    assert figure.name == "foreseen"
    wide = next(drawings(estimate_page(unet(counts=(1, 64, 128))).blocks)).spec["layer"][0]["encoding"]
    assert wide["x"]["scale"]["type"] == wide["y"]["scale"]["type"] == "log"
    assert list(drawings(estimate_page(estimate, drawn=False).blocks)) == []


def test_workers_beyond_the_training_set_are_marked():
    estimate = unet(counts=(1, 32, 64, 128))
    (note,) = expected(estimate.series[0], estimate).footnotes
    assert note.startswith("From 64 workers on") and "896 samples" in note


def test_what_could_not_be_foreseen_is_said(estimate):
    page = estimate_page(estimate.model_copy(update={"missing": ["mirrored: no run"]}), drawn=False)
    assert "Not foreseen: mirrored: no run." in markdown(page)
