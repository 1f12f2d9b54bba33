"""Every page that is written, in a real browser: headless Chromium without a network."""

import csv
import re
import shutil
import subprocess

import pytest

import synthetic_pages
from chromium import AXE, COMMAND, DRAWN, Chromium, Tab, barriers

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        COMMAND is None,
        reason="no Chromium: install it (Debian: apt-get install chromium)",
    ),
]
needs_axe = pytest.mark.skipif(
    not AXE.exists(), reason="no axe-core: environments/test-tools.sh installs it (npm)"
)


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    browser = Chromium(tmp_path_factory.mktemp("profile"))
    yield Tab(browser)
    browser.close()


@pytest.fixture(scope="module")
def open_page(tab, tmp_path_factory):
    """Open a page by name and wait until its charts are drawn."""
    folder = tmp_path_factory.mktemp("pages")

    def opened(name, fragment="", **screen):
        file = folder / f"{name}.html"
        if not file.exists():
            file.write_text(synthetic_pages.PAGES[name]())
        tab.screen(**screen)
        tab.visit(
            file, fragment, DRAWN if "data-chart=" in file.read_text() else "true"
        )
        return tab

    return opened


OVERLAPS = """[...document.querySelectorAll('.chart svg, .frame svg')].flatMap((svg) => {
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].filter((each) => {
    const box = each.getBoundingClientRect();
    return each.textContent.trim() && getComputedStyle(each).opacity > 0 && box.width > 0;
  }).map((each) => [each.textContent, each.getBoundingClientRect()]);
  const found = texts.filter(([, box]) => box.right > frame.right + 2 || box.left < frame.left - 2)
    .map(([text]) => text + ' is cut');
  texts.forEach(([one, a], index) => texts.slice(index + 1).forEach(([other, b]) => {
    const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (width > 2 && height > 3) found.push(one + ' on ' + other);
  }));
  return found;
})"""
LAID_OPEN = """document.querySelectorAll('.frame').forEach((frame) => {
  frame.innerHTML = new TextDecoder().decode(
    Uint8Array.from(atob(frame.querySelector('img').src.split(',')[1]), (letter) => letter.charCodeAt(0)));
  frame.querySelector('svg').style.minWidth = frame.querySelector('svg').getAttribute('width') + 'px';
})"""
"""Replaces SVG images by inline drawings, because a page cannot look into images."""


@pytest.fixture(scope="module", params=synthetic_pages.PAGES)
def light(request, open_page):
    """Each page in turn, opened once at desktop size; only its last test changes it."""
    return open_page(request.param)


def sideways(tab):
    """Return by how many pixels the page is wider than its screen."""
    return tab.run("document.documentElement.scrollWidth - innerWidth")


def test_a_page_complains_of_nothing_asks_no_network_and_never_scrolls_sideways(light):
    assert light.complaints == []
    assert light.requests == []
    assert sideways(light) <= 0


@needs_axe
def test_a_page_has_no_barriers(light):
    assert barriers(light) == []


def test_no_label_of_a_figure_or_picture_lies_on_another_or_is_cut(light):
    light.run(LAID_OPEN)
    assert light.run(OVERLAPS) == []


