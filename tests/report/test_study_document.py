"""The report as Markdown and LaTeX."""

import re

import pytest

import synthetic
from compiled import compiled, needs_tex
from scalestudy.analysis.findings import Findings, analyse
from scalestudy.report.as_markdown import markdown
from scalestudy.report.document import Table
from scalestudy.report.formats import Medium, format_of
from scalestudy.report.study_document import report_document
from scalestudy.report.write import write_report


@pytest.fixture(scope="module")
def findings() -> Findings:
    return analyse("A_study & more", synthetic.seeded((1, 2, 4)), synthetic.unfinished())


@pytest.fixture(scope="module")
def document(findings):
    return report_document(findings)


@pytest.fixture(scope="module")
def written(findings, tmp_path_factory):
    """A report as it lies in a study's folder."""
    folder = synthetic.write(tmp_path_factory.mktemp("study") / "study", "study", [synthetic.run("native")])
    return write_report(folder, findings=findings)


def test_it_begins_with_the_decision_and_ends_with_the_environment(document):
    titles = [block.title for block in document.blocks]
    assert titles[0] == "Decision"
    assert titles[-2:] == ["How this was measured", "Environment"]
    assert {"Not settled", "Key numbers", "Results", "Figures"} <= set(titles)


def test_the_table_has_every_row_and_marks_the_advised_one(document, findings):
    blocks = [block for section in document.blocks for block in section.blocks]
    (table,) = (block for block in blocks if isinstance(block, Table) and block.name == "results")
    assert len(table.rows) == len(findings.rows)
    assert sum("←" in row[0] for row in table.rows) == 1
    assert {len(row) for row in table.rows} == {len(table.headings)}


def test_a_printed_report_names_its_figures_and_refers_to_no_file(document):
    text = markdown(document)
    assert "![" not in text
    assert "**Speed-up against workers.**" in text


@pytest.mark.parametrize(("form", "link"), [
    ("markdown", r"!\[[^\]]*\]\(([^)]+)\)"), ("latex", r"\\includegraphics\[[^\]]*\]\{([^}]+)\}"),
])  # fmt: skip
def test_a_written_report_refers_to_the_pictures_beside_it(written, form, link):
    file = written.files[form]
    found = re.findall(link, file.read_text())
    assert len(found) >= 5
    assert all((file.parent / name).stat().st_size for name in found)


def test_a_file_of_its_own_brings_its_pictures(tmp_path):
    format_of("markdown").write(analyse("small", synthetic.seeded((1, 2), seeds=1)), tmp_path / "mine.md")
    for name in re.findall(r"\]\(([^)]+)\)", (tmp_path / "mine.md").read_text()):
        assert (tmp_path / name).is_file()


def test_a_study_without_results_has_one_too():
    empty = analyse("empty", [], synthetic.unfinished())
    for form in ("markdown", "latex"):
        assert "No run has finished" in format_of(form).render(empty, Medium())


@needs_tex
@pytest.mark.tex
def test_a_report_compiles_with_its_figures(written):
    found = compiled(written.files["latex"])
    assert max(found.overfull, default=0.0) < 3
    for words in ("A_study & more", "Decision", "mirrored", "Speed-up S", "How this was measured"):
        assert words in found.text, words
