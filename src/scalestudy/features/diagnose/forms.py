"""A diagnosis by itself, in the form that is asked for."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from scalestudy.features.diagnose.remedies import remedies, sentence
from scalestudy.features.diagnose.section import section_of
from scalestudy.report.as_html import html
from scalestudy.report.as_markdown import markdown
from scalestudy.report.as_terminal import terminal
from scalestudy.report.document import Document

if TYPE_CHECKING:
    from scalestudy.analysis.measures import Measures
    from scalestudy.features.diagnose.kept import Kept


def rendered(kept: "Kept", measures: "Measures | None", form: str, width: int = 120) -> str:
    """A diagnosis as text that ends with a line's end.

    Args:
        kept: The diagnosis in its study.
        measures: Of the study, for what it has measured of the remedies.
        form: "table", "json", "markdown" or "html".
        width: Columns of a terminal.
    """
    if form == "json":
        record = kept.diagnosis.model_dump(mode="json")
        record |= {"changed": kept.changed, "measured_efficiency": asdict(kept.measured)}
        record["advice"] = [
            asdict(each) | {"sentence": sentence(each)} for each in remedies(kept.diagnosis, measures)
        ]
        return json.dumps(record, indent=1) + "\n"
    section = section_of(kept, measures)
    document = Document(section.title, section.blocks)
    if form == "markdown":
        return markdown(document)
    return html(document) if form == "html" else terminal(document, width)
