"""Texts of others cannot control a terminal."""

import io
import re

import pytest
from rich.table import Table
from rich.text import Text

from scalestudy.report.as_terminal import PlainConsole
from scalestudy.util.printable import printable

HOSTILE = {
    "moves the cursor": "\x1b[2A\x1b[Kdone",
    "names the window": "\x1b]0;owned\x07",
    "fills the clipboard": "\x1b]52;c;cm0gLXJm\x07",
    "in one character": "\x9b2J",
    "overwrites": "failed\rdone",
    "deletes": "failed\b\b\b",
    "turns the direction": "\u202edone",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_control_sequences_are_spelt_out_and_a_console_prints_its_own_styles_alone(
    text,
):
    assert printable(text) != text and printable(text).isprintable()
    stream = io.StringIO()
    console = PlainConsole(
        file=stream, force_terminal=True, color_system="standard", width=80
    )
    table = Table("point", title=text)
    table.add_row(Text(text, style="red"))
    console.print(table)
    console.print(f"reason: {text}", markup=False)
    assert "\x1b[31m" in stream.getvalue()
    plain = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())
    assert all(line.isprintable() for line in plain.splitlines())


def test_other_texts_stay_as_they_are_and_colours_of_a_log_are_left_out():
    for text in ("naïve – 5 × 10⁻³ µs", "a\tb\nc", "日本語 🙂", ""):
        assert printable(text) == text
    assert (
        printable("\x1b[1;31mE tensorflow\x1b[0m: out of memory")
        == "E tensorflow: out of memory"
    )
