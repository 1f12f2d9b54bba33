r"""Render a document as a LaTeX article for Debian's texlive-latex-base and texlive-latex-recommended.

Every character with a special meaning is escaped. Characters outside the encodings OT1 and T1 become a math
symbol, their base letter, or a question mark, so that any text compiles.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence

from scalestudy.report.document import (
    Block,
    Code,
    Document,
    Drawing,
    Folded,
    Items,
    Paragraph,
    Section,
    Table,
    on_paper,
    pieces,
)

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
\usepackage{array,booktabs,graphicx}
\setlength{\parindent}{0pt}\setlength{\parskip}{6pt}\setlength{\tabcolsep}{4pt}
\renewcommand{\labelitemi}{$\bullet$}
\sloppy\hbadness=10000\clubpenalty=10000\widowpenalty=10000
% Makes a table smaller that is wider than the page.
\newsavebox{\tablebox}
\newcommand{\fitting}[1]{\sbox{\tablebox}{#1}\ifdim\wd\tablebox>\linewidth
  \resizebox{\linewidth}{!}{\usebox{\tablebox}}\else\usebox{\tablebox}\fi}"""
HEADINGS = ("section", "subsection", "subsubsection", "paragraph")
SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\char36{}", "&": r"\&", "#": r"\#", "%": r"\%",
    "_": r"\_", "^": r"{\ttfamily\char94}", "~": r"{\ttfamily\char126}", "<": r"\textless{}",
    "§": r"$\mathsection$", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''", "`": "`{}", "'": "'{}",
    "−": "$-$", "–": "--", "—": "---", "±": r"$\pm$", "×": r"$\times$", "·": r"$\cdot$", "≥": r"$\geq$",
    "≤": r"$\leq$", "≈": r"$\approx$", "→": r"$\rightarrow$", "←": r"$\leftarrow$", "…": r"\dots{}",
    "“": "``", "”": "''", "‘": "`", "’": "'", "„": "''", "√": r"$\surd$", "∞": r"$\infty$", "÷": r"$\div$",
    "°": r"$^\circ$", "µ": r"$\mu$", "¹": "$^1$", "²": "$^2$", "³": "$^3$", "ª": "$^a$", "º": "$^o$",
    "¬": r"$\neg$", "¼": "1/4", "½": "1/2", "¾": "3/4", "€": "EUR", "¢": "c", "¤": "?", "¥": "JPY",
    "¦": r"\textbar{}", "¨": "?", "¯": "?", "´": "'{}", "¸": ",", "®": "(R)", "©": "(C)", "™": "(TM)",
    "¶": r"$\mathparagraph$", "£": r"$\mathsterling$", "\u00a0": "~", "\u2009": r"\,",
    "\u202f": r"\,", "\u00ad": r"\-", "•": r"$\bullet$",
    "κ": r"$\kappa$", "α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "δ": r"$\delta$",
    "ε": r"$\epsilon$", "λ": r"$\lambda$", "μ": r"$\mu$", "π": r"$\pi$", "ρ": r"$\rho$", "σ": r"$\sigma$",
    "τ": r"$\tau$", "φ": r"$\phi$", "χ": r"$\chi$", "ω": r"$\omega$", "θ": r"$\theta$", "η": r"$\eta$",
    "Δ": r"$\Delta$", "Σ": r"$\Sigma$", "Ω": r"$\Omega$", "Π": r"$\Pi$",
}  # fmt: skip
CODE = SPECIAL | {"<": "<", ">": ">", "|": "|", '"': r"\char34{}", "'": r"\char39{}"}
"""The same for typewriter text, whose font has more characters."""
LETTERS = {"ŉ": "'n", "Ŧ": "T", "ŧ": "t", "Ħ": "H", "ħ": "h", "Ŀ": "L", "ŀ": "l", "ĸ": "k", "ſ": "s"}
"""Letters of Latin Extended-A that LaTeX's UTF-8 support lacks."""
LONG_WORD, RUN = 18, 12
"""Length from which a word may break after its punctuation, or after this many letters without any."""
WRAPPED = 40
"""Text length from which a column wraps its lines."""
MOST_ROWS = 30
"""Largest number of rows of a table; longer tables are split."""


def latex(document: Document, pictures: Mapping[str, str] | None = None) -> str:
    """Render a document as a complete LaTeX file.

    `pictures` maps names of figures to paths of their PDF files; other figures show only their captions.
    """
    subtitle = [rf"{{\large {escaped(document.subtitle)}\par}}"] if document.subtitle else []
    return "\n".join(
        [
            PREAMBLE,
            rf"\pdfinfo{{/Title ({re.sub(r'[^A-Za-z0-9 .,:-]', '', document.title)})}}",
            r"\begin{document}",
            rf"{{\LARGE\bfseries\raggedright {escaped(document.title)}\par}}",
            *subtitle,
            *_blocks(document.blocks, pictures or {}, 0),
            r"\end{document}",
            "",
        ]
    )


def _blocks(blocks: Sequence[Block], pictures: Mapping[str, str], level: int) -> list[str]:
    return [line for block in on_paper(blocks) for line in ("", *_block(block, pictures, level))]


