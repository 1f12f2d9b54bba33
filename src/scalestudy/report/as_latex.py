"""A document as LaTeX: an article with booktabs, which Debian's texlive-latex-recommended compiles."""

from collections.abc import Mapping, Sequence

from scalestudy.report.document import (
    Block,
    Code,
    Document,
    Drawing,
    Folded,
    Heading,
    Items,
    Paragraph,
    Section,
    Table,
    pieces,
)
from scalestudy.report.figure import Figure

PREAMBLE = r"""\documentclass[a4paper]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp}
\usepackage[margin=22mm]{geometry}
\usepackage{booktabs,longtable,graphicx,amsmath}
\setlength{\parindent}{0pt}\setlength{\parskip}{6pt}
\emergencystretch=3em"""
SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%",
    "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}",
    "−": "$-$", "–": "--", "—": "---", "±": r"$\pm$", "×": r"$\times$", "·": r"$\cdot$", "≥": r"$\geq$",
    "≤": r"$\leq$", "≈": r"$\approx$", "→": r"$\rightarrow$", "…": r"\dots{}", "“": "``", "”": "''",
    "κ": r"$\kappa$", "α": r"$\alpha$", "β": r"$\beta$", "σ": r"$\sigma$", "∞": r"$\infty$", "²": r"$^2$",
    "√": r"$\surd$", "\u00a0": "~", "\u2009": r"\,", "\u202f": r"\,",
}  # fmt: skip
HEADINGS = ("section", "subsection", "subsubsection", "paragraph")


def latex(document: Document, pictures: Mapping[str, str] | None = None) -> str:
    """The document as a file of its own.

    Args:
        document: What to write.
        pictures: Path of each figure's PDF by the figure's name; without one, its caption stands alone.
    """
    subtitle = rf"\\[4pt]\large {escaped(document.subtitle)}" if document.subtitle else ""
    return "\n".join(
        [
            PREAMBLE,
            rf"\title{{{escaped(document.title)}{subtitle}}}",
            r"\date{}",
            r"\begin{document}",
            r"\maketitle",
            *latex_blocks(document.blocks, pictures or {}),
            r"\end{document}",
            "",
        ]
    )


def latex_blocks(blocks: Sequence[Block], pictures: Mapping[str, str], level: int = 0) -> list[str]:
    """Blocks as lines, to stand in a document."""
    return [line for block in blocks for line in ("", *_block(block, pictures, level))]


def escaped(text: str) -> str:
    """The text so that LaTeX prints it as it stands; signs that its fonts lack become question marks."""
    return "".join(
        rf"\texttt{{{_plain(part)}}}" if code else _plain(part)
        for part, code in pieces(" ".join(text.split()))
    )


def _plain(text: str) -> str:
    return "".join(
        SPECIAL.get(sign) or (sign if sign.isprintable() and ord(sign) < 0x180 else "?") for sign in text
    )


def _block(block: Block, pictures: Mapping[str, str], level: int) -> list[str]:
    match block:
        case Folded(title, inner):
            return [rf"\paragraph{{{escaped(title)}}}", *latex_blocks(inner, pictures, level + 1)]
        case Section(title, inner):
            command = HEADINGS[min(level, len(HEADINGS) - 1)]
            return [rf"\{command}*{{{escaped(title)}}}", *latex_blocks(inner, pictures, level + 1)]
        case Drawing(figure):
            return _figure(figure, pictures.get(figure.name))
        case _:
            return _words(block)


def _words(block: Paragraph | Items | Code | Table) -> list[str]:
    match block:
        case Paragraph(text):
            return [escaped(text), ""]
        case Items(items, ordered):
            kind = "enumerate" if ordered else "itemize"
            return [rf"\begin{{{kind}}}", *(rf"\item {escaped(item)}" for item in items), rf"\end{{{kind}}}"]
        case Code(text):
            lines = (_plain(line.replace(" ", "\u00a0")) or "~" for line in text.splitlines())
            return [r"{\ttfamily\small\raggedright", *(rf"{line}\par" for line in lines), "}"]
        case Table():
            return _table(block)


def _figure(figure: Figure, path: str | None) -> list[str]:
    drawn = rf"\includegraphics[width=\linewidth,height=0.4\textheight,keepaspectratio]{{{path}}}\par"
    caption = rf"{{\small \textbf{{{escaped(figure.title)}.}} {escaped(figure.caption)}}}"
    return [r"\begin{center}", *([drawn] if path else []), caption, r"\end{center}"]


def _table(table: Table) -> list[str]:
    columns = "".join("r" if heading.numeric else "l" for heading in table.headings)
    names = " & ".join(escaped(heading.name) for heading in table.headings)
    units = " & ".join(_unit(heading) for heading in table.headings)
    head = [rf"{names} \\", *([rf"{units} \\"] if any(heading.unit for heading in table.headings) else [])]
    notes = [
        rf"{{\footnotesize [{n}] {escaped(note)}\par}}" for n, note in enumerate(table.footnotes, start=1)
    ]
    caption = [rf"{escaped(table.caption)}\par"] if table.caption else []
    return [
        *caption,
        rf"{{\small\setlength{{\tabcolsep}}{{4pt}}\begin{{longtable}}{{@{{}}{columns}@{{}}}}",
        r"\toprule",
        *head,
        r"\midrule\endhead",
        *(rf"{' & '.join(escaped(cell) for cell in row)} \\" for row in table.rows),
        r"\bottomrule",
        r"\end{longtable}}",
        *notes,
    ]


def _unit(heading: Heading) -> str:
    return rf"{{\footnotesize {escaped(heading.unit)}}}" if heading.unit else ""
