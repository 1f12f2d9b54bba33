"""Messages on the troubleshooting page are messages of the program."""

import re
from functools import cache

import pytest

from paths import PROJECT, SOURCE

PAGE = PROJECT / "docs" / "guides" / "troubleshooting.md"
LABELS = re.compile(r"^(Expected|Received) ")
VARIABLE = re.compile(r"…|\d+|SIG[A-Z]+")
JOINED = re.compile(r"""["']\s*\n\s*f?["']""")
"""Matches the gap between two adjacent string literals."""


@cache
def source() -> str:
    """Return all source text with adjacent string literals joined."""
    files = sorted(SOURCE.rglob("*.py"))
    text = "\n".join(file.read_text("utf-8") for file in files)
    return re.sub(r"\{[^{}\n]*\}", "…", JOINED.sub("", text))


def messages(page: str) -> list[str]:
    """Return the code spans in the first column of the page's tables."""
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("|")]
    return [message for row in rows for message in re.findall("`([^`]+)`", row)]


def unknown(message: str) -> list[str]:
    """Return the constant parts of a message that the source does not contain."""
    parts = (part.strip(" ():;") for part in VARIABLE.split(LABELS.sub("", message)))
    return [part for part in parts if len(part) > 3 and part not in source()]


def test_the_messages_of_the_page_are_those_of_the_program():
    listed = messages(PAGE.read_text("utf-8"))
    assert len(listed) > 25
    assert {message: parts for message in listed if (parts := unknown(message))} == {}


@pytest.mark.parametrize(
    "message",
    ["Expected a studied file", "the limit was met", "rank 3 was ended in 2 s"],
)
def test_another_message_is_seen(message):
    assert unknown(message)
