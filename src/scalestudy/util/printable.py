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
    return _UNSEEN.sub(lambda match: _spelt_out(match[0]), _COLOUR.sub("", text))


def escape(text: str) -> str:
    """Escape, as in Python strings, unprintable characters and those that UTF-8 cannot encode."""
    return "".join(map(_visible, text))


def _visible(letter: str) -> str:
    if letter.isprintable():
        return letter
    return _spelt_out(letter)


def _spelt_out(letter: str) -> str:
    return letter.encode("unicode_escape").decode()
