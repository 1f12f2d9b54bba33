"""Errors in a user's files become messages; an internal error does not."""

import errno
import io
import re

import pytest
from pydantic import ValidationError
from rich.table import Table
from rich.text import Text

from scalestudy.config.settings import DataSettings
from scalestudy.report.as_terminal import PlainConsole
from scalestudy.util.errors import RunError, UserError, explain, printable


def test_an_error_of_ours_stays_as_it_is() -> None:
    error = RunError("a", "b", "c")
    assert explain(error) is error


@pytest.mark.parametrize(
    ("error", "received", "action"),
    [
        (
            FileNotFoundError(errno.ENOENT, "No such file", "a/b"),
            "a/b: No such file",
            "Look after",
        ),
        (
            OSError(errno.ENAMETOOLONG, "File name too long", "x" * 300),
            "x" * 200 + "…: File name",
            "255 bytes",
        ),
        (
            OSError(errno.ELOOP, "Too many levels", "a"),
            "a: Too many levels",
            "leads back to itself",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "a"),
            "Permission denied",
            "permissions",
        ),
        (OSError(errno.ENOSPC, "No space left"), "No space left", "Make space"),
        (
            OSError(errno.EXDEV, "Cross-device", "a", None, "b"),
            "a and b: Cross-device",
            "Look after",
        ),
        (
            MemoryError("Unable to allocate 8 TiB"),
            "Unable to allocate 8 TiB",
            "smaller",
        ),
        (RecursionError("maximum"), "thousands of times", "Correct"),
        (
            UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
            "surrogates",
            "Rename",
        ),
        (
            UnicodeEncodeError("utf-8", "a/\udcff.png", 2, 3, "no"),
            r"a/\udcff.png",
            "Rename",
        ),
        (ValueError("embedded null byte"), "one with it", "Correct"),
        (
            RuntimeError("Symlink loop from 'a'"),
            "Symlink loop from 'a'",
            "mend the link",
        ),
        (
            RuntimeError("Could not determine home directory."),
            "home directory",
            "Correct the path",
        ),
    ],
)
def test_what_comes_of_the_users_files_has_three_parts(
    error: Exception, received: str, action: str
) -> None:
    told = explain(error)
    assert isinstance(told, UserError)
    assert received in told.received
    assert action in told.action


def test_an_argument_whose_bytes_are_no_utf8_is_told_though_pydantic_meets_it_first() -> (
    None
):
    with pytest.raises(ValidationError) as caught:
        DataSettings(source="a/\udcff")
    told = explain(caught.value)
    assert r"'a/\udcff'" in told.received
    assert "Rename" in told.action


@pytest.mark.parametrize(
    "error", [KeyError("x"), ValueError("x"), TypeError("x"), AssertionError()]
)
def test_a_bug_is_not_explained_away(error: Exception) -> None:
    assert explain(error) is None


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
