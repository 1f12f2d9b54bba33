"""A document as LaTeX: an article that Debian's texlive-latex-base and texlive-latex-recommended compile."""

from collections.abc import Mapping, Sequence

from scalestudy.report.document import (
    Block,
    Code,
    Document,
    Drawing,
    Folded,
    Items,
    Paragraph,
    Photos,
    Section,
    Table,
)
from scalestudy.report.figure import Figure
from scalestudy.report.latex_table import FIT, table_lines
from scalestudy.report.latex_text import code_line, escaped, plain

PREAMBLE = r"""\documentclass[a4paper]{article}
\usepackage[utf8]{inputenc}
% Latin Modern where it is installed; else Computer Modern, whose letters are outlines everywhere.
\IfFileExists{lmodern.sty}{\usepackage[T1]{fontenc}\usepackage{lmodern}}{%
  \renewcommand{\_}{{\ttfamily\char95}}}% a sign that can be copied, where \_ is a line
% What Computer Modern lacks, by the nearest it has.
\DeclareTextCommandDefault{\k}[1]{\c{#1}}
\DeclareTextCommandDefault{\dj}{d}\DeclareTextCommandDefault{\DJ}{D}\DeclareTextCommandDefault{\dh}{d}
\DeclareTextCommandDefault{\DH}{D}\DeclareTextCommandDefault{\th}{th}\DeclareTextCommandDefault{\TH}{Th}
\DeclareTextCommandDefault{\ng}{n}\DeclareTextCommandDefault{\NG}{N}
\DeclareTextCommandDefault{\guillemetleft}{$\ll$}\DeclareTextCommandDefault{\guillemetright}{$\gg$}
\usepackage[margin=22mm]{geometry}
\usepackage{array,booktabs,longtable,graphicx,pdflscape}
\setlength{\parindent}{0pt}\setlength{\parskip}{6pt}\setlength{\tabcolsep}{4pt}
\setlength{\LTleft}{0pt}\setlength{\LTpre}{2pt}\setlength{\LTpost}{6pt}
\renewcommand{\labelitemi}{$\bullet$}
\sloppy\hbadness=10000\clubpenalty=10000\widowpenalty=10000"""
HEADINGS = ("section", "subsection", "subsubsection", "paragraph")


def latex(document: Document, pictures: Mapping[str, str] | None = None) -> str:
    """The document as a file of its own.

    Args:
        document: What to write.
        pictures: Path of each figure's PDF by the figure's name; without one, its caption stands alone.
    """
    subtitle = [rf"{{\large {escaped(document.subtitle)}\par}}"] if document.subtitle else []
    return "\n".join(
        [
            PREAMBLE,
            FIT,
            rf"\pdfinfo{{/Title ({plain(document.title)})}}",
            r"\begin{document}",
            rf"{{\LARGE\bfseries\raggedright {escaped(document.title)}\par}}",
            *subtitle,
            *latex_blocks(document.blocks, pictures or {}),
            r"\end{document}",
            "",
        ]
    )


def latex_blocks(blocks: Sequence[Block], pictures: Mapping[str, str], level: int = 0) -> list[str]:
    """Blocks as lines, to stand in a document."""
    return [line for block in blocks for line in ("", *_block(block, pictures, level))]


def _block(block: Block, pictures: Mapping[str, str], level: int) -> list[str]:
    match block:
        case Folded(title, inner) | Section(title, inner):
            command = HEADINGS[min(level, len(HEADINGS) - 1)]
            return [rf"\{command}*{{{escaped(title)}}}", *latex_blocks(inner, pictures, level + 1)]
        case Drawing(figure):
            return _figure(figure, pictures.get(figure.name))
        case Photos():
            return []
        case _:
            return _words(block)


def _words(block: Paragraph | Items | Code | Table) -> list[str]:
    match block:
        case Paragraph(text):
            return [escaped(text), ""]
        case Items(items, ordered):
            kind = "enumerate" if ordered else "itemize"
            # A brace keeps \item from taking "[" for its own.
            listed = [rf"\item {{}}{escaped(item)}" for item in items]
            return (
                [rf"\begin{{{kind}}}\setlength{{\itemsep}}{{0pt}}", *listed, rf"\end{{{kind}}}"]
                if items
                else []
            )
        case Code(text):
            lines = (code_line(line.rstrip()) or "~" for line in text.expandtabs(4).splitlines())
            return [
                r"{\parskip=0pt\leftskip=1em\ttfamily\small\raggedright",
                *(rf"{line}\par" for line in lines), "}",
            ]  # fmt: skip
        case Table():
            return table_lines(block) if block.headings else []


def _figure(figure: Figure, path: str | None) -> list[str]:
    drawn = rf"\includegraphics[width=\linewidth,height=0.38\textheight,keepaspectratio]{{{path}}}\par"
    title = rf"\textbf{{{escaped(figure.title)}.}} " if figure.title else ""
    caption = rf"{{\small {title}{escaped(figure.caption)}}}\par"
    if not path:
        return [caption]
    return [r"{\centering", drawn, r"}\nopagebreak[4]", caption]
