"""LaTeX of documents compiles with Debian's TeX, for any texts and tables."""

import pytest

from compiled import compiled, needs_tex
from scalestudy.report.as_latex import latex
from scalestudy.report.document import Code, Document, Heading, Items, Paragraph, Section, Table
from scalestudy.report.write_document import write_document
from synthetic_document import HOSTILE, document

pytestmark = [pytest.mark.tex, pytest.mark.slow, needs_tex]
SIGNS = "".join(map(chr, range(0x20, 0x250))) + "κλμσ 中文 🙂 \u200d\u202e e\u0301 \x07 ﬁ Ⅷ “„”"


def numbers(columns: int, rows: int) -> Table:
    """A table with this many columns and a last column of text."""
    headings = [Heading(f"Column {place}", "its unit") for place in range(columns)]
    cells = [
        (*(f"{row * place:,} ± 12.3" for place in range(columns)), "words that wrap " * (row % 5))
        for row in range(rows)
    ]
    return Table((*headings, Heading("Words", numeric=False)), tuple(cells), "A table.", ("A note: 5 %.",))


def test_any_sign_and_any_table_stays_within_its_page(tmp_path):
    words = tuple(Heading(name, numeric=False) for name in "ABC")
    paths = Table(words, (("/a/long/path/" * 8, "x" * 150, "[1] words " * 30), ("", "[2]", "-- <<")))
    section = Section("<script>", (Paragraph("-- '' `` --"),))
    blocks = (
        Paragraph(SIGNS), Paragraph(f"`{SIGNS.replace('`', '')}`"), Code(f"{SIGNS}\n    indent  {'y' * 300}"),
        Items(("[a] b", "https://example.org/" + "a/b_c?d=e&" * 20)), Items(()), numbers(3, 3),
        numbers(20, 4), numbers(6, 90), paths, Table((), ()), section,
    )  # fmt: skip
    file = tmp_path / "signs.tex"
    file.write_text(latex(Document("<script> & \\end{document}", blocks, SIGNS)))
    found = compiled(file)
    assert max(found.overfull, default=0.0) < 3
    assert "Type 3" not in found.fonts  # bitmap fonts, which look bad on a screen
    for word in (
        "<script>",
        "\\end{document}",
        "indent",
        "[a] b",
        "A note: 5 %.",
        "words that wrap",
        "[2]",
    ):
        assert word in found.text, word
    assert found.text.count("Words") > 3  # a long table repeats its head on each page


def test_a_whole_document_compiles_with_its_figures(tmp_path):
    file, *pictures = write_document(document(), "latex", tmp_path / "a page.tex")
    found = compiled(file)
    assert pictures
    assert max(found.overfull, default=0.0) < 3
    assert "What was measured" in found.text
    assert HOSTILE[:40] in found.text
    assert "launch.cpus_per_worker" in found.text
    assert "Speed-up S" in found.text  # an axis label: the figure is drawn
