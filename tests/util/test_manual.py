"""The manual's pages as the command prints them."""

import pytest

from scalestudy.util.errors import UserError
from scalestudy.util.manual import page_text, pages


def test_a_page_is_found_by_its_name_its_path_or_its_last_part():
    text = page_text("guides/imported")
    assert text.startswith("# ") and "{ #" not in text
    assert page_text("docs/guides/imported.md") == page_text("imported") == text
    assert "generated:" not in page_text("reference/strategies")


def test_a_page_that_is_not_there_or_is_not_the_only_one_is_refused_with_those_that_are():
    with pytest.raises(UserError, match="guides/imported"):
        page_text("imprted")
    with pytest.raises(UserError, match="guides/data or reference/data"):
        page_text("data")


def test_every_page_has_a_title():
    assert pages()["guides/imported"]
    assert all(pages().values())