@pytest.mark.parametrize("name", synthetic_pages.PAGES)
def test_a_page_fits_a_dark_phone_and_can_be_printed(open_page, name):
    tab = open_page(name, width=390, dark=True)
    assert tab.complaints == []
    assert sideways(tab) <= 0
    assert (
        tab.run("getComputedStyle(document.body).backgroundColor")
        != "rgb(255, 255, 255)"
    )
    assert tab.run(OVERLAPS) == []
    if AXE.exists() and name in ("report", "statement"):
        assert barriers(tab) == []
    tab.screen(paper=True, dark=True)
    assert (
        tab.run("getComputedStyle(document.body).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    assert tab.pdf().startswith(b"%PDF-")


CHARTS = """[...document.querySelectorAll("[data-chart]")].map((box) => {
  const svg = box.querySelector("svg");
  return {
    name: box.dataset.chart,
    marks: box.querySelectorAll("svg path, svg rect").length,
    fits: !!svg && svg.getBoundingClientRect().width <= box.clientWidth + 1,
    ink: svg && getComputedStyle(svg.querySelector("text")).fill,
  };
})"""


@pytest.mark.parametrize("width", [390, 1280])
def test_every_chart_is_drawn_and_fits(open_page, width):
    tab = open_page("report", width=width)
    charts = tab.run(CHARTS)
    assert {
        "time-and-cost",
        "speedup",
        "quality",
        "efficiency",
        "phases",
        "loss-by-epoch",
    } < {chart["name"] for chart in charts}
    assert all(chart["marks"] > 5 for chart in charts)
    assert [chart["name"] for chart in charts if not chart["fits"]] == []
    assert tab.run("document.querySelectorAll('figure.failed').length") == 0


TABLE = "document.getElementById('results-table')"


def rows(tab):
    """Return strategy and workers of each visible row of the results."""
    return tab.run(
        f"[...{TABLE}.tBodies[0].rows].filter((row) => !row.hidden)"
        ".map((row) => row.cells[0].textContent.trim() + row.cells[1].textContent.trim())"
    )


def press(tab, element, key="Enter"):
    """Focus an element and press a key on it, as a keyboard user does."""
    tab.run(f"{element}.focus()")
    for kind in ("keyDown", "keyUp"):
        tab.ask(
            "Input.dispatchKeyEvent",
            type=kind,
            key=key,
            code=key,
            text={"Enter": "\r"}.get(key, key),
            windowsVirtualKeyCode={"Enter": 13, " ": 32}[key],
        )


def test_headings_sort_by_keyboard_and_what_is_not_known_comes_last(open_page):
    tab = open_page("report")
    before = rows(tab)
    head = f"[...{TABLE}.querySelectorAll('th')].find((each) => each.textContent.includes('Speed-up'))"
    for words, first in (("ascending", "1"), ("descending", "mirrored4")):
        press(tab, f"{head}.querySelector('button')")
        assert tab.run(f"{head}.getAttribute('aria-sort')") == words
        assert first in rows(tab)[0]
        assert all(name.startswith("virtual") for name in rows(tab)[-3:])
    press(tab, f"{head}.querySelector('button')")
    assert rows(tab) == before


def test_a_choice_draws_another_figure_with_its_words_and_its_picture(open_page):
    tab = open_page("report")
    place = "document.getElementById('efficiency')"
    tab.run(
        f"(() => {{ const choice = {place}.querySelector('select'); choice.value = 'cost-efficiency';"
        " choice.dispatchEvent(new Event('change')); })()"
    )
    tab.wait(f"{place}.querySelector('.still').src.includes('charset')")
    assert (
        tab.run(f"{place}.querySelector('h3').textContent")
        == "Cost efficiency against workers"
    )
    assert "target: 0.7" in tab.run(f"{place}.querySelector('svg').textContent")
    picture = tab.run(f"decodeURIComponent({place}.querySelector('.still').src)")
    assert "target: 0.7" in picture and "#FFFFFF" in picture.upper()


def button(tab, name):
    """Press the button above the table that shows or hides a series."""
    tab.run(f"document.querySelector('.series [data-series={name}]').click()")


DRAWN_SERIES = """[...document.querySelectorAll('#speedup svg [aria-roledescription="point"]')]
  .map((point) => point.getAttribute("aria-label")).join()"""


def test_a_series_is_hidden_in_the_table_and_in_every_figure_by_its_button(open_page):
    tab = open_page("report")
    assert "horovod" in tab.run(DRAWN_SERIES)
    button(tab, "horovod")
    assert {name.rstrip("124") for name in rows(tab)} == {
        "mirrored",
        "multiworker",
        "virtual",
    }
    assert (
        tab.run("document.querySelector('.tools output').textContent") == "9 of 12 rows"
    )
    tab.wait(f"!({DRAWN_SERIES}).includes('horovod')")
    assert "mirrored" in tab.run(DRAWN_SERIES)
    button(tab, "horovod")
    tab.wait(f"({DRAWN_SERIES}).includes('horovod')")
    assert len(rows(tab)) == 12


def test_a_series_is_hidden_in_the_table_and_in_every_figure_by_a_legend(open_page):
    tab = open_page("report")
    label = (
        "[...document.querySelectorAll('#quality .role-legend-label text')]"
        ".find((text) => text.textContent === 'mirrored')"
    )
    place = tab.run(
        f"(() => {{ const box = {label}.getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    for kind in ("mousePressed", "mouseReleased"):
        tab.ask(
            "Input.dispatchMouseEvent",
            type=kind,
            x=place[0],
            y=place[1],
            button="left",
            clickCount=1,
        )
    tab.wait(f"!({DRAWN_SERIES}).includes('mirrored')")
    assert not any(name.startswith("mirrored") for name in rows(tab))
    tab.wait(f"{label}.classList.contains('hidden-series')")


def test_a_legend_hides_and_shows_a_series_by_keyboard_and_keeps_the_focus(open_page):
    tab = open_page("report")
    label = (
        "[...document.querySelectorAll('#quality .role-legend-label text')]"
        ".find((text) => text.textContent === 'mirrored')"
    )
    for key, pressed in (("Enter", "false"), (" ", "true")):
        press(tab, label, key)
        tab.wait(f"{label}?.getAttribute('aria-pressed') === '{pressed}'")
        assert any(name.startswith("mirrored") for name in rows(tab)) == (
            pressed == "true"
        )
        tab.wait(f"document.activeElement === {label}")
    assert tab.run(f"{label}.closest('[aria-hidden=true], [role=img]')") is None


def test_an_address_shows_its_row_even_if_it_was_hidden(open_page):
    tab = open_page("report", "#row-virtual-4")
    assert (
        tab.run("document.querySelector('tr:target').cells[1].textContent.trim()")
        == "4"
    )
    assert tab.run(
        "(() => { const box = document.querySelector('tr:target').getBoundingClientRect();"
        " return box.top >= 0 && box.bottom <= innerHeight; })()"
    )
    button(tab, "horovod")
    tab.run("document.querySelector('#row-horovod-2 .link').click()")
    tab.wait("document.querySelector('tr:target')?.id === 'row-horovod-2'")
    assert "horovod2" in rows(tab)


def test_the_table_is_downloaded_with_all_columns_as_csv(open_page, tmp_path):
    tab = open_page("report")
    tab.browser.ask(
        "Browser.setDownloadBehavior",
        behavior="allow",
        downloadPath=str(tmp_path),
        eventsEnabled=True,
    )
    tab.run("document.querySelector('[download]').click()")
    while not any(
        event["method"] == "Browser.downloadProgress"
        and event["params"]["state"] == "completed"
        for event in tab.browser.events
    ):
        tab.browser.hear()
    (file,) = tmp_path.iterdir()
    assert file.suffix == ".csv"
    lines = list(csv.DictReader(file.read_text().splitlines()))
    assert len(lines) == 12
    assert (
        lines[0]["strategy"] == "mirrored" and float(lines[0]["training_seconds"]) > 0
    )


def test_results_are_not_clipped_on_a_desktop_and_more_columns_are_shown_on_demand(
    open_page,
):
    for name in ("report", "report-swept", "report-whole"):
        tab = open_page(name, width=1280)
        box = f"{TABLE}.parentElement"
        assert tab.run(f"{box}.scrollWidth - {box}.clientWidth") <= 0
    shown = (
        f"[...{TABLE}.tHead.rows[0].cells].filter((cell) => cell.offsetWidth).length"
    )
    before = tab.run(shown)
    tab.run("document.querySelector('.columns input').click()")
    assert tab.run(shown) > before


@pytest.mark.skipif(
    shutil.which("pdftotext") is None, reason="no pdftotext (Debian: poppler-utils)"
)
def test_headings_are_repeated_on_the_next_page_of_a_print(open_page, tmp_path):
    tab = open_page("report-long")
    tab.screen(paper=True)
    (tmp_path / "page.pdf").write_bytes(tab.pdf())
    text = subprocess.run(
        ["pdftotext", "-layout", tmp_path / "page.pdf", "-"],
        check=True,
        capture_output=True,
        text=True,
    )
    pages = text.stdout.split("\f")
    first, continued = [
        page
        for page in pages
        if re.search(r"^(mirrored|horovod) +\d+ +\d+\.\d", page, re.M)
    ][:2]
    assert "Results" in first and "Results" not in continued
    assert "Throughput" in first and "Throughput" in continued
