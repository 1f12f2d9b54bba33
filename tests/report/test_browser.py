"""Every page that is written, in a real browser: Chromium, headless, without a network."""

import pytest

import synthetic_pages
from chromium import AXE, COMMAND, DRAWN, Chromium, Tab, barriers

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(COMMAND is None, reason="no Chromium: install it (Debian: apt-get install chromium)"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Chromium(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def tab(browser):
    return Tab(browser)


@pytest.fixture(scope="module")
def open_page(tab, tmp_path_factory):
    """Open a page by its name, once its charts are drawn."""
    folder = tmp_path_factory.mktemp("pages")

    def opened(name, fragment="", **screen):
        file = folder / f"{name}.html"
        if not file.exists():
            file.write_text(synthetic_pages.PAGES[name]())
        tab.screen(**screen)
        tab.visit(file, fragment, DRAWN if "data-chart=" in file.read_text() else "true")
        return tab

    return opened


needs_axe = pytest.mark.skipif(
    not AXE.exists(), reason="no axe-core: environments/test-tools.sh installs it (npm)"
)


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
LAID_OPEN = """document.querySelectorAll('figure.drawn .frame').forEach((frame) => {
  frame.innerHTML = new TextDecoder().decode(
    Uint8Array.from(atob(frame.querySelector('img').src.split(',')[1]), (letter) => letter.charCodeAt(0)));
  frame.querySelector('svg').style.minWidth = frame.querySelector('svg').getAttribute('width') + 'px';
})"""
"""Drawings in the place of their pictures, into which a page cannot look."""


@pytest.fixture(scope="module", params=synthetic_pages.PAGES)
def light(request, open_page):
    """Each page in its turn, opened once on a desk; only the last test of it changes it."""
    return open_page(request.param)


def sideways(tab):
    """Pixels by which the page is wider than its screen."""
    return tab.run("document.documentElement.scrollWidth - innerWidth")


def test_a_page_complains_of_nothing_asks_no_network_and_never_scrolls_sideways(light):
    assert light.complaints == []
    assert light.requests == []
    assert sideways(light) <= 0


def test_no_name_stands_twice_in_a_page(light):
    names = light.run("[...document.querySelectorAll('[id]')].map((each) => each.id)")
    assert sorted(names) == sorted(set(names))


@needs_axe
def test_a_page_has_no_barriers(light):
    assert barriers(light) == []


def test_no_label_of_a_figure_or_picture_lies_on_another_or_is_cut(light):
    light.run(LAID_OPEN)
    shown = light.run(
        "[...document.querySelectorAll('.frame svg text')].map((each) => each.getClientRects().length)"
    )
    assert set(shown) <= {1}
    assert light.run(OVERLAPS) == []


@needs_axe
@pytest.mark.parametrize("name", ["report", "statement"])
def test_a_dark_page_has_no_barriers(open_page, name):
    assert barriers(open_page(name, width=390, dark=True)) == []


@pytest.mark.parametrize("name", synthetic_pages.PAGES)
def test_a_page_fits_a_dark_phone_and_can_be_printed(open_page, name):
    tab = open_page(name, width=390, dark=True)
    assert tab.complaints == []
    assert sideways(tab) <= 0
    assert tab.run("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert tab.run(OVERLAPS) == []
    tab.screen(paper=True, dark=True)
    assert tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
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
    assert {chart["name"] for chart in charts} == {
        *("time-and-cost", "speedup", "quality", "efficiency", "phases", "loss-by-epoch"),
    }
    assert all(chart["marks"] > 5 for chart in charts)
    assert [chart["name"] for chart in charts if not chart["fits"]] == []
    assert tab.run("document.querySelectorAll('figure.failed').length") == 0


def test_charts_follow_a_dark_screen(open_page):
    light, dark = open_page("report").run(CHARTS), open_page("report", dark=True).run(CHARTS)
    for before, after in zip(light, dark, strict=True):
        assert before["ink"] != after["ink"]


def rows(tab):
    """The results as shown: strategy and workers of each row that is not hidden."""
    return tab.run(
        "[...document.querySelectorAll('[data-table=results] tbody tr')].filter((row) => !row.hidden)"
        ".map((row) => row.cells[0].dataset.value + row.cells[1].dataset.value)"
    )


def head(name):
    heads = "[...document.querySelectorAll('[data-table=results] th')]"
    return f"{heads}.find((each) => each.textContent.includes('{name}'))"


def press(tab, element, key="Enter"):
    """Focus an element and press a key on it, as somebody without a mouse does."""
    tab.run(f"{element}.focus()")
    for kind in ("keyDown", "keyUp"):
        tab.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, text="\r", windowsVirtualKeyCode=13)


def test_headings_sort_by_keyboard_and_what_is_not_known_comes_last(open_page):
    tab = open_page("report")
    before = rows(tab)
    for words, first in (("ascending", "1"), ("descending", "mirrored4")):
        press(tab, f"{head('Speed-up')}.querySelector('button')")
        assert tab.run(f"{head('Speed-up')}.getAttribute('aria-sort')") == words
        assert first in rows(tab)[0]
        assert all(name.startswith("virtual") for name in rows(tab)[-3:])
    press(tab, f"{head('Speed-up')}.querySelector('button')")
    assert rows(tab) == before


def test_rows_are_found_by_words_and_left_out_by_chips(open_page):
    tab = open_page("report")
    tab.run("document.querySelector('.chip[data-value=virtual]').click()")
    assert len(rows(tab)) == 9
    tab.run("(() => { const box = document.querySelector('[data-tools] input'); box.value = 'MIRRORED no';"
            " box.dispatchEvent(new Event('input')); })()")  # fmt: skip
    assert rows(tab) == ["mirrored2", "mirrored4"]
    assert tab.run("document.querySelector('[data-tools] output').textContent") == "2 of 12 rows"


SEEN = """({
  sorted: [...document.querySelectorAll('th')].map((each) => each.getAttribute('aria-sort')).join(),
  find: document.querySelector('[data-tools] input').value,
  chips: [...document.querySelectorAll('.chip')].map((each) => each.getAttribute('aria-pressed')).join(),
  charts: [...document.querySelectorAll('[data-chart]')].map((each) => each.dataset.chart).join(),
  open: [...document.querySelectorAll('details[open]')].map((each) => each.id).join(),
  faint: document.querySelectorAll('#speedup svg [opacity="0.12"]').length > 0,
})"""


@pytest.fixture(scope="module")
def fresh(open_page):
    """What the report shows by itself."""
    return open_page("report").run(SEEN)


def test_a_link_shows_again_what_was_seen(fresh, open_page):
    tab = open_page("report")
    tab.run(f"{head('Scaling efficiency')}.querySelector('button').click()")
    tab.run("document.querySelector('.chip[data-value=virtual]').click()")
    tab.run("(() => { const choice = document.querySelector('#loss select'); choice.value = 'loss-by-time';"
            " choice.dispatchEvent(new Event('change')); })()")  # fmt: skip
    tab.run("document.getElementById('runs').open = true")
    tab.run("document.querySelector('#speedup .mark-symbol.role-legend-symbol path').dispatchEvent("
            "new MouseEvent('click', { bubbles: true }))")  # fmt: skip
    tab.wait("location.hash.includes('pick.speedup') && location.hash.includes('open=')")
    tab.wait("document.querySelector('#loss .still').src.includes('charset')")
    seen, link = tab.run(SEEN), tab.run("location.hash")
    assert seen != fresh and seen["faint"] and "loss-by-time" in seen["charts"]
    again = open_page("report", link)
    assert again.run(SEEN) == seen
    assert again.complaints == []


@pytest.mark.parametrize(
    "fragment",
    [
        "#sort.results=99&show.loss=x&hide.results=[1",
        "#sort.results=-0&open={}&pick.speedup=[%22no%22,{}]&at=x",
        "#=&%",
    ],
)
def test_a_broken_link_shows_the_page_as_it_is(fresh, open_page, fragment):
    tab = open_page("report", fragment)
    assert tab.complaints == []
    assert tab.run(SEEN) == fresh
    assert len(rows(tab)) == 12


def test_a_choice_draws_another_figure_with_its_words_its_picture_and_its_file(open_page):
    tab = open_page("report", "#show.efficiency=throughput")
    place = "document.getElementById('efficiency')"
    assert tab.run(f"{place}.querySelector('h3').textContent") == "Throughput against workers"
    assert "Throughput (samples/s)" in tab.run(f"{place}.querySelector('svg').textContent")
    picture = tab.run(f"decodeURIComponent({place}.querySelector('.still').src)")
    assert "Throughput against workers" in picture and "#FFFFFF" in picture.upper()


def test_a_phone_shows_what_decides_and_the_rest_on_request(open_page):
    tab = open_page("report", width=390)
    shown = """[...document.querySelectorAll('[data-table=results] thead th')].filter((each) => {
      const box = each.getBoundingClientRect(); return box.width > 0 && box.right <= innerWidth;
    }).map((each) => each.innerText.trim())"""
    assert tab.run(shown) == ["strategy", "n", "time s", "cost eff.", "IoU"]
    assert "no worse" in tab.run("document.querySelector('[data-table=results] tbody').innerText")
    tab.run("document.querySelector('[data-columns]').click()")
    assert "Throughput" in tab.run("document.querySelector('[data-table=results] thead').innerText")


def test_names_beside_a_figure_lie_on_no_line(open_page):
    lies = """[...document.querySelectorAll('#speedup svg, #efficiency svg')].flatMap((svg) => {
      const texts = [...svg.querySelectorAll('.mark-text.role-mark text')];
      const boxes = texts.map((each) => [each.textContent, each.getBoundingClientRect()]);
      const lines = [...svg.querySelectorAll('.mark-line path')];
      return boxes.filter(([, box]) => lines.some((line) => {
        const end = line.getBoundingClientRect();
        return end.right > box.left + 1 && end.bottom > box.top && end.top < box.bottom;
      })).map(([text]) => text);
    })"""
    tab = open_page("report")
    assert tab.run("document.querySelectorAll('#speedup .mark-text.role-mark text').length") > 3
    assert tab.run(lies) == []


def test_paper_has_pictures_on_white_and_neither_buttons_nor_folded_runs(open_page):
    tab = open_page("report", paper=True, dark=True)
    visible = "(each) => each.getClientRects().length > 0"
    assert tab.run(f"[...document.querySelectorAll('.still')].every({visible})")
    assert not tab.run(
        f"[...document.querySelectorAll('button:not(.sort), select, #runs, .chart')].some({visible})"
    )
