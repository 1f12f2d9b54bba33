"""What a report says beyond its table and main figures: one section a subject, each in a file of its own."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from scalestudy.report.compliance_section import compliance_section
from scalestudy.report.cores_section import cores_section
from scalestudy.report.costs_section import costs_section
from scalestudy.report.diagnosis_section import diagnosis_section
from scalestudy.report.document import Section
from scalestudy.report.estimate_section import estimate_section
from scalestudy.report.foreign_section import foreign_section
from scalestudy.report.models_section import models_section

if TYPE_CHECKING:
    from scalestudy.analysis.findings import Findings

SECTIONS: tuple[Callable[["Findings"], Section | None], ...] = (
    foreign_section,
    compliance_section,
    diagnosis_section,
    models_section,
    estimate_section,
    cores_section,
    costs_section,
)
"""In the order in which they are shown. None where a study has nothing to say on the subject."""


def sections(findings: "Findings") -> list[Section]:
    """The sections that this study can fill."""
    return [section for section in (make(findings) for make in SECTIONS) if section is not None]
