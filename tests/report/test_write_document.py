"""Documents as files, with their pictures beside them."""

from dataclasses import replace
from pathlib import Path

import pytest

from scalestudy.report.write_document import form_by_ending, write_document
from scalestudy.util.errors import UserError
from synthetic_document import document


@pytest.mark.parametrize(("form", "name", "start"), [
    ("markdown", "a_page.md", b"<svg"), ("latex", "a_page.tex", b"%PDF"),
])  # fmt: skip
def test_a_page_refers_to_the_pictures_beside_it(tmp_path, form, name, start):
    written = write_document(document(), form, tmp_path / name)
    assert written[0] == tmp_path / name
    for picture in written[1:]:
        address = picture.relative_to(tmp_path).as_posix()
        assert address.startswith("a-page-figures/")
        assert address in written[0].read_text()
        assert picture.read_bytes().startswith(start)
    assert len(written) > 1


def test_a_page_in_html_holds_all_it_shows(tmp_path):
    assert write_document(document(), "html", tmp_path / "page.html") == [tmp_path / "page.html"]
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_page_without_figures_is_one_file(tmp_path):
    bare = replace(document(), blocks=())
    assert write_document(bare, "latex", tmp_path / "page.tex") == [tmp_path / "page.tex"]
    assert [path.name for path in tmp_path.iterdir()] == ["page.tex"]


FORMS = ("markdown", "latex", "html")


def form(named: str | None, file: str | None) -> str:
    return form_by_ending(named, Path(file) if file else None, FORMS, "markdown")


def test_the_form_is_that_of_the_option_else_of_the_files_ending():
    assert form("latex", "page.md") == "latex"
    assert form(None, "page.TEX") == "latex"
    assert form(None, "page.html") == "html"


def test_without_either_it_is_the_default():
    assert form(None, "page") == form(None, "page.txt") == form(None, None) == "markdown"


@pytest.mark.parametrize("file", ["page.docx", "page.csv", "page.pdf"])
def test_a_file_that_ends_otherwise_is_refused_with_the_endings_there_are(file):
    with pytest.raises(UserError, match=r"\.md, \.tex, \.html, \.htm"):
        form(None, file)
    assert form("latex", file) == "latex"


def test_an_unknown_form_is_refused_with_those_there_are():
    with pytest.raises(UserError, match="markdown, latex, html"):
        form("docx", None)


def test_what_is_called_pdf_is_not_written_as_something_else():
    with pytest.raises(UserError, match=r"print-to-pdf=request\.pdf request\.html"):
        form(None, "request.pdf")
