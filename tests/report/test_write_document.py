"""Documents as files, with their pictures beside them."""

from dataclasses import replace
from pathlib import Path

import pytest

from scalestudy.report.write_document import FORMS, form_by_ending, write_document
from scalestudy.util.errors import UserError
from synthetic_document import document


def test_a_page_refers_to_the_pictures_beside_it(tmp_path):
    page, *pictures = write_document(document(), "markdown", tmp_path / "a_page.md")
    assert page == tmp_path / "a_page.md" and pictures
    for picture in pictures:
        assert (
            picture.parent.name == "a-page-figures"
            and picture.read_bytes().startswith(b"<svg")
        )
        assert picture.relative_to(tmp_path).as_posix() in page.read_text()


@pytest.mark.parametrize(
    ("form", "blocks"), [("html", {}), ("markdown", {"blocks": ()})]
)
def test_a_page_in_html_and_one_without_figures_are_one_file(tmp_path, form, blocks):
    out = tmp_path / f"page.{form}"
    assert write_document(replace(document(), **blocks), form, out) == [out]
    assert [*tmp_path.iterdir()] == [out]


def form(named: str | None, file: str | None) -> str:
    return form_by_ending(named, Path(file) if file else None, FORMS, "markdown")


@pytest.mark.parametrize(
    ("named", "file", "expected"),
    [
        ("html", "page.md", "html"),
        ("html", "page.pdf", "html"),
        (None, "page.HTML", "html"),
        (None, "page.txt", "markdown"),
        (None, "page", "markdown"),
        (None, None, "markdown"),
    ],
)
def test_the_form_is_that_of_the_option_else_of_the_files_ending(named, file, expected):
    assert form(named, file) == expected


@pytest.mark.parametrize(
    "wrong", [(None, "p.docx"), (None, "p.csv"), (None, "p.pdf"), ("docx", None)]
)
def test_another_form_is_refused(wrong):
    with pytest.raises(UserError):
        form(*wrong)
