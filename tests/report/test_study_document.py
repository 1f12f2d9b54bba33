"""The report as a document and in its formats: page, Markdown, tables and pictures."""

import json
import re
import shutil
import subprocess
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise

import pytest

import synthetic
from scalestudy.analysis.findings import analyse, read_study
from scalestudy.config.parse import load_study
from scalestudy.report import formats, write_document
from scalestudy.report.document import (
    Document,
    Drawing,
    Folded,
    Heading,
    Paragraph,
    Section,
    Table,
    drawings,
)
from scalestudy.report.formats import sections
from scalestudy.report.notes import notes
from scalestudy.report.study_document import render_text, report_document, write_report
from scalestudy.report.write_document import html, markdown, script_json
from scalestudy.util.errors import UserError
from synthetic_document import document as every_block

PLACES = [
    "speedup",
    "quality",
    "time-and-cost",
    "efficiency",
    "phases",
    "loss-by-epoch",
]
LINK = r"!\[[^\]]*\]\(([^)]+)\)"
BEGINS = {".png": b"\x89PNG", ".svg": b"<svg", ".pdf": b"%PDF-"}


@pytest.fixture(scope="module")
def findings():
    """A study whose texts contain markup."""
    swept = {"train.note": "</script><script>alert(1)"}
    runs = synthetic.seeded((1, 2), ("horovod", "virtual"), swept=swept)
    return analyse(
        "</title>_A & <script>alert('name')</script>", runs, synthetic.unfinished()
    )


