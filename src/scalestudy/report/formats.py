"""The formats and the further sections of a report, which other packages can add.

A package adds a format by an entry point in the group "scalestudy.formats" that names a `Format`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from scalestudy.analysis.findings import Findings
from scalestudy.report.document import Document, Section
from scalestudy.report.figure import Picture
from scalestudy.util.registry import Registry


@dataclass(frozen=True)
class Medium:
    """Where a report will be read.

    Attributes:
        width: Columns of the terminal; detected if None.
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
        render: (findings, medium) -> its text.
        file: Name of its file in a written report, such as "table.csv"; None if it is made only on request.
    """

    render: Callable[[Findings, Medium], str]
    file: str | None = None


FORMATS: Registry[Format] = Registry("scalestudy.formats")


SECTIONS: Registry[Callable[[Findings], Section | None]] = Registry("scalestudy.sections")
"""In the order in which they are shown. A function returns None if the study has no data for its section."""


def sections(findings: Findings) -> list[Section]:
    """The sections for which this study has data."""
    made = (SECTIONS.get(name)(findings) for name in SECTIONS.names())
    return [section for section in made if section is not None]
