"""Texts that are safe to print."""

import re

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
"""Control characters of both blocks except tab and newline, and those that change the text direction."""


def printable(text: str) -> str:
    """Remove colours and escape other control characters, which a terminal would execute.

    They could move the cursor, overwrite text, set the window title, or fill the clipboard.
    """
    return _UNSEEN.sub(_name, _COLOUR.sub("", text))


def _name(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def escape(text: str) -> str:
    """Escape, as in Python strings, unprintable characters and those that UTF-8 cannot encode."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )
