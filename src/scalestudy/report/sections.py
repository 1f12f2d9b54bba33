"""Sections of a report beyond its table and main figures, one file for each subject."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from scalestudy.report.document import Section
from scalestudy.util.registry import Registry

if TYPE_CHECKING:
    from scalestudy.analysis.findings import Findings

SECTIONS: Registry[Callable[["Findings"], Section | None]] = Registry(
    "scalestudy.sections",
    {
        "imported": "scalestudy.features.imported.section:section",
        "diagnosis": "scalestudy.features.diagnose.section:diagnosis_section",
        "models": "scalestudy.report.models_section:models_section",
        "cores": "scalestudy.report.cores_section:cores_section",
        "costs": "scalestudy.report.costs_section:costs_section",
    },
)
"""In the order in which they are shown. A function returns None if the study has no data for its section."""


def sections(findings: "Findings") -> list[Section]:
    """The sections for which this study has data."""
    made = (SECTIONS.get(name)(findings) for name in SECTIONS.names())
    return [section for section in made if section is not None]
