"""The formats of a report.

A package adds a format by an entry point in the group "scalestudy.formats" that names a `Format`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from scalestudy.analysis.findings import Findings
from scalestudy.report.document import Document
from scalestudy.report.images import Picture
from scalestudy.util.registry import Registry


@dataclass(frozen=True)
class Medium:
    """Where a report will be read.

    Attributes:
        width: Columns of the terminal; detected if None.
        colour: Whether to use terminal colour codes.
        verbose: Whether a terminal shows everything on the page, not only the decision.
        page: Path of the page, for the terminal's last line.
        document: The report as a document, if already composed.
        pictures: Its figures by name; the files NAME.svg and NAME.pdf are next to the report.
    """

    width: int | None = None
    colour: bool = False
    verbose: bool = False
    page: str | None = None
    document: Document | None = None
    pictures: Mapping[str, Picture] = field(default_factory=dict)


@dataclass(frozen=True)
class Format:
    """One format of the report.

    Attributes:
        render: (findings, medium) -> its text, or bytes for a binary format.
        file: Name of its file in a written report, such as "table.csv"; None if it is made only on request.
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
