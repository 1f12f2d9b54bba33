"""A set before it is trained on: as text, and as a page that needs no network."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

from scalestudy.errors import UserError
from scalestudy.features.inspect.data_text import print_data
from scalestudy.features.inspect.page import to_page, write_data_page
from scalestudy.features.inspect.shown import ClassCount, Finding, Picture, Shown

GREY = np.full((32, 48, 3), 120, np.uint8)
SHOWN = Shown(
    source="<script>alert(1)</script>",
    kind="masks",
    basis="all 12 samples",
    facts={"Holds": "images with masks", "Files": "16-bit grey (12)"},
    count=12,
    seen=12,
    splits={"train": 9, "validation": 3},
    sizes=[((32, 48), 10, "a.png"), ((8, 8), 2, "tiny.png")],
    classes=[
        ClassCount("background", 12, 0.9, {"train": 9, "validation": 3}),
        ClassCount("cell", 2, 0.1, {"train": 2, "validation": 0}),
    ],
    findings=[
        Finding("1 image with the same pixels", "Remove it.", ("a = b",), serious=True),
        Finding("7 masks without any labelled pixel", "Look.", tuple(f"m{i}.png" for i in range(7))),
    ],
    pictures=[Picture(f"images/{i}.png", "32 x 48, cell 10.0%", GREY, GREY + 20) for i in range(5)],
)


def text(**options):
    console = Console(width=options.pop("width", 100), **options)
    with console.capture() as captured:
        print_data(SHOWN, console)
    return captured.get()


def test_text_says_what_was_understood_counted_and_found():
    told = text(force_terminal=False)
    for words in (
        "all 12 samples", "16-bit grey (12)", "32 x 48 (10), 8 x 8 (2)", "12: 9 train, 3 validation",
        "! 1 image with the same pixels", "a = b", "Remove it.", "m4.png; and 2 more", "10.0%",
    ):  # fmt: skip
        assert words in told


def test_pictures_are_drawn_on_a_terminal_with_colours_alone():
    assert "▀" not in text(force_terminal=False)
    assert "▀" not in text(force_terminal=True, color_system=None)
    drawn = text(force_terminal=True, color_system="truecolor", width=70)
    assert "▀" in drawn and "38;2;140;140;140" in drawn
    plain = re.sub(r"\x1b\[[0-9;]*m", "", drawn)
    assert max(len(line) for line in plain.splitlines() if "▀" in line) <= 70
    assert plain.count("images/") == 5


class Elements(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def all(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


def test_a_page_brings_all_it_shows_and_says_what_each_picture_is():
    page = to_page([SHOWN])
    elements = Elements(page)
    pictures = elements.all("img")
    assert len(pictures) == 10
    assert all(each["src"].startswith("data:image/png;base64,") for each in pictures)
    assert pictures[0]["alt"] == "Sample images/0.png: 32 x 48, cell 10.0%"
    assert pictures[1]["alt"] == "The same with its mask laid over it"
    assert not elements.all("script") and "&lt;script&gt;alert(1)" in page
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert "prefers-color-scheme: dark" in page and "width=device-width" in page
    assert "m6.png" in page and "serious" in page


def test_a_page_holds_every_set_of_a_study():
    assert to_page([SHOWN, SHOWN]).count("<h1>") == 2


def test_a_page_needs_a_name_of_a_page_and_a_folder_that_is_there(tmp_path):
    write_data_page(tmp_path / "a.html", [SHOWN])
    assert (tmp_path / "a.html").read_text() == to_page([SHOWN])
    with pytest.raises(UserError, match=r"ends in \.html"):
        write_data_page(tmp_path / "a.pdf", [SHOWN])
    with pytest.raises(UserError, match="can be written"):
        write_data_page(tmp_path / "no" / "a.html", [SHOWN])
