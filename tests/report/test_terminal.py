from functools import cache

import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.report.formats import sections
from scalestudy.report.notes import notes
from scalestudy.report.terminal import MOST_LINES, render_text

PAGE = "/studies/made/report/report.html"


def flat(words):
    return " ".join(words.split())


@cache
def many(rows):
    """Studies of 1, 16 and 200 rows with everything that adds lines."""
    counts = {1: (1,), 16: (1, 2, 3, 4, 6, 8, 12, 16), 200: tuple(range(1, 101))}[rows]
    swept = {"train.batch_size": 16, "train.learning_rate": 0.001}
    strategies = ("mirrored",) if rows == 1 else ("mirrored", "horovod")
    runs = synthetic.seeded(counts, strategies, swept=swept, seeds=2 if rows == 200 else 3)
    return analyse("made", runs, synthetic.unfinished())


@pytest.mark.parametrize(("rows", "width"), [(1, 80), (16, 80), (16, 120), (200, 120)])
def test_a_brief_report_holds_the_decision_in_thirty_lines(rows, width):
    findings = many(rows)
    assert len(findings.rows) == rows
    shown = render_text(findings, width, page=PAGE * 3)
    lines = shown.splitlines()
    assert len(lines) <= MOST_LINES == 30
    assert lines[0] == "made"
    assert lines[1].split()[:2] == ["strategy", "n"]
    assert findings.advice.headline in flat(shown)
    assert findings.advice.cost in flat(shown)
    assert "? " in shown
    assert lines[-1] == f"Page: {PAGE * 3}"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_at_any_width_the_quality_is_said_and_so_is_what_was_left_out(width):
    findings = many(16)
    shown = render_text(findings, width)
    assert flat(findings.advice.sentences[0]) in flat(shown)
    every = render_text(findings, 200).splitlines()[1].split()
    assert ("Columns that need more width" in shown) is (shown.splitlines()[1].split() != every)


def test_of_many_rows_the_brief_table_has_the_advised_one_and_the_front():
    findings = many(200)
    lines = render_text(findings, 120).splitlines()
    shown = [(line.split()[0], int(line.split()[1])) for line in lines if line.startswith(("mirr", "horo"))]
    prices = findings.advice.decision.prices
    front = {(key.strategy, key.workers) for key, price in prices.items() if price.on_front}
    choice = findings.advice.decision.choice
    assert (choice.strategy, choice.workers) in shown
    assert set(shown) <= front
    assert len(shown) > 5


def test_verbose_has_footnotes_sections_and_notes_and_brief_has_none():
    findings = analyse("made", synthetic.oversubscribed(), synthetic.unfinished())
    shown, brief = (flat(render_text(findings, 120, verbose=verbose)) for verbose in (True, False))
    words = [*(section.title for section in sections(findings)), *notes(findings)]
    assert len(words) > 5
    assert [text for text in words if flat(text) not in shown] == []
    assert [text for text in words if flat(text) in brief] == []
    assert "[1] oversubscribed: 4 workers with 1 core each on 2 cores" in shown
    assert "[1]" not in brief


def test_of_long_tables_the_first_rows_and_the_advised_one_are_printed(monkeypatch):
    monkeypatch.setattr("scalestudy.report.as_terminal.MOST_ROWS", 1)
    shown = render_text(analyse("made", synthetic.seeded()), 300, verbose=True)
    shown = shown.partition("Results")[2].partition(" are not printed")[0]
    assert shown.count("mirrored ") == 2
    assert "0.88" in shown  # the advised row, not the first
    assert shown.endswith("6 more rows")


def test_lines_fit_the_terminal_and_names_are_no_markup():
    swept = {"train.note": "[red]loud[/red]"}
    runs = synthetic.published() + synthetic.seeded((1, 2), ("mirrored", "virtual"), swept=swept)
    findings = analyse("made", runs, synthetic.unfinished())
    for width, verbose in ((80, False), (80, True), (120, True)):
        shown = render_text(findings, width, verbose=verbose)
        assert max(len(line) for line in shown.splitlines()) <= width
        assert "…" not in shown and "[red]" in shown


def test_a_study_without_results_names_what_is_open_and_why_runs_failed():
    findings = analyse("made", [], synthetic.unfinished())
    for verbose in (False, True):
        shown = render_text(findings, verbose=verbose)
        assert findings.advice.headline in shown
        assert "horovod-w8-s2" in shown and "ended by signal 9" in shown
