"""The documentation site builds strictly and without a network; its links and anchors are valid."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from chromium import COMMAND, Chromium, Tab
from paths import PROJECT

MISSING = [
    name
    for name in ("mkdocs", "material", "mkdocstrings")
    if importlib.util.find_spec(name) is None
]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (scalestudy[docs])"
    ),
]
WITHOUT_NETWORK = """
import socket

def refused(*_, **__):
    raise AssertionError("the site asks for the network")

socket.getaddrinfo = socket.create_connection = socket.socket.connect = refused
from mkdocs.__main__ import cli
cli()
"""
LINKS = {
    "a": "href",
    "link": "href",
    "img": "src",
    "script": "src",
    "source": "src",
    "iframe": "src",
}


class Page(HTMLParser):
    """Links of a page, resources that it loads, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        address = values.get(LINKS.get(tag, ""))
        if address:
            (self.links if tag == "a" else self.loads).append(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    variables = {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(PROJECT / "src")}
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            WITHOUT_NETWORK,
            "build",
            "--strict",
            "--site-dir",
            str(folder),
        ],
        cwd=PROJECT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {
        file: Page(file.read_text("utf-8"))
        for file in site.rglob("*.html")
        if file.name != "404.html"
    }


def broken(site: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """Yield links of each page that lead nowhere within the site."""
    for file, page in pages.items():
        for link in [*page.links, *page.loads]:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = (
                (file.parent / unquote(address.path)).resolve()
                if address.path
                else file
            )
            target = target / "index.html" if target.is_dir() else target
            known = pages[target].anchors if target in pages else {address.fragment}
            if (
                not target.is_file()
                or not target.is_relative_to(site)
                or unquote(address.fragment) not in known
            ):
                yield f"{file.relative_to(site)}: {link}"


def test_every_internal_link_and_anchor_holds(
    site: Path, pages: dict[Path, Page]
) -> None:
    assert len(pages) > 20
    assert [
        *broken(site.resolve(), {file.resolve(): page for file, page in pages.items()})
    ] == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_from_outside_the_site_lead_to_its_pages(
    name: str, site: Path, pages: dict[Path, Page]
) -> None:
    links = re.findall(
        r"\]\(docs/([^)#\s]+)\.md(?:#([^)\s]+))?\)", (PROJECT / name).read_text("utf-8")
    )
    files = {
        (page, anchor): site / f"{page.replace('README', 'index')}.html"
        for page, anchor in links
    }
    wrong = [
        link
        for link, file in files.items()
        if file not in pages or link[1] not in pages[file].anchors
    ]
    assert wrong == []


def test_a_broken_link_is_seen(tmp_path: Path) -> None:
    (tmp_path / "other.html").write_text('<p id="here">')
    text = '<a href="other.html#here"></a><a href="other.html#gone"></a><img src="none.png">'
    (tmp_path / "page.html").write_text(text)
    pages = {file.resolve(): Page(file.read_text()) for file in tmp_path.glob("*.html")}
    assert [*broken(tmp_path.resolve(), pages)] == [
        "page.html: other.html#gone",
        "page.html: none.png",
    ]


def test_pages_load_nothing_from_elsewhere(pages: dict[Path, Page]) -> None:
    elsewhere = {
        load for page in pages.values() for load in page.loads if urlsplit(load).netloc
    }
    assert elsewhere == set()


def test_generated_parts_hold_what_the_code_knows(
    pages: dict[Path, Page], site: Path
) -> None:
    from scalestudy.config.keys import SECTIONS, SWEEP_KEYS
    from scalestudy.launch.queue.site_profile import Site
    from scalestudy.plugins.strategies import REGISTRY

    keys = {
        f"{section}.{key}"
        for section, model in SECTIONS.items()
        for key in model.model_fields
    }
    assert keys | {f"sweep.{key}" for key in SWEEP_KEYS} <= _anchors(
        pages, "study-file"
    )
    assert {f"site.{key}" for key in Site.model_fields} - {"site.name"} <= _anchors(
        pages, "site-profile"
    )
    table = (site / "reference" / "strategies.html").read_text("utf-8")
    assert [
        name for name in REGISTRY.built_in() if f"<code>{name}</code>" not in table
    ] == []
    assert {"scalestudy-run", "scalestudy-model-predict"} <= _anchors(
        pages, "command-line"
    )
    assert {"scalestudy.run", "scalestudy.Workers.epochs"} <= _anchors(pages, "python")
    assert not [
        file for file in pages if re.search("<!-- generated", file.read_text("utf-8"))
    ]


@pytest.mark.browser
@pytest.mark.skipif(COMMAND is None, reason="Chromium is not installed")
def test_the_search_works_from_a_file_and_knows_the_words_of_other_tools(
    site: Path, tmp_path: Path
) -> None:
    browser = Chromium(tmp_path / "profile")
    tab = Tab(browser)
    found = "[...document.querySelectorAll('.md-search-result__link')].map((link) => link.href)"
    for word, page in (
        ("OOM", "troubleshooting"),
        ("wandb", "dashboards"),
        ("speedup", "glossary"),
    ):
        tab.visit(site / "guides" / "script.html")
        tab.run(
            "{ const field = document.querySelector('.md-search__input'); field.focus();"
            f" field.value = '{word}'; field.dispatchEvent(new Event('keyup', {{ bubbles: true }})) }}"
        )
        tab.wait(f"{found}.some((address) => address.includes('{page}.html'))")
    browser.close()


def _anchors(pages: dict[Path, Page], name: str) -> set[str]:
    return next(page.anchors for file, page in pages.items() if file.stem == name)
