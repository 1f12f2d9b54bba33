import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.report.notes import notes
from scalestudy.report.sections import sections
from scalestudy.report.terminal import MOST_LINES, render_text

PAGE = "/studies/made/report/report.html"


def text(runs, planned=(), width=120):
    return render_text(analyse("made", runs, planned), width, verbose=True)


def flat(words):
    return " ".join(words.split())


def many(rows):
    """Studies of 1, 16 and 200 rows, with everything that asks for lines."""
    counts = {1: (1,), 16: (1, 2, 3, 4, 6, 8, 12, 16), 200: tuple(range(1, 101))}[rows]
    strategies = ("mirrored",) if rows == 1 else ("mirrored", "horovod")
    return synthetic.seeded(counts, strategies, swept={"train.batch_size": 16, "train.learning_rate": 0.001})


@pytest.mark.parametrize("rows", [1, 16, 200])
@pytest.mark.parametrize("width", [80, 120])
def test_a_brief_report_holds_the_decision_in_thirty_lines(rows, width):
    findings = analyse("made", many(rows), synthetic.unfinished())
    assert len(findings.rows) == rows
    shown = render_text(findings, width, page=PAGE)
    lines = shown.splitlines()
    assert len(lines) <= MOST_LINES == 30
    assert lines[0] == "made"
    assert lines[1].split()[:2] == ["strategy", "n"]
    assert findings.advice.headline in flat(shown)
    assert findings.advice.cost in flat(shown)
    assert "? " in shown
    assert lines[-1] == f"Page: {PAGE}"


def test_of_many_rows_the_brief_table_has_the_advised_one_and_the_front():
    findings = analyse("made", many(200))
    lines = render_text(findings, 120).splitlines()
    found = [(line.split()[0], int(line.split()[1])) for line in lines if line.startswith(("mirr", "horo"))]
    prices = findings.advice.decision.prices
    front = {(key.strategy, key.workers) for key, price in prices.items() if price.on_front}
    choice = findings.advice.decision.choice
    assert (choice.strategy, choice.workers) in found
    assert set(found) <= front
    assert len(found) > 5


def test_a_long_path_of_the_page_stays_in_one_line():
    path = "/a/very/long/folder/name" * 10
    assert (
        render_text(analyse("made", synthetic.seeded((1, 2))), 80, page=path).splitlines()[-1].endswith(path)
    )


def test_verbose_has_footnotes_sections_and_notes_and_brief_has_none():
    findings = analyse("made", synthetic.oversubscribed(), synthetic.unfinished())
    shown, brief = (flat(render_text(findings, 120, verbose=each)) for each in (True, False))
    said = [*(section.title for section in sections(findings)), *notes(findings)]
    assert len(said) > 5
    assert [words for words in said if flat(words) not in shown] == []
    assert [words for words in said if flat(words) in brief] == []
    assert "[1] oversubscribed: 4 workers with 1 core each on 2 cores" in shown
    assert "[1]" not in brief


def test_intervals_stand_beside_the_values_or_below_them_where_it_is_narrow():
    assert "6.64 ± 0.10" in text(synthetic.seeded(), width=300)
    assert "6.64 ± 0.10" not in text(synthetic.seeded(), width=80) and "±0.10" in text(
        synthetic.seeded(), width=80
    )


@pytest.mark.parametrize("verbose", [False, True])
def test_where_the_table_is_too_wide_columns_are_left_out_that_no_decision_needs(verbose):
    shown = render_text(analyse("made", many(16)), 80, verbose=verbose)
    head = next(line.split() for line in shown.splitlines() if line.startswith("strategy"))
    assert head[:4] == ["strategy", "n", "batch_size", "learning_rate"]
    assert "eff." in head and "IoU" in head and "batch" not in head
    assert ("Columns that need more width: " in shown) == verbose


def test_of_long_tables_the_first_rows_and_the_advised_one_are_printed(monkeypatch):
    monkeypatch.setattr("scalestudy.report.as_terminal.MOST_ROWS", 1)
    shown = text(synthetic.seeded(), width=300).partition("Results")[2].partition("Not settled")[0]
    assert shown.count("mirrored ") == 2
    assert "0.88" in shown  # the advised row, which is not the first
    assert "6 more rows are not printed." in shown


@pytest.mark.parametrize("width", [80, 100, 120])
def test_lines_fit_the_terminal(width):
    runs = synthetic.published() + synthetic.seeded((1, 2), ("mirrored", "virtual"))
    findings = analyse("made", runs, synthetic.unfinished())
    for verbose in (False, True):
        shown = render_text(findings, width, verbose=verbose)
        assert max(len(line) for line in shown.splitlines()) <= width
        assert "…" not in shown


def test_names_of_points_are_no_markup():
    shown = text(synthetic.seeded((1, 2), ("horovod",), swept={"train.note": "[red]loud[/red]"}))
    assert "[red]loud[/red]" in shown


def test_a_study_without_results_names_what_is_open():
    findings = analyse("made", [], synthetic.unfinished())
    for verbose in (False, True):
        shown = render_text(findings, verbose=verbose)
        assert findings.advice.headline in shown
        assert "horovod-w8-s2" in shown
