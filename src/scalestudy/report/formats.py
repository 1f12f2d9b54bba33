"""The forms of a report.

A package adds one by an entry point in the group "scalestudy.formats" that names a `Format`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from scalestudy.analysis.findings import Findings
from scalestudy.report.document import Document
from scalestudy.report.images import Picture
from scalestudy.util.registry import Registry


@dataclass(frozen=True)
class Medium:
    """Where a report is going to be read.

    Attributes:
        width: Columns of a terminal; its own when None.
        colour: Whether a terminal's colour codes may be in it.
        verbose: Whether a terminal shows all that the page says, beside the decision.
        page: Where the page is, for a terminal's last line.
        document: The report as a document, where it is composed already.
        pictures: Its figures by name, which lie beside the file as NAME.svg and NAME.pdf.
    """

    width: int | None = None
    colour: bool = False
    verbose: bool = False
    page: str | None = None
    document: Document | None = None
    pictures: Mapping[str, Picture] = field(default_factory=dict)


@dataclass(frozen=True)
class Format:
    """One form of the report.

    Attributes:
        render: (findings, medium) -> its text, or bytes where it is not text.
        file: Name of its file in a written report, as "table.csv"; None where it is made on request only.
    """

    render: Callable[[Findings, Medium], str | bytes]
    file: str | None = None


FORMATS: Registry[Format] = Registry(
    "scalestudy.formats",
    {
        "table": "scalestudy.report.terminal:FORMAT",
        "csv": "scalestudy.report.tabular:CSV",
        "json": "scalestudy.report.tabular:JSON",
        "html": "scalestudy.report.study_document:HTML",
        "markdown": "scalestudy.report.study_document:MARKDOWN",
        "latex": "scalestudy.report.study_document:LATEX",
        "parquet": "scalestudy.report.tabular:PARQUET",
        "parquet-runs": "scalestudy.report.tabular:PARQUET_RUNS",
    },
)
