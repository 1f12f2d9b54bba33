"""The page in a real browser: Chromium, headless, without a network."""

import html
import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import made
import pytest

from scalestudy.report.write import write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install it (Debian: apt-get install chromium)"),
]

# Chromium's windows are never as narrow as a phone; a frame is. It reports once its charts are drawn.
FRAME = """<!DOCTYPE html><body style="margin:0">
<iframe src="%s" style="width:%dpx;height:6000px;border:0"></iframe>
<pre id="seen"></pre><script>
const frame = document.querySelector("iframe");
const timer = setInterval(() => {
  const page = frame.contentDocument, root = page?.documentElement;
  if (root?.dataset.charts !== "drawn") return;
  clearInterval(timer);
  const charts = [...page.querySelectorAll("[data-chart]")].map((box) => {
    const svg = box.querySelector("svg");
    return {
      name: box.dataset.chart,
      marks: box.querySelectorAll("svg path, svg rect").length,
      fits: !!svg && svg.getBoundingClientRect().width <= box.clientWidth + 1,
      ink: svg && getComputedStyle(svg.querySelector("text")).fill,
    };
  });
  document.getElementById("seen").textContent = JSON.stringify({
    charts, failed: page.querySelectorAll("figure.failed").length,
    width: root.scrollWidth, view: root.clientWidth,
    loaded: frame.contentWindow.performance.getEntriesByType("resource").map((entry) => entry.name),
  });
}, 50);
</script>"""


@cache
def report(folder: Path) -> Path:
    runs = made.seeded((1, 2, 4), ("mirrored", "multiworker", "horovod", "virtual"))
    return write_report(
        made.write(folder / "study", "<script>alert(1)</script>", runs, made.unfinished())
    ).page


def look(folder: Path, width: int, *options: str) -> dict:
    page = report(folder)
    frame = folder / f"frame-{width}.html"
    frame.write_text(FRAME % (page.relative_to(folder).as_posix(), width))
    done = subprocess.run(
        [
            CHROMIUM,
            *(
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--enable-logging=stderr",
            ),
            *("--host-resolver-rules=MAP * ~NOTFOUND", "--allow-file-access-from-files"),
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={max(width, 600)},6000",
            *options,
            *("--virtual-time-budget=20000", "--dump-dom", frame.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    seen = re.search(r'<pre id="seen">(.+?)</pre>', done.stdout, re.DOTALL)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert seen, f"the page drew no charts; console: {console}"
    return json.loads(html.unescape(seen[1])) | {"console": console}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("browser")


@pytest.mark.parametrize("width", [390, 1280])
def test_every_chart_is_drawn_within_a_page_that_never_scrolls_sideways(folder, width):
    seen = look(folder, width)
    assert {chart["name"] for chart in seen["charts"]} == {
        *("speedup", "quality", "efficiency", "phases", "loss-by-epoch", "loss-by-time"),
    }
    assert all(chart["marks"] > 5 for chart in seen["charts"])
    assert [chart["name"] for chart in seen["charts"] if not chart["fits"]] == []
    assert seen["failed"] == 0
    assert seen["console"] == []
    assert seen["view"] == width
    assert seen["width"] <= width
    assert [name for name in seen["loaded"] if name.startswith("http")] == []


def test_charts_follow_a_dark_screen(folder):
    light = look(folder, 1280)
    dark = look(folder, 1280, "--blink-settings=preferredColorScheme=0")
    for before, after in zip(light["charts"], dark["charts"], strict=True):
        assert before["ink"] != after["ink"]