def _block(block: Block, pictures: Mapping[str, str], level: int) -> list[str]:
    match block:
        case Folded(title, inner) | Section(title, inner):
            command = HEADINGS[min(level, len(HEADINGS) - 1)]
            return [rf"\{command}*{{{escaped(title)}}}", *_blocks(inner, pictures, level + 1)]
        case Drawing(figure):
            path = pictures.get(figure.name)
            caption = rf"{{\small \textbf{{{escaped(figure.title)}.}} {escaped(figure.caption)}}}\par"
            size = r"width=\linewidth,height=0.38\textheight,keepaspectratio"
            drawn = [r"{\centering", rf"\includegraphics[{size}]{{{path}}}\par", r"}\nopagebreak[4]"]
            return [*drawn, caption] if path else [caption]
        case Table():
            return _table(block) if block.headings else []
        case Items():
            kind = "enumerate" if block.ordered else "itemize"
            # The braces keep \item from reading "[" as its argument.
            listed = [rf"\item {{}}{escaped(item)}" for item in block.items]
            begin = rf"\begin{{{kind}}}\setlength{{\itemsep}}{{0pt}}"
            return [begin, *listed, rf"\end{{{kind}}}"] if listed else []
        case Code(text):
            lines = (_code(line.rstrip()) or "~" for line in text.expandtabs(4).splitlines())
            head = r"{\parskip=0pt\leftskip=1em\ttfamily\small\raggedright"
            return [head, *(rf"{line}\par" for line in lines), "}"]
    return [escaped(block.text), ""] if isinstance(block, Paragraph) else []


def escaped(text: str) -> str:
    """Escape text for LaTeX, with `backticks` as typewriter text."""
    return "".join(
        rf"\texttt{{{_code(part)}}}" if is_code else _line(part, SPECIAL)
        for part, is_code in pieces(" ".join(text.split()))
    )


def _code(text: str) -> str:
    indent = len(text) - len(text.lstrip(" "))
    return "~" * indent + _line(text[indent:], CODE).replace(" ", r"\ ")


def _line(text: str, signs: Mapping[str, str]) -> str:
    return " ".join(_word(word, signs) for word in text.split(" "))


def _word(word: str, signs: Mapping[str, str]) -> str:
    long, run, made = len(word) >= LONG_WORD, 0, []
    for place, sign in enumerate(word):
        made.append(_sign(sign, signs, word[place - 1] if place else ""))
        if long and place < len(word) - 1:
            run = run + 1 if sign.isalnum() else 0
            if (not sign.isalnum() and sign not in "([{<") or run >= RUN:
                made.append(r"\allowbreak{}")
                run = 0
    return "".join(made)


def _sign(sign: str, signs: Mapping[str, str], before: str) -> str:
    known = signs.get(sign) or LETTERS.get(sign)
    if known:
        return known
    if sign in "-,<>?!" and sign == before:
        return "{}" + sign  # LaTeX would join two of them into another character
    if sign.isprintable() and ord(sign) < 0x180:
        return sign
    parts = [part for part in unicodedata.normalize("NFKD", sign) if part.isprintable() and ord(part) < 0x7F]
    nearest = "".join(signs.get(part, part) for part in parts)
    return nearest or ("" if unicodedata.combining(sign) else "?")


def _table(table: Table) -> list[str]:
    """A booktabs table at most as wide as the page; a long table becomes several."""
    rows = [[str(cell) for cell in row] for row in table.rows]
    if table.chosen is not None:
        rows[table.chosen][0] += " ←"
    longest = [max((len(row[place]) for row in rows), default=0) for place in range(len(table.headings))]
    wrapped = [count > WRAPPED and not h.numeric for count, h in zip(longest, table.headings, strict=True)]
    text = rf">{{\raggedright\arraybackslash}}p{{{0.9 / max(3, sum(wrapped)):.2f}\linewidth}}"
    kinds = "".join(
        text if wraps else "r" if heading.numeric else "l"
        for heading, wraps in zip(table.headings, wrapped, strict=True)
    )
    head = [rf"{' & '.join(escaped(heading.name) for heading in table.headings)} \\"]
    if any(heading.unit for heading in table.headings):
        units = (rf"{{\footnotesize {escaped(heading.unit)}}}" for heading in table.headings)
        head.append(rf"{' & '.join(units)} \\")
    lines = [rf"{{\small {escaped(table.caption)}\par}}\nopagebreak[4]\vspace{{-2pt}}"] * bool(table.caption)
    for first in range(0, max(len(rows), 1), MOST_ROWS):
        body = [rf"{' & '.join(map(_cell, row))} \\" for row in rows[first : first + MOST_ROWS]]
        lines += [rf"\fitting{{\small\begin{{tabular}}{{@{{}}{kinds}@{{}}}}", r"\toprule", *head, r"\midrule",
                  *body, r"\bottomrule", r"\end{tabular}}\par"]  # fmt: skip
    notes = enumerate(table.footnotes, start=1)
    return [*lines, *(rf"{{\footnotesize [{number}] {escaped(note)}\par}}" for number, note in notes)]


def _cell(text: str) -> str:
    # \\ would read a leading bracket as its optional argument.
    return f"{{{escaped(text)}}}" if text.startswith("[") else escaped(text)
