"""A document as an HTML page."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from scalestudy.report.as_html import html
from scalestudy.report.document import Document, Heading, Section, Table
from synthetic_document import document


@pytest.fixture(scope="module")
def page() -> str:
    return html(document())


def test_every_element_is_closed(page: str):
    opened: list[str] = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in {"meta", "link", "img", "source", "br"}:
                opened.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert opened.pop() == tag

    Parser().feed(page)
    assert not opened


def test_texts_are_escaped_and_code_is_code(page: str):
    assert "<b>" not in page
    assert "<code>launch.cpus_per_worker = 4</code>" in page


def test_it_needs_nothing_from_outside(page: str):
    assert all(address.startswith("data:") for address in re.findall(r'(?:src|srcset|href)="([^"#]+)"', page))


def test_a_figure_is_drawn_for_light_and_for_dark(page: str):
    addresses = re.findall(r'(?:src|srcset)="data:image/svg\+xml;base64,([^"]+)"', page)
    assert len(addresses) == 3
    assert len(set(addresses)) == 2


def test_headings_nest_and_can_be_linked(page: str):
    assert '<h2 id="results">Results</h2>' in page
    assert '<h3 id="by-node">By node</h3>' in page


@pytest.mark.browser
@pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("pdftotext")), reason="needs chromium and pdftotext"
)
def test_on_paper_pages_are_a4_with_numbers_and_nothing_is_folded_away(tmp_path):
    (tmp_path / "page.html").write_text(html(document()))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", f"--print-to-pdf={tmp_path / 'page.pdf'}"]
    subprocess.run([*command, (tmp_path / "page.html").as_uri()], capture_output=True, check=True)
    text = subprocess.run(
        ["pdftotext", "-layout", str(tmp_path / "page.pdf"), "-"], capture_output=True, text=True, check=True
    ).stdout
    pages = text.split("\f")[:-1]
    assert re.search(rf"1 ?/ ?{len(pages)}\s*$", pages[0])
    assert r"\end{x} <i>" in text  # in a part that is folded on a screen
    info = subprocess.run(["pdfinfo", str(tmp_path / "page.pdf")], capture_output=True, text=True, check=True)
    assert "A4" in info.stdout


def test_names_and_labels_that_come_again_are_numbered():
    table = Table((Heading("n"),), (("1",),), name="quality")
    page = html(Document("made", (Section("Quality", (table, table)),)))
    assert re.findall(r' id="(\w[^"]*)"', page) == ["quality", "quality-2", "quality-3"]
    assert re.findall(r'aria-label="([^"]*)"', page) == ["quality (2)", "quality (3)"]
