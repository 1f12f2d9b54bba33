"""The report as a document: on a page, as Markdown and LaTeX."""

import json
import re

import pytest

import synthetic
from compiled import compiled, needs_tex
from scalestudy.analysis.findings import analyse
from scalestudy.report import as_html
from scalestudy.report import sections as sections_module
from scalestudy.report.as_html import html, script_json
from scalestudy.report.as_markdown import markdown
from scalestudy.report.document import Document, Paragraph, Section, Table, anchor, drawings
from scalestudy.report.formats import Medium, format_of
from scalestudy.report.study_document import report_document
from scalestudy.report.terminal import render_text
from scalestudy.report.write import write_report

PLACES = ["time-and-cost", "speedup", "quality", "efficiency", "phases", "loss-by-epoch"]


@pytest.fixture(scope="module")
def document():
    return report_document(analyse("A_study & more", synthetic.seeded((1, 2, 4)), synthetic.unfinished()))


@pytest.fixture(scope="module")
def nasty():
    """The page of a study whose texts are markup."""
    swept = {"train.note": "</script><script>alert(1)"}
    runs = synthetic.seeded((1, 2), ("horovod", "virtual"), swept=swept)
    findings = analyse("</title><script>alert('name')</script>", runs, synthetic.unfinished())
    return html(report_document(findings))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A report as it lies in a study's folder."""
    runs = synthetic.seeded((1, 2), seeds=1)
    folder = synthetic.write(tmp_path_factory.mktemp("study") / "study", "study", [synthetic.run("native")])
    return write_report(folder, findings=analyse("A_study & more", runs, synthetic.unfinished()))


def test_the_decision_comes_first_and_how_it_was_measured_after_all_sections(document):
    titles = [block.title for block in document.blocks if not hasattr(block, "facts")]
    assert titles[:2] == ["Decision", "Results"]
    order = ["Results", "Not settled", "Figures", "What it cost", "How this was measured", "Environment"]
    assert [title for title in titles if title in order] == order
    assert titles[-1].startswith("Runs: 1 failed")


def test_users_texts_cannot_become_markup(nasty):
    assert "<script>alert" not in nasty
    assert nasty.count("<script") == nasty.count("</script") == 5


def test_nothing_is_loaded_from_a_network(nasty):
    page = re.sub(r"<script.*?</script>", "", nasty, flags=re.DOTALL)
    assert not re.findall(r"""(?:src|href|srcset|action)\s*=\s*["']?\s*(?:https?:)?//""", page)
    assert "@import" not in page
    assert not re.findall(r"<script[^>]*\bsrc", nasty)
    assert nasty.count("window.vegaEmbed=") == 1


def test_every_place_has_its_chart_its_still_and_its_choices(nasty):
    charts = json.loads(re.search(r'id="charts">(.*?)</script>', nasty, re.DOTALL)[1])
    shown = re.findall(r'data-chart="([^"]+)"', nasty)
    assert shown == PLACES
    assert set(re.findall(r'<option value="([^"]+)"', nasty)) | set(shown) == set(charts["figures"])
    assert nasty.count('class="still"') == nasty.count("<figure") == len(shown)
    # Data are kept once, whatever is drawn of them.
    losses = [charts["figures"][f"loss-by-{name}"]["spec"]["datasets"] for name in ("epoch", "time")]
    assert losses[0] == losses[1] and all(name in charts["datasets"] for name in losses[0])


def test_contents_name_what_is_there(nasty, document):
    targets = re.findall(r'href="#([^"]+)"', re.findall(r"<nav.*?</nav>", nasty, re.DOTALL)[0])
    assert {"decision", "open", "figures", "measured", "runs"} <= set(targets)
    assert all(f'id="{name}"' in nasty for name in targets)
    assert {anchor(block) for block in document.blocks if isinstance(block, Section)} > {"decision", "costs"}


def test_a_large_study_has_charts_of_bounded_weight():
    counts = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 24, 32, 48, 64)
    names = ("single", "native", "mirrored", "multiworker", "horovod", "virtual")
    findings = analyse("large", synthetic.seeded(counts, names, seeds=1))
    assert len(script_json(as_html._charts(report_document(findings)))) < 800_000


def test_a_long_table_shows_its_first_rows_and_the_advised_one(monkeypatch, document):
    (results,) = (b for b in document.blocks if isinstance(b, Section) and b.title == "Results")
    (table,) = (block for block in results.blocks if isinstance(block, Table))
    monkeypatch.setattr(as_html, "MOST_ROWS", 1)
    page = html(Document("made", (table,)))
    assert page.count('<th scope="row"') == 2 and page.count('<tr class="chosen"') == 1
    assert "4 more rows are not shown." in page


def test_a_study_without_results_needs_no_charts():
    empty = analyse("empty", [], synthetic.unfinished())
    page = html(report_document(empty))
    assert "vegaEmbed" not in page and "horovod-w16-s0" in page
    for text in (page, *(format_of(form).render(empty, Medium()) for form in ("markdown", "latex"))):
        assert "No run has finished" in text


def test_json_in_a_script_holds_no_markup_and_comes_back_whole():
    value = {"a": "</script><!-- & \u2028"}
    assert not set("<>&\u2028") & set(script_json(value))
    assert json.loads(script_json(value)) == value


def test_markdown_marks_the_advised_row_and_names_figures_without_a_file(document):
    text = markdown(document)
    assert "![" not in text and "**Speed-up against workers.**" in text
    assert sum(line.startswith("| mirrored ←") for line in text.splitlines()) == 1
    assert "Runs: 1 failed" not in text  # on the page alone


@pytest.mark.parametrize(("form", "link"), [
    ("markdown", r"!\[[^\]]*\]\(([^)]+)\)"), ("latex", r"\\includegraphics\[[^\]]*\]\{([^}]+)\}"),
])  # fmt: skip
def test_a_written_report_refers_to_the_pictures_beside_it(written, form, link):
    file = written.files[form]
    found = re.findall(link, file.read_text())
    assert len(found) == len(written.figures) / 3 >= 5
    assert all((file.parent / name).stat().st_size for name in found)


def test_a_section_stands_in_the_page_and_in_the_terminal(monkeypatch):
    said = Section("A subject", (Paragraph("A sentence on it."),))
    monkeypatch.setattr(sections_module.SECTIONS, "names", lambda: ["said", "nothing"])
    monkeypatch.setattr(
        sections_module.SECTIONS, "get", {"said": lambda _: said, "nothing": lambda _: None}.get
    )
    findings = analyse("made", [synthetic.run("mirrored", 1)])
    assert "A sentence on it." in render_text(findings, verbose=True)
    blocks = report_document(findings, drawn=False).blocks
    titles = [block.title for block in blocks if isinstance(block, Section)]
    assert titles.index("A subject") < titles.index("How this was measured")
    assert sum(1 for _ in drawings(blocks)) == 0


@needs_tex
@pytest.mark.tex
@pytest.mark.slow
def test_a_report_compiles_with_its_figures(written):
    found = compiled(written.files["latex"])
    assert max(found.overfull, default=0.0) < 3
    for words in ("A_study & more", "Decision", "mirrored", "Speed-up S", "How this was measured"):
        assert words in found.text, words
