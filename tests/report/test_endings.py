"""The form of a file, by its ending."""

from pathlib import Path

import pytest

from scalestudy.report.endings import form_by_ending
from scalestudy.util.errors import UserError

FORMS = ("markdown", "latex", "html")


def form(named: str | None, file: str | None) -> str:
    return form_by_ending(named, Path(file) if file else None, FORMS, "markdown")


def test_the_form_is_that_of_the_option_else_of_the_files_ending():
    assert form("latex", "page.md") == "latex"
    assert form(None, "page.TEX") == "latex"
    assert form(None, "page.html") == "html"


def test_without_either_it_is_the_default():
    assert form(None, "page") == form(None, "page.csv") == form(None, None) == "markdown"


def test_an_unknown_form_is_refused_with_those_there_are():
    with pytest.raises(UserError, match="markdown, latex, html"):
        form("docx", None)


def test_what_is_called_pdf_is_not_written_as_something_else():
    with pytest.raises(UserError, match=r"print-to-pdf=request\.pdf request\.html"):
        form(None, "request.pdf")
