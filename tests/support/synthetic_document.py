"""A document with each kind of block and with text that must be escaped, for the tests of renderers."""

from functools import cache

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.report.document import (
    Code,
    Document,
    Drawing,
    Folded,
    Heading,
    Items,
    Paragraph,
    Section,
    Table,
)
from scalestudy.report.study_document import figures

HOSTILE = "50 % of <b>A_1</b> & {x} #2 $3 ~ ^ \\end{document} | \"q\" 'ß' ± − 🙂"


@cache
def document() -> Document:
    """A document with one block of each kind."""
    drawn = figures(analyse("made", synthetic.seeded((1, 2, 4), ("mirrored",))))
    figure = next(figure for figure in drawn if figure.name == "speedup")
    table = Table(
        (Heading("Strategy", numeric=False), Heading("Speed-up", "throughput", "S")),
        (("mirrored", "1.00"), (HOSTILE, "3.44")),
        caption="What was measured",
        footnotes=("Of one run.",),
        name="measured",
    )
    return Document(
        HOSTILE,
        (
            Paragraph("Set `launch.cpus_per_worker = 4`: input 31 %."),
            Section(
                "Results",
                (table, Drawing(figure), Section("By node", (Paragraph(HOSTILE),))),
            ),
            Items(("first", "second"), ordered=True),
            Items((HOSTILE,)),
            Folded("Logs", (Code("a  b\n```\n\\end{x} <i>", "text"),)),
        ),
        subtitle="For a panel",
    )
