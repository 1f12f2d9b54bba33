"""An inspection as a document, in a terminal and as a page that needs no network."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np

from scalestudy.features.inspect.data_warnings import ClassCount, DataWarning
from scalestudy.features.inspect.inspection import Inspection, SamplePicture
from scalestudy.features.inspect.page import inspection_document
from scalestudy.report.as_html import html
from scalestudy.report.as_terminal import terminal

GREY = np.full((32, 48, 3), 120, np.uint8)
INSPECTION = Inspection(
    source="<script>alert(1)</script>",
    kind="masks",
    basis="all 12 samples",
    facts={"Holds": "images with masks", "Files": "16-bit grey (12)"},
    count=12,
    inspected=12,
    splits={"train": 9, "validation": 3},
    sizes=[((32, 48), 10, "a.png"), ((8, 8), 2, "tiny.png")],
    classes=[
        ClassCount("background", 12, 0.9, {"train": 9, "validation": 3}),
        ClassCount("cell", 2, 0.1, {"train": 2, "validation": 0}),
    ],
    warnings=[
        DataWarning("duplicate-across-splits", "1 image in both", "Remove it.", ("a = b",), serious=True),
        DataWarning("empty-mask", "17 empty masks", "Look.", tuple(f"m{i}.png" for i in range(17))),
    ],
    pictures=[SamplePicture(f"images/{i}.png", "32 x 48, cell 10.0%", GREY, GREY + 20) for i in range(5)],
)


def test_a_terminal_shows_facts_counts_classes_sizes_and_warnings():
    text = terminal(inspection_document([INSPECTION]), 100)
    for words in (
        "all 12 samples", "16-bit grey (12)", "12 (9 train, 3 validation)", "Serious: 1 image in both",
        "a = b", "Remove it.", "m9.png", "and 7 more", "10.0%", "32 x 48", "tiny.png",
    ):  # fmt: skip
        assert words in text
    assert "m10.png" not in text


def test_sizes_beyond_the_table_are_counted():
    sizes = [((8, width), 1, f"{width}.png") for width in range(1, 31)]
    assert "20 more" in terminal(inspection_document([replace(INSPECTION, sizes=sizes)]), 100)


class Elements(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def all(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


def test_a_page_holds_its_pictures_with_a_description_of_each():
    page = html(inspection_document([INSPECTION]))
    elements = Elements(page)
    pictures = elements.all("img")
    assert len(pictures) == 10
    assert all(picture["src"].startswith("data:image/png;base64,") for picture in pictures)
    assert pictures[0]["alt"] == "Sample images/0.png: 32 x 48, cell 10.0%"
    assert pictures[1]["alt"] != pictures[0]["alt"]
    assert not elements.all("script") and "&lt;script&gt;alert(1)" in page
    assert not re.search(r"(src|href)=\"(?!data:)", page)


def test_a_document_holds_every_set_of_a_study():
    sections = inspection_document([INSPECTION, INSPECTION]).blocks
    assert [section.title for section in sections] == [INSPECTION.source] * 2