@pytest.fixture(scope="module")
def document(findings):
    return report_document(findings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    runs = synthetic.seeded((1, 2), ("horovod",), seeds=1)
    return synthetic.write(
        tmp_path_factory.mktemp("study") / "study", "made", runs, synthetic.unfinished()
    )


@pytest.fixture(scope="module")
def written(folder, findings):
    """A report written to another folder, over an old one."""
    out = folder.path.parent / "elsewhere" / "deep"
    out.mkdir(parents=True)
    (out / "report.html").write_text("old")
    return write_report(folder, out, findings=findings)


@pytest.fixture(scope="module")
def page(written):
    return written.read_text()


@pytest.fixture(scope="module")
def blocks_page():
    return html(every_block())


def test_the_decision_comes_first_and_how_it_was_measured_after_all_sections(document):
    titles = [
        block.title for block in document.blocks if isinstance(block, Section | Folded)
    ]
    assert titles[:3] == ["Decision", "Speed-up and quality", "Results"]
    order = [
        "Results",
        "Not settled",
        "Figures",
        "What it cost",
        "How this was measured",
        "Environment",
    ]
    assert [title for title in titles if title in order] == order
    assert titles[-1].startswith("Runs: 1 failed")


@pytest.mark.slow
def test_a_report_is_a_page_tables_and_figures_that_each_form_refers_to(written):
    folder = written.parent
    figures = [path for path in folder.iterdir() if path.suffix in BEGINS]
    assert {path.name for path in {*folder.iterdir()}.difference(figures)} == {
        "report.html",
        "report.md",
        "table.csv",
        "table.json",
    }
    assert len(figures) == 3 * len(PLACES)
    assert all(
        figure.read_bytes().startswith(BEGINS[figure.suffix]) for figure in figures
    )
    addresses = re.findall(LINK, (folder / "report.md").read_text())
    assert len(addresses) == len(PLACES)
    assert all((folder / address).stat().st_size for address in addresses)


def test_users_texts_cannot_become_markup(page):
    assert page.startswith("<!DOCTYPE html>")
    assert "<script>alert" not in page
    assert page.count("<script") == page.count("</script") == 6


def test_nothing_is_loaded_from_a_network(page, blocks_page):
    outside = r"""(?:src|href|srcset|action)\s*=\s*["']?\s*(?:https?:)?//"""
    for text in (page, blocks_page):
        assert not re.findall(
            outside, re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
        )
        assert "@import" not in text and not re.findall(r"<script[^>]*\bsrc", text)
    assert page.count("window.vegaEmbed=") == 1


def test_every_place_has_its_chart_its_still_and_its_choices(page):
    charts = json.loads(re.search(r'id="charts">(.*?)</script>', page, re.DOTALL)[1])
    shown = re.findall(r'data-chart="([^"]+)"', page)
    assert shown == PLACES
    assert set(re.findall(r'<option value="([^"]+)"', page)) | set(shown) == set(
        charts["figures"]
    )
    assert page.count('class="still"') == page.count("<figure") == len(shown)
    # Data are stored once for all figures.
    losses = [
        charts["figures"][f"loss-by-{name}"]["spec"]["datasets"]
        for name in ("epoch", "time")
    ]
    assert losses[0] == losses[1] and all(
        name in charts["datasets"] for name in losses[0]
    )


def test_contents_and_runs_are_linked(page):
    targets = re.findall(
        r'href="#([^"]+)"', re.findall(r"<nav.*?</nav>", page, re.DOTALL)[0]
    )
    assert {"decision", "open", "figures", "measured", "runs"} <= set(targets)
    assert all(f'id="{name}"' in page for name in targets)
    assert 'href="../../study/points/' in page


def test_every_element_is_closed_and_code_is_code(page, blocks_page):
    for text in (page, blocks_page):
        opened: list[str] = []

        class Parser(HTMLParser):
            def handle_starttag(self, tag: str, attrs: object) -> None:
                if tag not in {"meta", "link", "img", "source", "br", "input"}:
                    opened.append(tag)  # noqa: B023

            def handle_endtag(self, tag: str) -> None:
                assert opened.pop() == tag  # noqa: B023

        Parser().feed(text)
        assert not opened
    assert "<b>" not in blocks_page
    assert "<code>launch.cpus_per_worker = 4</code>" in blocks_page
    assert (
        '<h2 id="results">Results</h2>' in blocks_page
        and '<h3 id="by-node">By node</h3>' in blocks_page
    )


def test_a_figure_is_drawn_for_light_and_for_dark(blocks_page):
    addresses = re.findall(
        r'(?:src|srcset)="data:image/svg\+xml;base64,([^"]+)"', blocks_page
    )
    assert (len(addresses), len(set(addresses))) == (3, 2)


def test_names_and_labels_that_come_again_are_numbered():
    table = Table((Heading("n"),), (("1",),), name="quality")
    page = html(Document("made", (Section("Quality", (table, table)),)))
    assert re.findall(r' id="(\w[^"]*)"', page) == ["quality", "quality-2", "quality-3"]
    assert re.findall(r'aria-label="([^"]*)"', page) == ["quality (2)", "quality (3)"]


@pytest.mark.slow
def test_a_large_study_has_charts_of_bounded_weight():
    counts = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 24, 32, 48, 64)
    names = ("single", "native", "mirrored", "multiworker", "horovod", "virtual")
    findings = analyse("large", synthetic.seeded(counts, names, seeds=1))
    assert len(script_json(write_document._charts(report_document(findings)))) < 800_000


def test_a_long_table_shows_its_first_rows_and_the_advised_one(monkeypatch):
    table = Table((Heading("n"),), tuple((str(place),) for place in range(5)), chosen=3)
    monkeypatch.setattr(write_document, "MOST_ROWS", 1)
    page = html(Document("made", (table,)))
    assert page.count('<th scope="row"') == 2 and page.count('<tr class="chosen"') == 1
    assert "3 more rows are not shown." in page


def test_a_study_without_results_needs_no_charts():
    empty = analyse("empty", [], synthetic.unfinished())
    page = html(report_document(empty))
    assert "vegaEmbed" not in page and "horovod-w16-s0" in page
    for text in (page, markdown(report_document(empty))):
        assert empty.advice.headline in text


def test_json_in_a_script_holds_no_markup_and_comes_back_whole():
    value = {"a": "</script><!-- & \u2028"}
    assert not set("<>&\u2028") & set(script_json(value))
    assert json.loads(script_json(value)) == value


def test_markdown_marks_the_advised_row_and_leaves_out_what_a_page_alone_shows(
    document,
):
    text = markdown(document)
    assert "![" not in text and "**Speed-up against workers.**" in text
    assert sum(line.startswith("| horovod ←") for line in text.splitlines()) == 1
    assert "Runs: 1 failed" not in text


def test_a_terminal_has_colours_where_it_can(findings):
    for colour in (False, True):
        assert ("\x1b[" in render_text(findings, 120, colour)) is colour


def test_a_report_is_not_written_among_the_records_of_a_study(folder, findings):
    before = sorted(folder.path.rglob("*"))
    for place in (folder.path, folder.path / "points"):
        with pytest.raises(UserError, match="records of a study"):
            write_report(folder, place, findings=findings)
    assert sorted(folder.path.rglob("*")) == before


def test_a_section_is_on_the_page_and_in_the_terminal(monkeypatch):
    section = Section("A subject", (Paragraph("A sentence on it."),))
    made = {"section": lambda _: section, "nothing": lambda _: None}
    monkeypatch.setattr(formats.SECTIONS, "names", lambda: list(made))
    monkeypatch.setattr(formats.SECTIONS, "get", made.get)
    findings = analyse("made", [synthetic.run("mirrored", 1)])
    assert "A sentence on it." in render_text(findings, verbose=True)
    blocks = report_document(findings, drawn=False).blocks
    titles = [block.title for block in blocks if isinstance(block, Section)]
    assert titles.index("A subject") < titles.index("How this was measured")
    assert sum(1 for _ in drawings(blocks)) == 0


@pytest.mark.browser
@pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("pdftotext")),
    reason="needs chromium and pdftotext",
)
def test_on_paper_pages_are_a4_with_numbers_and_nothing_is_folded_away(
    blocks_page, tmp_path
):
    (tmp_path / "page.html").write_text(blocks_page)
    command = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-pdf-header-footer",
    ]
    command += [
        f"--user-data-dir={tmp_path / 'profile'}",
        f"--print-to-pdf={tmp_path / 'page.pdf'}",
    ]
    subprocess.run(
        [*command, (tmp_path / "page.html").as_uri()], capture_output=True, check=True
    )
    file = str(tmp_path / "page.pdf")
    text, info = (
        subprocess.run(tool, capture_output=True, text=True, check=True).stdout
        for tool in (["pdftotext", "-layout", file, "-"], ["pdfinfo", file])
    )
    pages = text.split("\f")[:-1]
    assert re.search(rf"1 ?/ ?{len(pages)}\s*$", pages[0])
    assert r"\end{x} <i>" in text  # in a part that a screen shows folded
    assert "A4" in info


PAGE = "/studies/made/report/report.html"


def flat(words):
    return " ".join(words.split())


@cache
def many(rows):
    """Studies of 1, 16 and 200 rows with everything that adds lines."""
    counts = {1: (1,), 16: (1, 2, 3, 4, 6, 8, 12, 16), 200: tuple(range(1, 101))}[rows]
    swept = {"train.batch_size": 16, "train.learning_rate": 0.001}
    strategies = ("mirrored",) if rows == 1 else ("mirrored", "horovod")
    runs = synthetic.seeded(
        counts, strategies, swept=swept, seeds=2 if rows == 200 else 3
    )
    return analyse("made", runs, synthetic.unfinished())


@pytest.mark.parametrize(("rows", "width"), [(1, 80), (16, 120), (200, 120)])
def test_a_brief_report_holds_the_decision_and_the_path_of_the_page(rows, width):
    findings = many(rows)
    assert len(findings.rows) == rows
    shown = render_text(findings, width, page=PAGE * 3)
    lines = shown.splitlines()
    assert len(lines) <= 40
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
    assert ("Columns that need more width" in shown) is (
        shown.splitlines()[1].split() != every
    )


def test_of_many_rows_the_brief_table_has_the_advised_one_and_the_front():
    findings = many(200)
    lines = [line.replace("←", " ") for line in render_text(findings, 120).splitlines()]
    shown = [
        (line.split()[0], int(line.split()[1]))
        for line in lines
        if line.startswith(("mirr", "horo"))
    ]
    prices = findings.advice.decision.prices
    front = {
        (key.strategy, key.workers) for key, price in prices.items() if price.on_front
    }
    choice = findings.advice.decision.choice
    assert (choice.strategy, choice.workers) in shown
    assert set(shown) <= front
    assert len(shown) > 5
    # Rows that are left out in the middle or at the end leave a mark.
    rows = [line.strip() for line in lines if line.startswith(("mirr", "horo", "…"))]
    assert "…" in rows
    assert all(one != other for one, other in pairwise(rows))


def test_the_advised_row_is_marked_without_colour_too(findings):
    advised = findings.advice.choice
    for verbose in (False, True):
        marked = [
            line.split()
            for line in render_text(findings, 160, verbose=verbose).splitlines()
            if "←" in line
        ]
        assert {(words[0], words[words.index("←") + 1]) for words in marked} == {
            (advised.strategy, str(advised.workers))
        }


def test_only_shows_rows_with_the_gaps_between_them():
    table = Table((Heading("n"),), tuple((str(n),) for n in range(9)), chosen=7)
    shown = table.only([0, 1, 4, 7])
    assert (shown.rows, shown.chosen, shown.gaps) == (
        (("0",), ("1",), ("4",), ("7",)),
        3,
        (2, 3, 4),
    )
    assert table.only(range(9)).gaps == ()
    assert table.first(3).rows[-1] == ("7",)


def test_a_report_begins_with_what_was_studied(tmp_path):
    study = load_study(write_study(tmp_path))
    runs = synthetic.seeded((1, 2), ("horovod",))
    folder = synthetic.write(tmp_path / "results", "made", runs)
    described = folder.updated(
        lambda old, points: (old.model_copy(update=WORDS), points, "text")
    )
    document = report_document(read_study(described))
    words, facts, decision = document.blocks[:3]
    assert study.title == document.title == WORDS["title"]
    assert study.description == words.text == WORDS["description"]
    assert decision.title == "Decision"
    known = dict(facts.rows)
    assert known["Model"].endswith("485,673 parameters")
    assert "training samples" in known["Data"] and "2026" in known["Runs"]
    assert {"Hardware", "Software"} <= known.keys()
    for text in (
        html(document),
        markdown(document),
        render_text(read_study(described), verbose=True),
    ):
        assert all(
            word in text for word in (WORDS["title"], WORDS["description"], "485,673")
        )


WORDS = {"title": "How many GPUs?", "description": "For the proposal of May."}


def write_study(folder):
    """A study file with a title and a description."""
    file = folder / "study.toml"
    lines = [f'{key} = "{text}"' for key, text in WORDS.items()]
    file.write_text("\n".join(['task = "cnn"', *lines]))
    return file


def test_speed_up_and_quality_come_below_the_decision_and_time_against_cost_after_the_table(
    document,
):
    sections = {
        block.title: block for block in document.blocks if isinstance(block, Section)
    }
    first = [drawing.figure.name for drawing in sections["Speed-up and quality"].blocks]
    assert first == ["speedup", "quality"]
    after = sections["Results"].blocks
    assert isinstance(after[0], Table) and isinstance(after[-1], Drawing)
    assert after[-1].figure.name == "time-and-cost"


def test_verbose_has_footnotes_sections_and_notes_and_brief_has_none():
    findings = analyse("made", synthetic.oversubscribed(), synthetic.unfinished())
    shown, brief = (
        flat(render_text(findings, 120, verbose=verbose)) for verbose in (True, False)
    )
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
    runs = synthetic.published() + synthetic.seeded(
        (1, 2), ("mirrored", "virtual"), swept=swept
    )
    findings = analyse("made", runs, synthetic.unfinished())
    for width, verbose in ((80, False), (80, True), (120, True)):
        shown = render_text(findings, width, verbose=verbose)
        assert max(len(line) for line in shown.splitlines()) <= width
        # Rows are left out, but no text is cut.
        assert all(line.strip() == "…" for line in shown.splitlines() if "…" in line)
        assert "[red]" in shown


def test_a_study_without_results_names_what_is_open_and_why_runs_failed():
    findings = analyse("made", [], synthetic.unfinished())
    for verbose in (False, True):
        shown = render_text(findings, verbose=verbose)
        assert findings.advice.headline in shown
        assert "horovod-w8-s2" in shown and "ended by signal 9" in shown
