"""Every page that is written, in a real browser: Chromium, headless, without a network."""

import made_pages
import pytest
from chromium import AXE, COMMAND, DRAWN, Chromium, Tab, barriers

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(COMMAND is None, reason="no Chromium: install it (Debian: apt-get install chromium)"),
]
SCREENS = {"desktop, light": {}, "phone, dark": {"width": 390, "dark": True}}


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
            file.write_text(made_pages.PAGES[name]())
        tab.screen(**screen)
        tab.visit(file, fragment, DRAWN if "data-chart=" in file.read_text() else "true")
        return tab

    return opened


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("name", made_pages.PAGES)
def test_a_page_complains_of_nothing_asks_no_network_and_never_scrolls_sideways(open_page, name, screen):
    tab = open_page(name, **SCREENS[screen])
    assert tab.complaints == []
    assert tab.requests == []
    assert tab.run("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.skipif(not AXE.exists(), reason="no axe-core: environments/test-tools.sh installs it (npm)")
@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("name", made_pages.PAGES)
def test_a_page_has_no_barriers(open_page, name, screen):
    assert barriers(open_page(name, **SCREENS[screen])) == []


@pytest.mark.parametrize("name", made_pages.PAGES)
def test_a_page_can_be_printed(open_page, name):
    tab = open_page(name, paper=True, dark=True)
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
        *("speedup", "quality", "efficiency", "phases", "loss-by-epoch", "loss-by-time"),
    }
    assert all(chart["marks"] > 5 for chart in charts)
    assert [chart["name"] for chart in charts if not chart["fits"]] == []
    assert tab.run("document.querySelectorAll('figure.failed').length") == 0


def test_charts_follow_a_dark_screen(open_page):
    light, dark = open_page("report").run(CHARTS), open_page("report", dark=True).run(CHARTS)
    for before, after in zip(light, dark, strict=True):
        assert before["ink"] != after["ink"]
