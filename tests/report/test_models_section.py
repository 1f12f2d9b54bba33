import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.runs import Run
from scalestudy.report.as_terminal import terminal
from scalestudy.report.document import Document, Folded, Table
from scalestudy.report.models_section import models_section


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


def test_without_one_worker_predictions_say_what_they_are_against():
    runs = [run for run in STUDY if run.result.workers >= 4]
    assert all(row[3].endswith("against 4 workers") for row in table(section(runs), "predicted").rows)
