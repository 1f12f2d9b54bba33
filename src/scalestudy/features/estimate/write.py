"""An estimate in the form that is asked for."""

from scalestudy.features.estimate.page import estimate_page
from scalestudy.features.estimate.records import EstimateRecord

FORMS = ("table", "json", "markdown", "html")


def written(estimate: EstimateRecord, form: str, *, width: int = 120, colour: bool = False) -> str:
    """The text of an estimate.

    Args:
        estimate: What is expected.
        form: Of `FORMS`.
        width: Columns of a terminal, for "table".
        colour: Whether a terminal's colour codes may be in it.
    """
    if form == "json":
        return estimate.model_dump_json(indent=1) + "\n"
    if form == "html":
        from scalestudy.report.as_html import html

        return html(estimate_page(estimate))
    if form == "markdown":
        from scalestudy.report.as_markdown import markdown

        return markdown(estimate_page(estimate, drawn=False))
    from scalestudy.report.as_terminal import terminal

    return terminal(estimate_page(estimate, drawn=False), width, colour)
