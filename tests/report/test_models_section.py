import re

import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.runs import Run
from scalestudy.report.as_latex import latex
from scalestudy.report.as_markdown import markdown
from scalestudy.report.as_terminal import terminal
from scalestudy.report.document import Document, Drawing, Folded, Paragraph, Table
from scalestudy.report.images import Picture
from scalestudy.report.models_section import models_section, time_figure


def section(runs):
    return models_section(analyse("made", runs))


def table(found, name):
    folded = (block for each in found.blocks if isinstance(each, Folded) for block in each.blocks)
    blocks = [*found.blocks, *folded]
    return next(block for block in blocks if isinstance(block, Table) and block.name == name)


def on_nodes(run, per_node):
    size = run.result.workers
    ranks = tuple(
        synthetic.rank(size).model_copy(update={"rank": rank, "host": f"node{rank // per_node}"})
        for rank in range(size)
    )
    return Run(run.result, run.epochs, run.folder, ranks)


STUDY = synthetic.seeded((1, 2, 4, 8, 16))


@pytest.fixture(scope="module")
def whole():
    """The section of a study on nodes with four workers each."""
    return section([on_nodes(run, 4) for run in STUDY])


def test_two_counts_have_no_scaling_model():
    assert section(synthetic.seeded((1, 2))) is None


def test_values_beyond_what_was_measured_are_marked_as_predicted(whole):
    rows = table(whole, "predicted").rows
    assert [row[:2] for row in rows] == [
        (strategy, count) for strategy in ("mirrored", "horovod") for count in ("32", "64")
    ]
    assert all("±" in row[2] or "–" in row[2] for row in rows)


def test_every_count_has_its_residual_and_its_serial_share(whole):
    rows = table(whole, "scaling").rows
    assert len(rows) == 10
    one, two = rows[0], rows[1]
    assert one[5] == ""  # undefined for one worker
    assert two[5].startswith("0.0")


def test_a_strategy_without_a_scaling_model_says_why():
    runs = [*synthetic.seeded((1, 2, 4), ("horovod",)), *synthetic.seeded((1, 2), ("mirrored",))]
    text = terminal(Document("made", (section(runs),)), 200)
    assert "No scaling model for mirrored: a scaling model needs 3 different numbers" in text


def test_curves_are_dashed_and_points_open_beyond_what_was_measured():
    svg = Picture(time_figure(analyse("made", STUDY))).svg
    assert 'stroke-dasharray="3,4"' in svg
    marks = re.findall(r'aria-label="[^"]*Is: (\w+);[^>]*', svg)
    filled = re.findall(r'aria-label="[^"]*Is: (\w+);[^>]* fill="#', svg)
    assert sorted(set(marks)) == ["measured", "predicted"]
    assert set(filled) == {"measured"}
    assert len(filled) == marks.count("measured")


def test_the_section_is_written_in_every_form(whole):
    document = Document("made", (whole,))
    assert sum(isinstance(block, Drawing) for block in whole.blocks) == 1
    for text in (terminal(document, 100), markdown(document), latex(document)):
        assert "How the times scale" in text
        assert "Predictions for up to" in text


def test_without_one_worker_predictions_say_what_they_are_against():
    runs = [run for run in STUDY if run.result.workers >= 4]
    assert all(row[3].endswith("against 4 workers") for row in table(section(runs), "predicted").rows)


def test_of_very_many_series_some_are_told_of_and_the_others_counted():
    runs = [
        run
        for batch in range(7)
        for run in synthetic.seeded((1, 2, 4), seeds=1, swept={"train.batch_size": batch})
    ]
    found = section(runs)
    drawn = next(block for block in found.blocks if isinstance(block, Drawing)).figure
    assert drawn.caption.endswith("Of 14 series, 12 are drawn.")
    assert Paragraph("Scaling models of 2 more series are not shown here.") in found.blocks
