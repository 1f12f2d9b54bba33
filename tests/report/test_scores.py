from dataclasses import replace

import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.report.html import to_html
from scalestudy.report.scores import MOST_CLASSES, score_tables

NAMES = ["background", "cell <b>"]


def run(workers, seed, value, *, names=NAMES, matrix=((3, 1), (2, 4))):
    """One whose metrics are known; the second class's Dice is a quarter of its own."""
    values = {"loss": 0.5, "iou": value, "dice": value, "dice_background": value, "dice_cell_b": value / 4}
    one = synthetic.run(workers=workers, seed=seed, quality=value)
    matrices = {"confusion_matrix": [list(row) for row in matrix]}
    known = {"validation": values, "class_names": list(names), "validation_matrices": matrices}
    return replace(one, result=one.result.model_copy(update=known))


@pytest.fixture
def findings():
    return analyse("made", [run(1, 0, 0.8), run(1, 1, 0.6), run(2, 0, 0.4)])


def test_every_row_shows_the_means_of_its_metrics_and_not_those_of_classes(findings):
    table = score_tables(findings)[0]
    assert table.columns == ("loss", "IoU", "Dice")
    assert table.lines == (
        ("single on 1 worker", ("0.5000", "0.7000", "0.7000")),
        ("single on 2 workers", ("0.5000", "0.4000", "0.4000")),
    )


def test_classes_and_confusions_are_those_of_one_row(findings):
    classes, confusions = score_tables(findings)[1:3]
    chosen = findings.advice.choice.key if findings.advice.choice else findings.rows[0].key
    assert chosen.workers == 1
    assert classes.title == f"By class: {chosen.label}"
    assert classes.columns == ("Dice",)
    assert classes.lines == (("background", ("0.7000",)), ("cell <b>", ("0.1750",)))
    assert confusions.columns == tuple(NAMES)
    assert confusions.lines == (("background", ("6", "2")), ("cell <b>", ("4", "8")))


def test_a_class_without_a_value_has_none():
    one = run(1, 0, 0.8)
    del one.result.validation["dice_cell_b"]
    assert score_tables(analyse("made", [one]))[1].lines[1] == ("cell <b>", ("n/a",))


def test_of_many_classes_and_of_older_folders_only_the_metrics_are_shown():
    many = [f"c{number}" for number in range(MOST_CLASSES + 1)]
    assert len(score_tables(analyse("made", [run(1, 0, 0.8, names=many)]))) == 1
    assert score_tables(analyse("made", [synthetic.run()])) == []


def test_they_are_folded_in_the_page_and_texts_are_escaped(findings):
    page = to_html(findings, [])
    assert '<details class="scores" id="metrics">' in page
    assert "cell &lt;b&gt;" in page and "cell <b>" not in page
    assert '<details class="scores"' not in to_html(analyse("made", [synthetic.run()]), [])
