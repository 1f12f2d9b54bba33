"""The README is short, and its demo output is what the demo prints."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text()


def test_it_has_at_most_700_words_beside_its_code():
    assert len(re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL).split()) <= 700


@pytest.mark.slow
def test_it_shows_lines_of_the_demo(call, tmp_path: Path):
    shown = next(
        block
        for block in TEXT.split("```")[1::2]
        if block.lstrip().startswith("strategy ")
    )
    lines = [line for line in shown.split("\n") if line not in ("", "...")]
    code, text, _ = call("demo", "--out", tmp_path / "page.html")
    assert code == 0
    printed = [line.rstrip() for line in text.splitlines()]
    assert len(lines) >= 10
    assert [line for line in lines if line not in printed] == []


def test_its_picture_is_of_the_published_table():
    picture = (ROOT / "docs" / "pictures" / "published-unet.svg").read_text()
    for minutes, iou in (("125.6", "0.964"), ("12", "0.486"), ("10", "0.888")):
        assert f"{minutes};" in picture
        assert f": {iou};" in picture
