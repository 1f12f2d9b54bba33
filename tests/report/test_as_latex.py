"""A document as LaTeX."""

import re

from scalestudy.report.as_latex import escaped, latex
from synthetic_document import HOSTILE, document


def test_no_text_is_a_command():
    assert escaped("50 % of A_1 & {x} #2") == r"50 \% of A\_1 \& \{x\} \#2"
    assert r"\end{document}" not in escaped(HOSTILE)


def test_what_the_fonts_lack_becomes_a_question_mark():
    assert escaped("ß ± 🙂") == r"ß $\pm$ ?"


def test_braces_and_environments_close():
    text = re.sub(r"\\[{}]", "", latex(document()))
    assert text.count("{") == text.count("}")
    assert sorted(re.findall(r"\\begin\{(\w+)\}", text)) == sorted(re.findall(r"\\end\{(\w+)\}", text))


def test_a_table_is_ruled_as_booktabs_says():
    text = latex(document())
    assert text.index(r"\toprule") < text.index(r"\midrule") < text.index(r"\bottomrule")
    assert r"mirrored & 1.00 \\" in text


def test_a_figure_is_included_where_it_was_drawn():
    assert r"{figures/speedup.pdf}" in latex(document(), {"speedup": "figures/speedup.pdf"})
    assert r"\includegraphics" not in latex(document())
